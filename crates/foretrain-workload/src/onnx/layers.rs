//! From operations to layers: a graph is cut wherever a single value is handed on.

use std::collections::HashMap;

use foretrain_core::Result;

use super::operation::Step;
use super::read::Graph;
use super::values::Values;
use crate::chain::Chain;
use crate::model::Block;

/// Values that so many operations read (masks, positions) do not hold a cut up.
const SHARED: usize = 4;

/// The layers of a graph's steps.
pub(super) fn blocks(graph: &Graph, values: &Values, steps: Vec<Step>) -> Result<Vec<Block>> {
    let cuts = cuts(graph, values);
    let mut layers = Chain::default();
    for ((step, node), cut) in steps.into_iter().zip(&graph.nodes).zip(cuts) {
        let is_part = step.scores.is_some_and(|scores| values.is_joined(scores));
        if let Some(op) = step.op.filter(|_| !is_part) {
            let width = node.output.first().and_then(|name| values.sample_numbers(name));
            layers.add(op, step.positions, width.unwrap_or(1));
        }
        if cut {
            layers.cut();
        }
    }
    layers.blocks()
}

/// For each node whether only one value is alive after it.
fn cuts(graph: &Graph, values: &Values) -> Vec<bool> {
    let mut readers: HashMap<&str, (usize, usize)> = HashMap::new();
    for (at, node) in graph.nodes.iter().enumerate() {
        for input in node.input.iter().filter(|name| !name.is_empty()) {
            let reader = readers.entry(input).or_default();
            *reader = (at, reader.1 + 1);
        }
    }
    // How many values end at each node.
    let mut ends = vec![0_usize; graph.nodes.len()];
    let mut alive = 0;
    let mut cuts = Vec::with_capacity(graph.nodes.len());
    for (at, node) in graph.nodes.iter().enumerate() {
        let is_constant = node.input.iter().all(|name| values.is_constant(name));
        for output in node.output.iter().filter(|_| !is_constant) {
            if let Some(&(last, count)) = readers.get(output.as_str())
                && last > at
                && count < SHARED
            {
                alive += 1;
                ends[last] += 1;
            }
        }
        alive -= ends[at];
        cuts.push(alive <= 1);
    }
    cuts
}
