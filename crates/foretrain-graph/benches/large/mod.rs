//! A graph of a million nodes.

use foretrain_core::Nanos;
use foretrain_graph::{Edge, EdgeKind, Node, NodeId, NodeKind, Phase, QueueKind, StepGraph};

const NODES: usize = 1_000_000;

/// Two threads that launch onto four streams, half a million kernels, 1.5 million edges.
pub(crate) fn large() -> StepGraph {
    let mut g = StepGraph::new();
    let threads = ["main", "backward"].map(|name| g.add_queue(name, QueueKind::Thread));
    let streams = [7, 20, 24, 28].map(|s| g.add_queue(format!("stream {s}"), QueueKind::Stream));
    let kernels: Vec<_> =
        (0..1000).map(|i| g.names.intern(&format!("kernel_{i}_{}", i % 7))).collect();
    let modules: Vec<_> = (0..200).map(|i| g.names.intern(&format!("layers.{i}.mlp"))).collect();
    let host = g.names.intern("cudaLaunchKernel");
    let mut last = [None; 6];
    let mut order = |g: &mut StepGraph, lane: usize, id: NodeId, kind| {
        if let Some(before) = last[lane].replace(id) {
            g.add_edge(Edge::new(before, id, kind));
        }
    };
    for i in 0..NODES / 2 {
        let (thread, stream) = (i / (NODES / 4), i % 4);
        let work = Nanos::from_nanos(2_000 + (i as i64 * 7919) % 1_000);
        let launch = g.add_node(Node::new(NodeKind::HostSegment, host, threads[thread], work));
        order(&mut g, thread, launch, EdgeKind::ThreadOrder);
        let work = Nanos::from_nanos(1_000 + (i as i64 * 104_729) % 90_000);
        let mut node = Node::new(NodeKind::Kernel, kernels[i * 31 % 1000], streams[stream], work);
        node.phase = if thread == 0 { Phase::Forward } else { Phase::Backward };
        node.module = modules[i / 2500];
        let kernel = g.add_node(node);
        g.add_edge(Edge::new(launch, kernel, EdgeKind::Launch).with_lag(Nanos::from_micros(4)));
        order(&mut g, 2 + stream, kernel, EdgeKind::StreamOrder);
        g.node_attributes.set_i64("tokens", kernel.index(), i as i64 % 4096);
        g.node_attributes.set_f64("work_spread", kernel.index(), (i % 100) as f64 / 1000.0);
    }
    g
}
