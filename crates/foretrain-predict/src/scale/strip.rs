//! Taking the recorded gradient synchronisation out of a step.

use std::collections::BTreeMap;

use foretrain_graph::attributes::well_known::GRADIENT_BYTES;
use foretrain_graph::{CollectiveKind, EdgeKind, NodeId, StepGraph};
use foretrain_rewrite::{collectives, strategy};
use rustc_hash::FxHashMap;

use super::layout::Layout;
use crate::roles::Role;

/// Leaves the order that data-parallel collectives imposed, and takes their time. Where the recording
/// shows no gradients, each reduction counts as one that becomes ready where it was launched; returns whether that was so.
pub(super) fn strip_synchronisation(graph: &mut StepGraph, layout: &Layout) -> bool {
    let nodes = synchronising(graph, layout);
    let by_bucket = graph.node_attributes.column(GRADIENT_BYTES).is_none();
    if by_bucket {
        gradients_of_buckets(graph, &nodes);
    }
    strategy::strip(graph, nodes);
    by_bucket
}

/// The collectives that keep replicas equal.
pub(super) fn synchronising(graph: &StepGraph, layout: &Layout) -> Vec<NodeId> {
    use CollectiveKind::{AllGather, AllReduce, Broadcast, ReduceScatter};
    let synchronises = |kind| matches!(kind, AllReduce | ReduceScatter | AllGather | Broadcast);
    collectives(graph)
        .filter(|node| {
            let group = node.group.map(foretrain_graph::GroupId::index);
            synchronises(node.kind) && group.is_some_and(|g| layout.role(g) == Role::DataParallel)
        })
        .map(|node| node.id)
        .collect()
}

fn gradients_of_buckets(graph: &mut StepGraph, nodes: &[NodeId]) {
    let reduces = |id: &NodeId| {
        let kind = graph.node(*id).collective;
        matches!(kind, Some(CollectiveKind::AllReduce | CollectiveKind::ReduceScatter))
    };
    let bytes: FxHashMap<NodeId, u64> = nodes
        .iter()
        .filter(|id| reduces(id))
        .filter_map(|id| Some((*id, graph.node(*id).bytes?.get())))
        .collect();
    let mut ready: BTreeMap<NodeId, u64> = BTreeMap::new();
    for edge in graph.edges().iter().filter(|edge| edge.kind == EdgeKind::Launch) {
        if let Some(bytes) = bytes.get(&edge.dst) {
            *ready.entry(edge.src).or_insert(0) += bytes;
        }
    }
    for (host, bytes) in ready {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        graph.node_attributes.set_i64(GRADIENT_BYTES, host.index(), bytes);
    }
}
