//! New times for the collectives of a graph.

use foretrain_core::{Bytes, DType, Nanos};
use foretrain_graph::{CollectiveKind, GroupId, NodeId, Phase, StepGraph};

/// One collective or point-to-point node, as a cost model needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectiveNode {
    /// The node.
    pub id: NodeId,
    /// Operation.
    pub kind: CollectiveKind,
    /// Group, if known.
    pub group: Option<GroupId>,
    /// The larger of a rank's input and output, if known.
    pub bytes: Option<Bytes>,
    /// Element type, if known.
    pub dtype: Option<DType>,
    /// Part of the step that issued it.
    pub phase: Phase,
    /// Its present time.
    pub work: Nanos,
}

/// All collective and point-to-point nodes in order.
pub fn collectives(graph: &StepGraph) -> impl Iterator<Item = CollectiveNode> + '_ {
    graph.node_ids().filter_map(|id| {
        let node = graph.node(id);
        node.kind.communicates().then_some(CollectiveNode {
            id,
            kind: node.collective.unwrap_or(CollectiveKind::Unknown),
            group: node.group,
            bytes: node.bytes,
            dtype: node.dtype,
            phase: node.phase,
            work: node.work,
        })
    })
}

/// Sets the work of every communication node to what `cost` says; `None` leaves it as it is.
/// Returns how many were changed.
pub fn recost_collectives(
    graph: &mut StepGraph,
    mut cost: impl FnMut(&StepGraph, &CollectiveNode) -> Option<Nanos>,
) -> usize {
    let nodes: Vec<CollectiveNode> = collectives(graph).collect();
    let mut changed = 0;
    for node in nodes {
        if let Some(work) = cost(graph, &node) {
            graph.set_work(node.id, work);
            changed += 1;
        }
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;
    use foretrain_graph::{Node, NodeKind, QueueKind};

    #[test]
    fn only_communication_is_recosted() {
        let mut graph = StepGraph::new();
        let queue = graph.add_queue("stream 7", QueueKind::Stream);
        let name = graph.names.intern("x");
        let work = Nanos::from_nanos(5);
        let kernel = graph.add_node(Node::new(NodeKind::Kernel, name, queue, work));
        let mut node = Node::new(NodeKind::Collective, name, queue, work);
        node.bytes = Some(Bytes::new(8));
        let collective = graph.add_node(node);
        let changed = recost_collectives(&mut graph, |_, node| {
            node.bytes.map(|bytes| Nanos::from_nanos(bytes.get() as i64))
        });
        assert_eq!(changed, 1);
        assert_eq!(graph.work(kernel), work);
        assert_eq!(graph.work(collective), Nanos::from_nanos(8));
    }
}
