//! The order of the work of a queue.

use foretrain_graph::{EdgeKind, NodeId, StepGraph};

/// The nodes of every queue in the order that edges give them within a step, one list per
/// unbroken chain.
pub(super) fn chains(graph: &StepGraph) -> Vec<Vec<NodeId>> {
    let nodes = graph.node_count();
    let mut next: Vec<Option<NodeId>> = vec![None; nodes];
    let mut has_previous = vec![false; nodes];
    for edge in graph.edges() {
        let is_order = matches!(edge.kind, EdgeKind::StreamOrder | EdgeKind::ThreadOrder);
        let fits = edge.distance == 0 && edge.src != edge.dst;
        let (src, dst) = (edge.src.index(), edge.dst.index());
        if is_order
            && fits
            && graph.queue(edge.src) == graph.queue(edge.dst)
            && next[src].is_none()
            && !has_previous[dst]
        {
            next[src] = Some(edge.dst);
            has_previous[dst] = true;
        }
    }
    let heads = graph.node_ids().filter(|id| !has_previous[id.index()]);
    heads.map(|head| std::iter::successors(Some(head), |id| next[id.index()]).collect()).collect()
}
