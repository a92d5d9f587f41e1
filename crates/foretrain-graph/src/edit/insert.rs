//! Inserting nodes and moving edges.

use crate::kinds::EdgeKind;
use crate::step_graph::{Edge, EdgeId, Node, NodeId, StepGraph};

impl StepGraph {
    /// Puts `node` behind `at`: whatever left `at` now leaves the new node, and one edge of `kind`
    /// without delay leads from `at` to it. Passes over all edges; to insert at many places use
    /// [`insert_after_each`](Self::insert_after_each).
    pub fn insert_after(&mut self, at: NodeId, node: Node, kind: EdgeKind) -> NodeId {
        self.insert_after_each(&[(at, node)], kind)[0]
    }

    /// Puts a node behind each of several nodes, in one pass over the edges. Of several nodes for
    /// one place, each goes behind the one before.
    pub fn insert_after_each(&mut self, places: &[(NodeId, Node)], kind: EdgeKind) -> Vec<NodeId> {
        let mut last: Vec<NodeId> = self.node_ids().collect();
        let mut links = Vec::with_capacity(places.len());
        let mut new_ids = Vec::with_capacity(places.len());
        for &(at, node) in places {
            let id = self.add_node(node);
            links.push(Edge::new(last[at.index()], id, kind));
            last[at.index()] = id;
            new_ids.push(id);
        }
        for edge in &mut self.edges {
            edge.src = last[edge.src.index()];
        }
        self.edges.extend(links);
        new_ids
    }

    /// Puts `node` before `at`: whatever reached `at` now reaches the new node, and one edge of
    /// `kind` without delay leads from it to `at`.
    pub fn insert_before(&mut self, at: NodeId, node: Node, kind: EdgeKind) -> NodeId {
        self.insert_before_each(&[(at, node)], kind)[0]
    }

    /// Puts a node before each of several nodes, in one pass over the edges. Of several nodes for
    /// one place, each goes before the one given earlier.
    pub fn insert_before_each(&mut self, places: &[(NodeId, Node)], kind: EdgeKind) -> Vec<NodeId> {
        let mut first: Vec<NodeId> = self.node_ids().collect();
        let mut links = Vec::with_capacity(places.len());
        let mut new_ids = Vec::with_capacity(places.len());
        for &(at, node) in places {
            let id = self.add_node(node);
            links.push(Edge::new(id, first[at.index()], kind));
            first[at.index()] = id;
            new_ids.push(id);
        }
        for edge in &mut self.edges {
            edge.dst = first[edge.dst.index()];
        }
        self.edges.extend(links);
        new_ids
    }

    /// Puts `node` on an edge: the edge, with its kind, delay, distance and attributes, now ends
    /// at the new node, and an edge of the same kind without delay leads on to the old target.
    pub fn insert_on_edge(&mut self, edge: EdgeId, node: Node) -> NodeId {
        let id = self.add_node(node);
        let first = &mut self.edges[edge.index()];
        let second = Edge { origin: first.origin, ..Edge::new(id, first.dst, first.kind) };
        first.dst = id;
        self.edges.push(second);
        id
    }

    /// Moves the ends of edges: each edge becomes what `rewire` makes of it. Attributes stay.
    pub fn rewire(&mut self, mut rewire: impl FnMut(EdgeId, Edge) -> Edge) {
        for (i, edge) in self.edges.iter_mut().enumerate() {
            *edge = rewire(EdgeId::from_index(i), *edge);
        }
    }
}

#[cfg(test)]
mod tests {
    use foretrain_core::Nanos;

    use super::*;
    use crate::kinds::{NodeKind, QueueKind};

    fn chain() -> (StepGraph, Node) {
        let mut g = StepGraph::new();
        let queue = g.add_queue("q", QueueKind::Stream);
        let name = g.names.intern("k");
        let node = Node::new(NodeKind::Kernel, name, queue, Nanos::from_nanos(10));
        let ids: Vec<_> = (0..3).map(|_| g.add_node(node)).collect();
        for pair in ids.windows(2) {
            let lag = Nanos::from_nanos(1);
            g.add_edge(Edge::new(pair[0], pair[1], EdgeKind::StreamOrder).with_lag(lag));
        }
        (g, node)
    }

    fn length(g: &StepGraph) -> i64 {
        g.longest_path().unwrap().length.nanos()
    }

    #[test]
    fn inserting_lengthens_the_chain_wherever_it_happens() {
        for place in 0..3 {
            let (mut g, node) = chain();
            g.insert_after(NodeId::new(place), node, EdgeKind::StreamOrder);
            assert_eq!(length(&g), 42, "after {place}");
            let (mut g, node) = chain();
            g.insert_before(NodeId::new(place), node, EdgeKind::StreamOrder);
            assert_eq!(length(&g), 42, "before {place}");
        }
        let (mut g, node) = chain();
        g.insert_on_edge(EdgeId::new(1), node);
        assert_eq!(length(&g), 42);
        let (mut g, node) = chain();
        let at = NodeId::new(1);
        let new = g.insert_after_each(&[(at, node), (at, node)], EdgeKind::StreamOrder);
        assert_eq!(length(&g), 52);
        assert!(g.edges().contains(&Edge::new(new[0], new[1], EdgeKind::StreamOrder)));
    }

    #[test]
    fn rewiring_moves_ends() {
        let (mut g, _) = chain();
        g.rewire(|_, mut edge| {
            edge.src = NodeId::new(0);
            edge
        });
        assert_eq!(length(&g), 21);
    }
}
