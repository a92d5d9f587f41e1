//! Gradient synchronisation for recordings of one replica.

use foretrain_core::{Bytes, Nanos, Result};
use foretrain_graph::attributes::well_known;
use foretrain_graph::{Group, NodeId, NodeKind, Phase, StepGraph};
use foretrain_rewrite::{BucketCaps, insert_ddp};

use crate::roles::Role;

/// Inserts DDP's bucketed all-reduces over `replicas` replicas, as yet without a time.
pub(crate) fn insert_gradients(
    graph: &mut StepGraph,
    name: String,
    replicas: u32,
    buckets: BucketCaps,
    gradient_bytes: Option<Bytes>,
) -> Result<Vec<NodeId>> {
    if let Some(bytes) = gradient_bytes {
        spread_gradients(graph, bytes);
    }
    let group =
        Group { name, role: Role::DataParallel.as_str().into(), size: replicas, ranks: Vec::new() };
    Ok(insert_ddp(graph, buckets, group, &mut |_| Nanos::ZERO)?.nodes)
}

/// Whether a step has a backward pass to synchronise.
pub(crate) fn has_backward(graph: &StepGraph) -> bool {
    graph.node_ids().any(|id| {
        let node = graph.node(id);
        node.phase == Phase::Backward
            && matches!(node.kind, NodeKind::HostSegment | NodeKind::Kernel)
    })
}

/// Spreads gradient bytes of unknown position evenly over the backward pass.
fn spread_gradients(graph: &mut StepGraph, bytes: Bytes) {
    let points: Vec<NodeId> = graph
        .node_ids()
        .filter(|&id| {
            let node = graph.node(id);
            node.phase == Phase::Backward && node.kind == NodeKind::HostSegment
        })
        .collect();
    let count = points.len().max(1) as u64;
    for (i, id) in points.into_iter().enumerate() {
        let share = bytes.get() / count + u64::from((i as u64) < bytes.get() % count);
        let share = i64::try_from(share).unwrap_or(i64::MAX);
        graph.node_attributes.set_i64(well_known::GRADIENT_BYTES, id.index(), share);
    }
}
