//! Memory that tables no longer need.

use crate::step_graph::{NodeTable, StepGraph};

impl StepGraph {
    /// Gives back memory that the tables reserved while they grew: a recording keeps the graph of
    /// every step.
    pub fn shrink_to_fit(&mut self) {
        let NodeTable {
            kind,
            name,
            queue,
            work,
            phase,
            module,
            priority,
            group,
            collective,
            sequence,
            bytes,
            dtype,
        } = &mut self.nodes;
        kind.shrink_to_fit();
        name.shrink_to_fit();
        queue.shrink_to_fit();
        work.shrink_to_fit();
        phase.shrink_to_fit();
        module.shrink_to_fit();
        priority.shrink_to_fit();
        group.shrink_to_fit();
        collective.shrink_to_fit();
        sequence.shrink_to_fit();
        bytes.shrink_to_fit();
        dtype.shrink_to_fit();
        self.edges.shrink_to_fit();
        self.node_attributes.shrink_to_fit();
        self.edge_attributes.shrink_to_fit();
    }
}
