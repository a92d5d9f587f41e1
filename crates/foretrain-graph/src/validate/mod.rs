//! What makes a graph fit to be costed and simulated.

mod paths;
mod rendezvous;

use foretrain_core::{InputError, Nanos, Result};

pub use paths::CriticalPath;

use crate::step_graph::{GroupId, NodeId, StepGraph};

impl StepGraph {
    /// Checks the whole graph: every reference is in range, no attribute has more cells than its
    /// table has rows, no work is negative, and the edges within the step have no cycle.
    ///
    /// # Errors
    /// The first fault, naming the nodes concerned.
    pub fn validate(&self) -> Result<()> {
        self.validate_references()?;
        self.validate_work()?;
        self.topological_order().map(drop)
    }

    /// Checks that ids are in range and attributes fit, without looking at order.
    ///
    /// # Errors
    /// The first fault.
    pub fn validate_references(&self) -> Result<()> {
        let t = &self.nodes;
        for i in 0..self.node_count() {
            let name_ok = t.name[i].index().max(t.module[i].index()) < self.names.len();
            let group_ok = t.group[i].is_none_or(|g| g.index() < self.groups.len());
            if t.queue[i].index() >= self.queues.len() {
                let (id, has) = (t.queue[i].get(), self.queues.len());
                return Err(self.node_error(i, &format!("runs on queue {id} of {has}")));
            }
            if !group_ok {
                let (id, has) = (t.group[i].map_or(0, GroupId::get), self.groups.len());
                return Err(self.node_error(i, &format!("belongs to group {id} of {has}")));
            }
            if !name_ok {
                return Err(self.node_error(i, "has a name that is not in the name table"));
            }
        }
        for (i, edge) in self.edges.iter().enumerate() {
            if edge.src.index().max(edge.dst.index()) >= self.node_count() {
                let (src, dst, has) = (edge.src.get(), edge.dst.get(), self.node_count());
                return Err(InputError::new(format!(
                    "edge {i} leads from node {src} to node {dst}, but there are {has} nodes"
                )));
            }
        }
        let fits = |what: &str, rows: usize, has: usize| {
            if rows <= has {
                return Ok(());
            }
            let message = format!("a {what} attribute has {rows} cells for {has} {what}s");
            Err(InputError::new(message))
        };
        fits("node", self.node_attributes.rows(), self.node_count())?;
        fits("edge", self.edge_attributes.rows(), self.edges.len())
    }

    fn validate_work(&self) -> Result<()> {
        match self.works().iter().position(|&work| work < Nanos::ZERO) {
            Some(i) => {
                let work = self.nodes.work[i].nanos();
                Err(self
                    .node_error(i, &format!("has a work of {work} ns"))
                    .hint("work is a duration and cannot be negative"))
            }
            None => Ok(()),
        }
    }

    fn node_error(&self, index: usize, what: &str) -> InputError {
        InputError::new(format!("node {} {what}", self.describe(NodeId::from_index(index))))
    }

    /// `12 "name"`, with long names cut.
    pub(crate) fn describe(&self, id: NodeId) -> String {
        let name = self.name(id);
        let cut = name.char_indices().nth(60).map_or(name, |(end, _)| &name[..end]);
        let dots = if cut.len() < name.len() { "..." } else { "" };
        format!("{} \"{cut}{dots}\"", id.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::{EdgeKind, NodeKind, QueueKind};
    use crate::step_graph::{Edge, Node, QueueId};

    fn graph(count: usize) -> StepGraph {
        let mut g = StepGraph::new();
        let queue = g.add_queue("q", QueueKind::Stream);
        for i in 0..count {
            let name = g.names.intern(&format!("n{i}"));
            g.add_node(Node::new(NodeKind::Kernel, name, queue, Nanos::from_nanos(10)));
        }
        g
    }

    fn message(g: &StepGraph) -> String {
        g.validate().unwrap_err().to_string()
    }

    #[test]
    fn every_fault_is_named() {
        let mut g = graph(2);
        g.set_work(NodeId::new(1), Nanos::from_nanos(-1));
        assert_eq!(message(&g), "node 1 \"n1\" has a work of -1 ns");

        let mut g = graph(2);
        let node = Node { queue: QueueId::new(4), ..g.node(NodeId::new(1)) };
        g.set_node(NodeId::new(1), node);
        assert_eq!(message(&g), "node 1 \"n1\" runs on queue 4 of 1");

        let mut g = graph(2);
        let node = Node { group: Some(GroupId::new(0)), ..g.node(NodeId::new(1)) };
        g.set_node(NodeId::new(1), node);
        assert_eq!(message(&g), "node 1 \"n1\" belongs to group 0 of 0");

        let mut g = graph(2);
        g.add_edge(Edge::new(NodeId::new(0), NodeId::new(2), EdgeKind::Data));
        assert_eq!(message(&g), "edge 0 leads from node 0 to node 2, but there are 2 nodes");

        let mut g = graph(2);
        g.node_attributes.set_i64("tokens", 2, 1);
        assert_eq!(message(&g), "a node attribute has 3 cells for 2 nodes");

        let mut g = graph(2);
        g.add_edge(Edge::new(NodeId::new(1), NodeId::new(1), EdgeKind::Data));
        assert_eq!(message(&g), "the step's edges form a cycle: 1 \"n1\" -> 1 \"n1\"");
    }

    #[test]
    fn a_cycle_is_told_by_its_shortest_way_round() {
        let mut g = graph(8);
        // A tail into and out of a long cycle with a shortcut: 0 -> 1 -> 2 -> 3 -> 4 -> 1, 2 -> 4.
        for (src, dst) in [(0, 1), (1, 2), (2, 3), (3, 4), (4, 1), (2, 4), (4, 5), (5, 6)] {
            g.add_edge(Edge::new(NodeId::new(src), NodeId::new(dst), EdgeKind::Data));
        }
        assert_eq!(
            message(&g),
            "the step's edges form a cycle: 1 \"n1\" -> 2 \"n2\" -> 4 \"n4\" -> 1 \"n1\""
        );
        let back = g.edges().iter().position(|e| e.src.get() == 4 && e.dst.get() == 1).unwrap();
        g.edges_mut()[back].distance = 1;
        assert!(g.validate().is_ok(), "a cycle over a step boundary is the period, not a fault");
    }
}
