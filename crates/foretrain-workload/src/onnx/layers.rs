//! From operations to layers: a graph is cut wherever a single value is handed on.

use std::collections::HashMap;
use std::sync::Arc;

use foretrain_core::{InputError, Result};

use super::operation::Step;
use super::read::Graph;
use super::values::Values;
use crate::limits;
use crate::model::{Block, Layer, Op, OpKind, Role, Tokens};

/// Values that so many operations read (masks, positions) do not hold a cut up.
const SHARED: usize = 4;

/// The layers of a graph's steps.
pub(super) fn blocks(graph: &Graph, values: &Values, steps: Vec<Step>) -> Result<Vec<Block>> {
    let cuts = cuts(graph, values);
    let mut layers = Gathered::default();
    for ((step, node), cut) in steps.into_iter().zip(&graph.nodes).zip(cuts) {
        let is_part = step.scores.is_some_and(|scores| values.is_joined(scores));
        if let Some(op) = step.op.filter(|_| !is_part) {
            let width = node.output.first().and_then(|name| values.sample_numbers(name));
            layers.add(op, step.positions, width.unwrap_or(1));
        }
        if cut && layers.has_weights() {
            layers.close();
        }
    }
    layers.close();
    let mut layers = layers.layers;
    if layers.is_empty() {
        return Err(InputError::new("the graph holds no operation that takes time"));
    }
    let last = layers.len() - 1;
    if last >= 2 {
        layers[0].role = Role::Input;
        layers[last].role = Role::Output;
    }
    Ok(layers.into_iter().map(|layer| Block { layer: Arc::new(layer), repeat: 1 }).collect())
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

#[derive(Default)]
struct Gathered {
    layers: Vec<Layer>,
    ops: Vec<(Op, u64)>,
    positions: Option<u64>,
}

impl Gathered {
    /// An operation of other positions begins another layer.
    fn add(&mut self, op: Op, positions: Option<u64>, numbers: u64) {
        if let (Some(wanted), Some(have)) = (positions, self.positions)
            && wanted != have
        {
            self.close();
        }
        self.positions = self.positions.or(positions);
        self.ops.push((op, numbers));
    }

    fn has_weights(&self) -> bool {
        self.ops.iter().any(|(op, _)| !op.parameters.is_empty())
    }

    fn close(&mut self) {
        let positions = self.positions.take().unwrap_or(1).max(1);
        let ops = std::mem::take(&mut self.ops);
        let Some((_, numbers)) = ops.last() else { return };
        let output_width = numbers.div_ceil(positions).max(1);
        let ops = ops.into_iter().map(|(op, _)| per_position(op, positions)).collect();
        // What is beyond the most layers goes with the last.
        let number = self.layers.len();
        match self.layers.last_mut() {
            Some(last) if number as u64 + 1 >= limits::LAYERS => last.ops.extend::<Vec<Op>>(ops),
            _ => self.layers.push(Layer {
                name: format!("layer{number}"),
                role: Role::Body,
                tokens: Tokens::Fixed(positions),
                output_width,
                ops,
            }),
        }
    }
}

/// Widths of the whole sample become widths per position.
fn per_position(mut op: Op, positions: u64) -> Op {
    match &mut op.kind {
        OpKind::Elementwise { width, .. } => *width = width.div_ceil(positions),
        OpKind::Pool { inputs, outputs } => {
            *inputs = inputs.div_ceil(positions);
            *outputs = outputs.div_ceil(positions);
        }
        _ => {}
    }
    op
}
