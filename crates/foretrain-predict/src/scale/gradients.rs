//! Gradient synchronisation for recordings of one replica.

use foretrain_core::{Bandwidth, Bytes, Estimate, Nanos, Result};
use foretrain_cost::{CollectiveCall, Fabric, collective_time};
use foretrain_graph::attributes::well_known;
use foretrain_graph::{CollectiveKind, Group, NodeId, NodeKind, Phase, StepGraph};
use foretrain_rewrite::{
    copy_into_buckets, copy_out_of_buckets, insert_buffer_broadcast, insert_ddp,
};

use super::PredictOptions;
use super::copies::one_way;
use crate::roles::Role;

/// Where DDP synchronises, and what its copies cost.
pub(super) struct Synchronisation<'a> {
    /// Name of the group.
    pub(super) name: String,
    pub(super) replicas: u32,
    pub(super) fabric: &'a Fabric,
    /// Gradient bytes over the time of copying them into buckets and back, if they are copied.
    pub(super) copies: Option<Bandwidth>,
}

/// A collective that was inserted, and its time.
pub(super) type Inserted = (NodeId, CollectiveCall, Estimate<Nanos>);

/// Inserts what DDP does: a broadcast of buffers, copies, bucketed all-reduces. Returns the
/// collectives.
pub(super) fn insert_gradients(
    graph: &mut StepGraph,
    synchronisation: Synchronisation<'_>,
    options: &PredictOptions,
) -> Result<Vec<Inserted>> {
    let Synchronisation { name, replicas, fabric, copies } = synchronisation;
    if let Some(bytes) = options.gradient_bytes {
        spread_gradients(graph, bytes);
    }
    let copy = copies.map(|rate| move |bytes| one_way(bytes, rate));
    if let Some(copy) = &copy {
        copy_into_buckets(graph, copy);
    }
    let group =
        Group { name, role: Role::DataParallel.as_str().into(), size: replicas, ranks: Vec::new() };
    let mut calls = Vec::new();
    let inserted = insert_ddp(graph, options.buckets, group, &mut |bytes| {
        let call = CollectiveCall::new(CollectiveKind::AllReduce, bytes);
        let time = collective_time(&call, fabric).time;
        calls.push((call, time));
        time.value
    })?;
    if let Some(copy) = &copy {
        copy_out_of_buckets(graph, &inserted, copy);
    }
    let timed = inserted.nodes.iter().zip(calls);
    let mut timed: Vec<Inserted> = timed.map(|(&id, (call, time))| (id, call, time)).collect();
    timed.extend(broadcast(graph, inserted.nodes.first().copied(), fabric, options));
    Ok(timed)
}

/// The broadcast of buffers, if there are any, in the group and queue of a gradient all-reduce.
fn broadcast(
    graph: &mut StepGraph,
    like: Option<NodeId>,
    fabric: &Fabric,
    options: &PredictOptions,
) -> Option<Inserted> {
    let bytes = options.buffer_bytes?;
    let like = graph.node(like?);
    let call = CollectiveCall::new(CollectiveKind::Broadcast, bytes);
    let time = collective_time(&call, fabric).time;
    let place = (like.group?, like.queue);
    let node = insert_buffer_broadcast(graph, place, bytes, time.value)?;
    Some((node, call, time))
}

/// Whether a step has a backward pass to synchronise.
pub(super) fn has_backward(graph: &StepGraph) -> bool {
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
