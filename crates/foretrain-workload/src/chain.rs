//! Operations one after the other, gathered into layers.

use std::sync::Arc;

use foretrain_core::{InputError, Result};

use crate::limits;
use crate::model::{Block, Layer, Op, OpKind, Role, Tokens};

/// Layers under construction, for readers of graphs without layers of their own.
#[derive(Debug, Default)]
pub struct Chain {
    layers: Vec<Layer>,
    ops: Vec<(Op, u64)>,
    positions: Option<u64>,
}

impl Chain {
    /// The next operation: the positions of a sample that it is applied to (`None` if it has no
    /// opinion: its width is then that of the whole sample) and the numbers of its result. One of
    /// other positions begins another layer.
    pub fn add(&mut self, op: Op, positions: Option<u64>, numbers: u64) {
        if let (Some(wanted), Some(have)) = (positions, self.positions)
            && wanted != have
        {
            self.close();
        }
        self.positions = self.positions.or(positions);
        self.ops.push((op, numbers));
    }

    /// A single value is handed on here: the layer ends, if it holds weights.
    pub fn cut(&mut self) {
        if self.ops.iter().any(|(op, _)| !op.parameters.is_empty()) {
            self.close();
        }
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

    /// The layers.
    ///
    /// # Errors
    /// If no operation was added.
    pub fn blocks(mut self) -> Result<Vec<Block>> {
        self.close();
        let mut layers = self.layers;
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
