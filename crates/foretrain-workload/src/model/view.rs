//! A model as the list of its tensors with the work that makes their gradients.

use foretrain_core::Flops;

use super::{Layer, Model, Op, Parameter};
use crate::profile::{self, Profile, Tensor};

impl Model {
    /// Its tensors in forward order, with the work of a sample of its usual or the given length.
    ///
    /// Products that an operation does as one but that have weights of their own (queries, keys and
    /// values) are layers of their own. Work without tensors goes to the next layer that has some.
    pub fn profile(&self, sequence: Option<u64>) -> Profile {
        let mut lines = Lines { layers: Vec::new(), pending: 0.0 };
        for (number, layer) in self.layers().enumerate() {
            self.lines_of(number, layer, sequence, &mut lines);
        }
        if lines.pending > 0.0 {
            lines.layers.push(profile::Layer {
                name: "end".into(),
                forward: Flops::new(lines.pending),
                tensors: Vec::new(),
            });
        }
        Profile { name: self.name.clone(), layers: lines.layers }
    }

    fn lines_of(&self, number: usize, layer: &Layer, sequence: Option<u64>, lines: &mut Lines) {
        let positions = self.sample.positions(layer.tokens, sequence);
        let source = self.sample.positions(super::Tokens::Sequence, sequence);
        for op in &layer.ops {
            let work = op.forward(positions, source).get();
            let groups = groups(op);
            if groups.is_empty() {
                lines.pending += work;
            }
            let all = op.parameters() as f64;
            for (part, tensors) in groups {
                let elements: u64 = tensors.iter().map(|tensor| tensor.elements).sum();
                let dot = if part.is_empty() { "" } else { "." };
                lines.layers.push(profile::Layer {
                    name: format!("{number}.{}.{}{dot}{part}", layer.name, op.name),
                    forward: Flops::new(
                        work * elements as f64 / all + std::mem::take(&mut lines.pending),
                    ),
                    tensors,
                });
            }
        }
    }
}

struct Lines {
    layers: Vec<profile::Layer>,
    /// Work of operations since the last one with tensors.
    pending: f64,
}

/// An operation's tensors by the part before the dot in their names (`query.weight`).
fn groups(op: &Op) -> Vec<(&'static str, Vec<Tensor>)> {
    let mut groups: Vec<(&'static str, Vec<Tensor>)> = Vec::new();
    for &Parameter { name, elements, .. } in &op.parameters {
        let (part, name) = name.rsplit_once('.').unwrap_or(("", name));
        let tensor = Tensor { name, elements };
        match groups.last_mut() {
            Some((last, tensors)) if *last == part => tensors.push(tensor),
            _ => groups.push((part, vec![tensor])),
        }
    }
    groups
}
