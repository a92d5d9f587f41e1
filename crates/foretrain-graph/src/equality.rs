//! Equality of graphs by content.

use crate::step_graph::StepGraph;

impl PartialEq for StepGraph {
    /// Whether both graphs hold the same rows in the same order. Names are compared as text, so
    /// the order in which two graphs interned them does not matter; attribute cells that were
    /// never set equal missing ones; NaN equals nothing.
    fn eq(&self, other: &Self) -> bool {
        let (a, b) = (&self.nodes, &other.nodes);
        self.node_count() == other.node_count()
            && (&a.kind, &a.queue, &a.work) == (&b.kind, &b.queue, &b.work)
            && (&a.phase, &a.priority, &a.group) == (&b.phase, &b.priority, &b.group)
            && (&a.collective, &a.sequence) == (&b.collective, &b.sequence)
            && (&a.bytes, &a.dtype) == (&b.bytes, &b.dtype)
            && self.edges == other.edges
            && self.queues == other.queues
            && self.groups == other.groups
            && self.meta == other.meta
            && self.same_names(other)
            && self.node_attributes.same_cells(&other.node_attributes)
            && self.edge_attributes.same_cells(&other.edge_attributes)
    }
}

impl StepGraph {
    fn same_names(&self, other: &Self) -> bool {
        let pairs = |a: &[_], b: &[_]| {
            a.iter().zip(b).all(|(&a, &b)| self.names.get(a) == other.names.get(b))
        };
        pairs(&self.nodes.name, &other.nodes.name) && pairs(&self.nodes.module, &other.nodes.module)
    }
}

#[cfg(test)]
mod tests {
    use foretrain_core::Nanos;

    use super::*;
    use crate::kinds::{NodeKind, QueueKind};
    use crate::step_graph::Node;

    fn named(first: &str) -> StepGraph {
        let mut g = StepGraph::new();
        g.names.intern(first);
        let queue = g.add_queue("q", QueueKind::Stream);
        let name = g.names.intern("gemm");
        g.add_node(Node::new(NodeKind::Kernel, name, queue, Nanos::ZERO));
        g
    }

    #[test]
    fn the_order_of_interning_does_not_matter_but_the_text_does() {
        let (a, mut b) = (named("x"), named("gemm"));
        assert_eq!(a, b);
        b.node_attributes.set_i64("tokens", 0, 1);
        assert_ne!(a, b);
        let mut c = named("x");
        let other = c.names.intern("relu");
        c.nodes.name[0] = other;
        assert_ne!(a, c);
    }
}
