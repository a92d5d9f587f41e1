//! Scenarios per second over a graph of 100,000 nodes, as a sweep answers them.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use foretrain_core::Nanos;
use foretrain_graph::{Edge, EdgeKind, Node, NodeId, NodeKind, QueueKind, StepGraph};
use foretrain_hardware::Catalogue;
use foretrain_predict::PredictOptions;
use foretrain_predict::whatif::{Axis, WhatIfOptions, what_if_graphs};

/// A thread launches kernels on one stream, about as fast as the stream runs them.
fn large_step(launches: usize) -> StepGraph {
    let mut graph = StepGraph::new();
    let queues = [
        graph.add_queue("main thread", QueueKind::Thread),
        graph.add_queue("stream 7", QueueKind::Stream),
    ];
    let names = [graph.names.intern("host"), graph.names.intern("gemm")];
    let mut last: [Option<NodeId>; 2] = [None; 2];
    let mut first = last;
    for launch in 0..launches as i64 {
        let works = [3000 + (launch * 7919) % 2000, 2000 + (launch * 104_729) % 4000];
        let kinds = [NodeKind::HostSegment, NodeKind::Kernel];
        let ids = [0, 1].map(|i| {
            let work = Nanos::from_nanos(works[i]);
            graph.add_node(Node::new(kinds[i], names[i], queues[i], work))
        });
        let lag = Nanos::from_micros(4);
        graph.add_edge(Edge::new(ids[0], ids[1], EdgeKind::Launch).with_lag(lag));
        for (i, id) in ids.into_iter().enumerate() {
            if let Some(before) = last[i].replace(id) {
                graph.add_edge(Edge::new(before, id, EdgeKind::StreamOrder));
            }
            first[i].get_or_insert(id);
        }
    }
    for (first, last) in first.into_iter().zip(last) {
        if let (Some(first), Some(last)) = (first, last) {
            graph.add_edge(Edge::new(last, first, EdgeKind::StreamOrder).with_distance(1));
        }
    }
    graph
}

fn bench(c: &mut Criterion) {
    const SCENARIOS: usize = 50;
    let catalogue = Catalogue::builtin();
    let cluster = catalogue.cluster("dgx-a100").expect("known");
    let axis = Axis::parse(&format!("kernel x0.5..1:{SCENARIOS}")).expect("valid");
    let options = WhatIfOptions {
        predict: PredictOptions { recorded_on: Some(cluster.clone()), ..PredictOptions::default() },
        cluster: Some(cluster),
        gpus: None,
        scenarios: Vec::new(),
        sweeps: axis.alternatives,
        lenient: false,
    };
    let graphs = [large_step(50_000)];
    let mut group = c.benchmark_group("whatif");
    group.sample_size(10);
    group.throughput(Throughput::Elements(SCENARIOS as u64));
    group.bench_function("sweep of 100000 nodes", |b| {
        b.iter(|| black_box(what_if_graphs(&graphs, catalogue, &options)));
    });
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
