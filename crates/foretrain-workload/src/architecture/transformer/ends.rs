//! What stands before and after the repeated layers.

use std::sync::Arc;

use foretrain_core::Result;

use super::Transformer;
use super::shape::Stack;
use crate::limits::{self, within};
use crate::model::{Block, Elementwise, Layer, Op, OpKind, Role, Split, Tokens};

/// From tokens to the residual stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Embedding {
    /// Tokens known.
    pub vocabulary: u64,
    /// Width of a token's row: that of the stream, or less with a projection.
    pub width: u64,
    /// Learned positions; 0 if positions are computed.
    pub positions: u64,
    /// Token types; 0 without.
    pub types: u64,
    /// A norm after the sum.
    pub norm: bool,
    /// A product with a constant after the look-up.
    pub scaled: bool,
    /// Dropout after the sum.
    pub dropout: bool,
}

/// From the residual stream to the loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// No head: the stream is the result.
    None,
    /// Scores of all tokens at every position.
    Language {
        /// With the embedding's weights.
        tied: bool,
        /// A bias per token.
        bias: bool,
        /// Scores are capped.
        soft_cap: bool,
    },
    /// A layer over the first token (BERT's encoder without a task).
    Pooler,
    /// A product, an activation and a norm before scores with the embedding's weights and a bias
    /// (BERT's pre-training).
    Masked {
        /// With the next-sentence task over the first token.
        pooler: bool,
    },
}

fn scale(name: &str, width: u64) -> Op {
    Op::new(name, OpKind::Elementwise { what: Elementwise::Scale, width }, Split::Outer)
}

fn table(name: &str, rows: u64, width: u64) -> Op {
    let kind = OpKind::Embedding { rows, width, lookups: 1 };
    Op::new(name, kind, Split::Whole).with("weight", rows * width, false)
}

fn whole(name: &str, inputs: u64, outputs: u64) -> Op {
    let kind = OpKind::Linear { inputs, outputs };
    Op::new(name, kind, Split::Whole).with("weight", inputs * outputs, false)
}

impl Embedding {
    /// A table of tokens and nothing else.
    pub fn of(vocabulary: u64, width: u64) -> Self {
        Self {
            vocabulary,
            width,
            positions: 0,
            types: 0,
            norm: false,
            scaled: false,
            dropout: false,
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        within("vocabulary", self.vocabulary, 1, limits::ROWS)?;
        within("the embedding's width", self.width, 1, limits::WIDTH)?;
        within("positions", self.positions, 0, limits::POSITIONS)?;
        within("token types", self.types, 0, limits::PARTS).map(|_| ())
    }

    /// The look-up of tokens.
    pub(super) fn tokens(&self) -> Op {
        let (rows, width) = (self.vocabulary, self.width);
        let kind = OpKind::Embedding { rows, width, lookups: 1 };
        Op::new("tokens", kind, Split::Vocabulary).with("weight", rows * width, true)
    }

    pub(super) fn layer(&self, stack: &Stack, name: &str, tokens: Tokens) -> Block {
        let hidden = stack.hidden;
        let mut ops = vec![self.tokens()];
        if self.scaled {
            ops.push(scale("scale", self.width));
        }
        if self.width != hidden {
            ops.push(whole("project", self.width, hidden));
        }
        if self.positions > 0 {
            ops.push(table("positions", self.positions, hidden));
        }
        if self.types > 0 {
            ops.push(table("types", self.types, hidden));
        }
        if self.norm {
            ops.push(stack.norms.op("norm", hidden));
        }
        if self.dropout {
            let kind = OpKind::Elementwise { what: Elementwise::Dropout, width: hidden };
            ops.push(Op::new("dropout", kind, Split::Outer));
        }
        end(name, Role::Input, tokens, hidden, ops)
    }
}

/// A layer that stands alone.
pub(super) fn end(
    name: &str,
    role: Role,
    tokens: Tokens,
    output_width: u64,
    ops: Vec<Op>,
) -> Block {
    Block {
        layer: Arc::new(Layer { name: name.to_owned(), role, tokens, output_width, ops }),
        repeat: 1,
    }
}

/// The product with all tokens' rows, and the loss over it.
pub(super) fn scores(
    vocabulary: u64,
    width: u64,
    tied: bool,
    bias: bool,
    soft_cap: bool,
) -> Vec<Op> {
    let kind = OpKind::Linear { inputs: width, outputs: vocabulary };
    let mut head = Op::new("head", kind, Split::Vocabulary);
    head.tied = tied;
    if !tied {
        head = head.with("weight", width * vocabulary, true);
    }
    if bias {
        head = head.with("bias", vocabulary, true);
    }
    let mut ops = vec![head];
    if soft_cap {
        let kind = OpKind::Elementwise { what: Elementwise::Scale, width: vocabulary };
        ops.push(Op::new("soft_cap", kind, Split::Vocabulary));
    }
    ops.push(Op::new("loss", OpKind::CrossEntropy { vocabulary }, Split::Vocabulary));
    ops
}

impl Head {
    pub(super) fn layers(self, model: &Transformer) -> Vec<Block> {
        let (hidden, embedding) = (model.stack.hidden, &model.embedding);
        let mut ops = Vec::new();
        if model.final_norm {
            ops.push(model.stack.norms.op("norm", hidden));
        }
        let mut blocks = Vec::new();
        let mut width = embedding.vocabulary;
        match self {
            Self::None | Self::Pooler => width = hidden,
            Self::Language { tied, bias, soft_cap } => {
                if embedding.width != hidden {
                    ops.push(whole("project", hidden, embedding.width));
                }
                ops.extend(scores(embedding.vocabulary, embedding.width, tied, bias, soft_cap));
            }
            Self::Masked { .. } => {
                let kind = OpKind::Elementwise { what: Elementwise::Activation, width: hidden };
                ops.extend([
                    whole("transform", hidden, hidden).with("bias", hidden, false),
                    Op::new("activation", kind, Split::Outer),
                    model.stack.norms.op("transform_norm", hidden),
                ]);
                ops.extend(scores(embedding.vocabulary, hidden, true, true, false));
            }
        }
        if !ops.is_empty() {
            blocks.push(end("output", Role::Output, Tokens::Sequence, width, ops));
        }
        if matches!(self, Self::Pooler | Self::Masked { pooler: true }) {
            let mut ops = vec![whole("pooler", hidden, hidden).with("bias", hidden, false)];
            if self != Self::Pooler {
                let next = whole("next_sentence", hidden, 2).with("bias", 2, false);
                let loss = OpKind::CrossEntropy { vocabulary: 2 };
                ops.extend([next, Op::new("loss", loss, Split::Whole)]);
            }
            blocks.push(end("pooler", Role::Output, Tokens::Fixed(1), hidden, ops));
        }
        blocks
    }
}
