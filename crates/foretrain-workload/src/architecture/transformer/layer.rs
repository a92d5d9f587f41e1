//! One layer of a stack, and the stack as runs of equal layers.

use std::sync::Arc;

use super::attention::Place;
use super::shape::{Arrangement, Norms, Stack};
use crate::model::{Block, Elementwise, Layer, Op, OpKind, Role, Split, Tokens};

/// What makes a layer of a stack differ from the others.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Variant {
    window: Option<u64>,
    has_experts: bool,
}

impl Norms {
    /// A norm over the residual stream.
    pub(super) fn op(self, name: impl Into<String>, width: u64) -> Op {
        let op = Op::new(name, OpKind::Norm { norm: self.norm, width }, Split::Outer);
        match self.tensors {
            0 => op,
            1 => op.with("weight", width, false),
            _ => op.with("weight", width, false).with("bias", width, false),
        }
    }
}

impl Stack {
    /// Runs of equal layers in forward order; a layer that comes back is shared.
    pub(super) fn blocks(&self, name: &str, tokens: Tokens, crosses: bool) -> Vec<Block> {
        let mut kinds: Vec<(Variant, Arc<Layer>)> = Vec::new();
        let mut blocks: Vec<Block> = Vec::new();
        for number in 0..self.layers {
            let variant = Variant {
                window: self.window(number as usize),
                has_experts: self.experts.is_some_and(|experts| experts.is_in(number)),
            };
            let known = kinds.iter().find(|(other, _)| *other == variant);
            let layer = match known {
                Some((_, layer)) => Arc::clone(layer),
                None => {
                    let layer = Arc::new(self.layer(name, variant, tokens, crosses));
                    kinds.push((variant, Arc::clone(&layer)));
                    layer
                }
            };
            match blocks.last_mut() {
                Some(last) if Arc::ptr_eq(&last.layer, &layer) => last.repeat += 1,
                _ => blocks.push(Block { layer, repeat: 1 }),
            }
        }
        blocks
    }

    fn layer(&self, name: &str, variant: Variant, tokens: Tokens, crosses: bool) -> Layer {
        // Alone, a kind needs no name of its own.
        let has_windows = self.windows.iter().any(|window| *window != self.windows[0]);
        let local = if has_windows && variant.window.is_some() { "local-" } else { "" };
        let experts = if variant.has_experts { "moe-" } else { "" };
        Layer {
            name: format!("{local}{experts}{name}"),
            role: Role::Body,
            tokens,
            output_width: self.hidden,
            ops: self.ops(variant, crosses),
        }
    }

    fn ops(&self, variant: Variant, crosses: bool) -> Vec<Op> {
        let place = Place {
            prefix: "attention",
            hidden: self.hidden,
            window: variant.window,
            cross: false,
            norms: self.norms,
        };
        let attention = self.attention.ops(place);
        let forward = match self.experts {
            Some(experts) if variant.has_experts => experts.ops(self.hidden),
            _ => self.perceptron.ops("mlp", self.hidden),
        };
        if let Arrangement::Parallel { shared_norm } = self.arrangement {
            return self.side_by_side(attention, forward, shared_norm);
        }
        let mut ops = self.half("attention", attention);
        if crosses {
            let place = Place { prefix: "cross", cross: true, window: None, ..place };
            ops.extend(self.half("cross", self.attention.ops(place)));
        }
        ops.extend(self.half("mlp", forward));
        ops
    }

    /// A half with its norms and the sum with the residual stream.
    fn half(&self, name: &str, inner: Vec<Op>) -> Vec<Op> {
        use Arrangement::{PostNorm, PreNorm, ResultNorm, Sandwich};
        let norm = |part: &str| self.norms.op(format!("{name}.{part}"), self.hidden);
        let mut ops = Vec::with_capacity(inner.len() + 3);
        if matches!(self.arrangement, PreNorm | Sandwich) {
            ops.push(norm("norm"));
        }
        ops.extend(inner);
        if matches!(self.arrangement, Sandwich | ResultNorm) {
            ops.push(norm("result_norm"));
        }
        ops.push(self.residual(name));
        if self.arrangement == PostNorm {
            ops.push(norm("norm"));
        }
        ops
    }

    fn side_by_side(&self, attention: Vec<Op>, mut forward: Vec<Op>, shared: bool) -> Vec<Op> {
        let mut ops = vec![self.norms.op("norm", self.hidden)];
        ops.extend(attention);
        // Both halves read the stream (or its norm), which the first keeps.
        if shared {
            for op in forward.iter_mut().take(1) {
                op.keeps_input = false;
            }
        } else {
            let mut norm = self.norms.op("mlp.norm", self.hidden);
            norm.keeps_input = false;
            ops.push(norm);
        }
        ops.extend(forward);
        ops.extend([self.residual("attention"), self.residual("mlp")]);
        ops
    }

    fn residual(&self, name: &str) -> Op {
        let what = if self.dropout { Elementwise::DropoutResidual } else { Elementwise::Residual };
        let kind = OpKind::Elementwise { what, width: self.hidden };
        Op::new(format!("{name}.residual"), kind, Split::Outer)
    }
}
