//! An encoder and a decoder that attends to its result (T5, the first transformer).

use foretrain_core::Result;

use super::ends::{Embedding, end, scores};
use super::shape::Stack;
use crate::limits::{self, within};
use crate::model::{Block, Elementwise, Model, Op, OpKind, Role, Sample, Split, Tokens};

/// Two stacks and one vocabulary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncoderDecoder {
    /// Over the source; queries see everything.
    pub encoder: Stack,
    /// Over the target, with attention to the source in every layer.
    pub decoder: Stack,
    /// Both sequences' tokens.
    pub embedding: Embedding,
    /// Distances with a trainable score per head, a table for each stack; 0 for none.
    pub distances: u64,
    /// A norm after the last layer of each stack.
    pub final_norms: bool,
    /// The output layer shares the embedding's weights.
    pub tied: bool,
    /// Usual tokens of the source.
    pub source: u64,
    /// Usual tokens of the target.
    pub target: u64,
}

impl EncoderDecoder {
    /// Its layers: the source's, then the target's.
    ///
    /// # Errors
    /// If a dimension is zero or beyond any model.
    pub fn model(&self, name: impl Into<String>, family: impl Into<String>) -> Result<Model> {
        self.encoder.check()?;
        self.decoder.check()?;
        self.embedding.check()?;
        within("distances", self.distances, 0, limits::POSITIONS)?;
        for length in [self.source, self.target] {
            within("sequence", length, 1, limits::POSITIONS)?;
        }
        let mut blocks = vec![self.input(&self.encoder, "source-embedding", Tokens::Sequence)];
        blocks.extend(self.encoder.blocks("encoder", Tokens::Sequence, false));
        if self.final_norms {
            let hidden = self.encoder.hidden;
            let norm = vec![self.encoder.norms.op("norm", hidden)];
            blocks.push(end("encoder-output", Role::Input, Tokens::Sequence, hidden, norm));
        }
        let mut target = self.input(&self.decoder, "target-embedding", Tokens::Target);
        share_tokens(&mut target);
        blocks.push(target);
        blocks.extend(self.decoder.blocks("decoder", Tokens::Target, true));
        blocks.push(self.output());
        let sample = Sample::Pair { source: self.source, target: self.target };
        Model::new(name, family, sample, blocks)
    }

    fn input(&self, stack: &Stack, name: &str, tokens: Tokens) -> Block {
        let mut block = self.embedding.layer(stack, name, tokens);
        if self.distances > 0 {
            let heads = stack.attention.heads;
            let kind = OpKind::Elementwise { what: Elementwise::Scale, width: heads };
            let scores = Op::new("distances", kind, Split::Inner);
            let layer = std::sync::Arc::make_mut(&mut block.layer);
            layer.ops.push(scores.with("weight", self.distances * heads, true));
        }
        block
    }

    fn output(&self) -> Block {
        let (hidden, vocabulary) = (self.decoder.hidden, self.embedding.vocabulary);
        let mut ops = Vec::new();
        if self.final_norms {
            ops.push(self.decoder.norms.op("norm", hidden));
        }
        ops.extend(scores(vocabulary, hidden, self.tied, false, false));
        end("output", Role::Output, Tokens::Target, vocabulary, ops)
    }
}

/// The second table of tokens is the first.
fn share_tokens(block: &mut Block) {
    let layer = std::sync::Arc::make_mut(&mut block.layer);
    for op in layer.ops.iter_mut().filter(|op| op.split == Split::Vocabulary) {
        op.parameters.clear();
        op.tied = true;
    }
}
