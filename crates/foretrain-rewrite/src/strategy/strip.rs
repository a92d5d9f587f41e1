//! Taking recorded synchronisation out of a step, to put another in its place.

use foretrain_core::Nanos;
use foretrain_graph::attributes::well_known;
use foretrain_graph::{NodeId, NodeKind, StepGraph};

/// Turns communication nodes into marks without work: what came before them still comes before
/// what came after. Ids of nodes stay. Returns how many there were.
pub fn strip(graph: &mut StepGraph, nodes: impl IntoIterator<Item = NodeId>) -> usize {
    let mut count = 0;
    for id in nodes {
        let mut node = graph.node(id);
        if !node.kind.communicates() {
            continue;
        }
        (node.kind, node.work) = (NodeKind::Mark, Nanos::ZERO);
        (node.group, node.collective, node.bytes, node.dtype) = (None, None, None, None);
        graph.set_node(id, node);
        let provenance = "stands for synchronisation that was taken out";
        graph.node_attributes.set_str(well_known::PROVENANCE, id.index(), provenance.into());
        count += 1;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use foretrain_graph::{CollectiveKind, Edge, EdgeKind, Node, QueueKind};

    #[test]
    fn order_stays_and_work_goes() {
        let mut graph = StepGraph::new();
        let queue = graph.add_queue("stream 7", QueueKind::Stream);
        let name = graph.names.intern("x");
        let work = Nanos::from_micros(5);
        let kernel = graph.add_node(Node::new(NodeKind::Kernel, name, queue, work));
        let node = Node::new(NodeKind::Collective, name, queue, work);
        let collective = Some(CollectiveKind::AllReduce);
        let reduce = graph.add_node(Node { collective, ..node });
        graph.add_edge(Edge::new(kernel, reduce, EdgeKind::EventWait));
        let all = graph.node_ids();
        assert_eq!(strip(&mut graph, all), 1);
        assert_eq!((graph.work(kernel), graph.work(reduce)), (work, Nanos::ZERO));
        assert_eq!((graph.kind(reduce), graph.edges().len()), (NodeKind::Mark, 1));
    }
}
