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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ddp::tests::{cpu_step, group};
    use crate::{BucketCaps, insert_ddp};

    #[test]
    fn the_forward_pass_waits_for_the_buffers() {
        let (mut graph, [forward, ..]) = cpu_step();
        let inserted = insert_ddp(&mut graph, BucketCaps::default(), group(), &mut |_| Nanos::ZERO);
        let like = graph.node(inserted.expect("gradients").nodes[0]);
        let before = graph.longest_path().expect("no cycle").length;
        let place = (like.group.expect("a group"), like.queue);
        let time = Nanos::from_nanos(30);
        let node = insert_buffer_broadcast(&mut graph, place, Bytes::new(64), time);
        let node = node.expect("a forward pass");
        assert_eq!(graph.longest_path().expect("no cycle").length, before + time);
        assert!(graph.edges().iter().any(|edge| (edge.src, edge.dst) == (node, forward)));
    }

    #[test]
    fn a_step_without_work_has_nothing_to_wait() {
        let mut graph = StepGraph::new();
        let queue = graph.add_queue("sync", foretrain_graph::QueueKind::Thread);
        let place = (graph.add_group(group()), queue);
        let none = insert_buffer_broadcast(&mut graph, place, Bytes::new(64), Nanos::ZERO);
        assert_eq!((none, graph.node_count()), (None, 0));
    }
}
