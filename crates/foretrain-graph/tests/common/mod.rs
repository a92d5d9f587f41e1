//! Random valid graphs.

use foretrain_core::{Bytes, DType, Nanos};
use foretrain_graph::{
    CollectiveKind, Edge, EdgeKind, EdgeOrigin, Group, GroupId, Node, NodeId, NodeKind, Phase,
    QueueId, QueueKind, StepGraph,
};
use proptest::prelude::*;

type NodeSeed = (usize, u8, i64, i32, bool, u32, Option<u64>, Option<i64>, Option<f64>);
type EdgeSeed = (u16, u16, u8, i64, bool, Option<bool>, Option<String>);

fn nodes() -> impl Strategy<Value = Vec<NodeSeed>> {
    let node = (
        0..NodeKind::ALL.len(),
        any::<u8>(),
        0..10_000i64,
        any::<i32>(),
        any::<bool>(),
        any::<u32>(),
        any::<Option<u64>>(),
        any::<Option<i64>>(),
        prop::option::of(-1e12..1e12),
    );
    prop::collection::vec(node, 1..40)
}

fn edges() -> impl Strategy<Value = Vec<EdgeSeed>> {
    let edge = (
        any::<u16>(),
        any::<u16>(),
        any::<u8>(),
        0..500i64,
        prop::bool::weighted(0.1),
        any::<Option<bool>>(),
        prop::option::of("[a-z\u{e9}\"]{0,4}"),
    );
    prop::collection::vec(edge, 0..80)
}

/// A valid graph of up to 40 nodes with attributes. Edges within the step follow a hidden order
/// of the ids, rotated so that it is not the order of the ids themselves.
pub(crate) fn graph() -> impl Strategy<Value = StepGraph> {
    (nodes(), edges(), any::<u16>()).prop_map(|(nodes, edges, turn)| build(&nodes, &edges, turn))
}

fn build(nodes: &[NodeSeed], edges: &[EdgeSeed], turn: u16) -> StepGraph {
    let mut g = StepGraph::new();
    g.meta.step = "ProfilerStep#3".into();
    g.meta.recorded_step = Some(Nanos::from_millis(7));
    for i in 0..3 {
        g.add_queue(format!("stream {i}"), QueueKind::Stream);
    }
    g.queues[1].device = Some(4);
    g.add_group(Group { name: "dp".into(), role: "data".into(), size: 2, ranks: vec![0, 1] });
    for (row, seed) in nodes.iter().enumerate() {
        let (kind, word, work, priority, grouped, sequence, bytes, tokens, spread) = *seed;
        let name = g.names.intern(&format!("name{}", word % 5));
        let queue = QueueId::new(u32::from(word % 3));
        let mut node = Node::new(NodeKind::ALL[kind], name, queue, Nanos::from_nanos(work));
        node.module = g.names.intern(["", "layers.0", "layers.1"][usize::from(word % 3)]);
        node.phase = Phase::ALL[usize::from(word) % Phase::ALL.len()];
        node.priority = priority;
        node.group = grouped.then_some(GroupId::new(0));
        node.collective =
            grouped.then_some(CollectiveKind::ALL[usize::from(word) % CollectiveKind::ALL.len()]);
        node.sequence = sequence;
        node.bytes = bytes.map(Bytes::new);
        node.dtype = [None, Some(DType::Bf16), Some(DType::F8E4m3)][usize::from(word % 3)];
        g.add_node(node);
        if let Some(tokens) = tokens {
            g.node_attributes.set_i64("tokens", row, tokens);
        }
        if let Some(spread) = spread {
            g.node_attributes.set_f64("spread", row, spread);
        }
        g.node_attributes.set_i64("row", row, row as i64);
    }
    add_edges(&mut g, edges, turn);
    g
}

fn add_edges(g: &mut StepGraph, edges: &[EdgeSeed], turn: u16) {
    let count = g.node_count();
    let place = |v: usize| NodeId::from_index((v + usize::from(turn)) % count);
    for (a, b, kind, lag, next_step, flag, text) in edges {
        let (a, b) = (usize::from(*a) % count, usize::from(*b) % count);
        if a == b && !next_step {
            continue;
        }
        let kind = EdgeKind::ALL[usize::from(*kind) % EdgeKind::ALL.len()];
        let (src, dst) = if *next_step { (a, b) } else { (a.min(b), a.max(b)) };
        let mut edge = Edge::new(place(src), place(dst), kind).with_lag(Nanos::from_nanos(*lag));
        edge.distance = u16::from(*next_step);
        edge.origin = EdgeOrigin::ALL[usize::from(flag.unwrap_or(false))];
        let id = g.add_edge(edge);
        if let Some(flag) = flag {
            g.edge_attributes.set_bool("flag", id.index(), *flag);
        }
        if let Some(text) = text {
            g.edge_attributes.set_str("note", id.index(), text.as_str().into());
        }
    }
}
