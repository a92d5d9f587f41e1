//! Nodes by kind and what is known of them.

use foretrain_core::{Bytes, Nanos};
use foretrain_graph::attributes::well_known;
use foretrain_graph::{NodeId, NodeKind, StepGraph};

use super::has_duration;

/// A sum over nodes, and over how many of them each figure is known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NodeTally {
    /// Nodes.
    pub nodes: usize,
    /// Nodes with a duration.
    pub timed: usize,
    /// Sum of the known durations.
    pub time: Nanos,
    /// Nodes with a count of floating-point operations.
    pub with_flops: usize,
    /// Their operations.
    pub flops: f64,
    /// Nodes with a size: the payload of copies and communication, else the bytes moved.
    pub with_bytes: usize,
    /// Their bytes.
    pub bytes: u64,
}

/// Nodes of one kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodesOfKind {
    /// The kind.
    pub kind: NodeKind,
    /// How many, and what is known of them.
    pub tally: NodeTally,
}

impl NodeTally {
    /// Takes in another tally.
    pub fn add(&mut self, other: &Self) {
        self.nodes += other.nodes;
        self.timed += other.timed;
        self.time += other.time;
        self.with_flops += other.with_flops;
        self.flops += other.flops;
        self.with_bytes += other.with_bytes;
        self.bytes = self.bytes.saturating_add(other.bytes);
    }

    fn count(&mut self, graph: &StepGraph, id: NodeId) {
        self.nodes += 1;
        if has_duration(graph, id) {
            self.timed += 1;
            self.time += graph.work(id);
        }
        let attributes = &graph.node_attributes;
        let flops = attributes.get_f64(well_known::FLOPS, id.index());
        if let Some(flops) = flops.filter(|flops| flops.is_finite() && *flops >= 0.0) {
            self.with_flops += 1;
            self.flops += flops;
        }
        let moved = || u64::try_from(attributes.get_i64(well_known::BYTES_MOVED, id.index())?).ok();
        if let Some(bytes) = graph.node(id).bytes.map(Bytes::get).or_else(moved) {
            self.with_bytes += 1;
            self.bytes = self.bytes.saturating_add(bytes);
        }
    }
}

pub(super) fn by_kind(graph: &StepGraph) -> Vec<NodesOfKind> {
    let mut tallies = vec![NodeTally::default(); NodeKind::ALL.len()];
    for id in graph.node_ids() {
        tallies[graph.kind(id) as usize].count(graph, id);
    }
    let rows = NodeKind::ALL.iter().zip(tallies);
    rows.map(|(&kind, tally)| NodesOfKind { kind, tally })
        .filter(|row| row.tally.nodes > 0)
        .collect()
}
