//! DDP's broadcast of buffers.

use foretrain_core::{Bytes, Nanos};
use foretrain_graph::attributes::well_known;
use foretrain_graph::{
    CollectiveKind, EdgeKind, GroupId, Node, NodeId, NodeKind, Phase, QueueId, StepGraph,
};

/// Lets the forward pass wait for rank 0's buffers (running statistics of batch normalisation and
/// the like), as DDP does with `broadcast_buffers=True`, its default. The broadcast runs in `queue`
/// and takes `time`. Returns its node; `None` if the step has neither kernels nor host work.
pub fn insert_buffer_broadcast(
    graph: &mut StepGraph,
    (group, queue): (GroupId, QueueId),
    bytes: Bytes,
    time: Nanos,
) -> Option<NodeId> {
    let first = first_of_forward(graph, queue)?;
    let name = graph.names.intern("buffer broadcast");
    let broadcast = Node {
        phase: Phase::Sync,
        group: Some(group),
        collective: Some(CollectiveKind::Broadcast),
        bytes: Some(bytes),
        ..Node::new(NodeKind::Collective, name, queue, time)
    };
    let kind = match graph.kind(first) {
        NodeKind::Kernel => EdgeKind::EventWait,
        _ => EdgeKind::Data,
    };
    Some(graph.insert_before(first, broadcast, kind))
}

/// Where the forward pass begins: its first kernel or, without a device, its first host work.
fn first_of_forward(graph: &StepGraph, not_on: QueueId) -> Option<NodeId> {
    let is_work = |id: &NodeId| graph.queue(*id) != not_on;
    let start = |id: &NodeId| {
        let recorded = graph.node_attributes.get_i64(well_known::RECORDED_START, id.index());
        (graph.node(*id).phase != Phase::Forward, recorded.unwrap_or(0), *id)
    };
    let of_kind = |kind: NodeKind| {
        graph.node_ids().filter(|&id| graph.kind(id) == kind).filter(is_work).min_by_key(start)
    };
    of_kind(NodeKind::Kernel).or_else(|| of_kind(NodeKind::HostSegment))
}
