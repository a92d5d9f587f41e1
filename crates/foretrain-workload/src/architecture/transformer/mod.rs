//! Transformers: a stack of attention and perceptrons between an embedding and a head.

mod attention;
mod encoder_decoder;
mod ends;
mod feed_forward;
mod layer;
mod shape;
mod vision;

pub use encoder_decoder::EncoderDecoder;
pub use ends::{Embedding, Head};
pub use shape::{
    Arrangement, Attention, Latent, MixtureOfExperts, Norms, Perceptron, QueryKeyNorm, Stack,
};
pub use vision::VisionTransformer;

use foretrain_core::Result;

use crate::limits;
use crate::model::{Model, Sample, Tokens};

/// A transformer with one stack: a decoder (GPT, Llama) or an encoder (BERT).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transformer {
    /// The repeated layers.
    pub stack: Stack,
    /// What comes before them.
    pub embedding: Embedding,
    /// A norm after the last layer.
    pub final_norm: bool,
    /// What comes after them.
    pub head: Head,
    /// Tokens of a sample in training, if nobody says otherwise.
    pub sequence: u64,
}

impl Transformer {
    /// A decoder as GPT-2 and Megatron have it: layer norms before each half, GELU perceptrons four
    /// times as wide, biases, learned positions, dropout, output tied to the embedding.
    pub fn gpt(layers: u64, hidden: u64, heads: u64, vocabulary: u64, positions: u64) -> Self {
        Self {
            stack: Stack {
                layers,
                hidden,
                attention: Attention::plain(heads, hidden.checked_div(heads).unwrap_or(0)),
                windows: Vec::new(),
                perceptron: Perceptron::plain(hidden.saturating_mul(4)),
                experts: None,
                norms: Norms::layer(),
                arrangement: Arrangement::PreNorm,
                dropout: true,
            },
            embedding: Embedding { positions, dropout: true, ..Embedding::of(vocabulary, hidden) },
            final_norm: true,
            head: Head::Language { tied: true, bias: false, soft_cap: false },
            sequence: if positions > 0 { positions } else { 2048 },
        }
    }

    /// A decoder as Llama has it: RMS norms before each half, gated perceptrons, rotated queries
    /// and keys, no biases, no dropout, an output layer of its own.
    pub fn llama(layers: u64, hidden: u64, heads: u64, vocabulary: u64, inner: u64) -> Self {
        let gpt = Self::gpt(layers, hidden, heads, vocabulary, 0);
        let attention = Attention {
            input_bias: false,
            output_bias: false,
            rotary: gpt.stack.attention.head_dim,
            ..gpt.stack.attention
        };
        Self {
            stack: Stack {
                attention,
                perceptron: Perceptron::gated(inner),
                norms: Norms::rms(),
                dropout: false,
                ..gpt.stack
            },
            embedding: Embedding::of(vocabulary, hidden),
            head: Head::Language { tied: false, bias: false, soft_cap: false },
            sequence: 4096,
            ..gpt
        }
    }

    /// An encoder as BERT has it: queries see everything, norms after each half and after the
    /// embedding.
    pub fn bert(layers: u64, hidden: u64, heads: u64, vocabulary: u64, positions: u64) -> Self {
        let mut bert = Self::gpt(layers, hidden, heads, vocabulary, positions);
        bert.stack.attention.causal = false;
        bert.stack.arrangement = Arrangement::PostNorm;
        bert.embedding.types = 2;
        bert.embedding.norm = true;
        bert.final_norm = false;
        bert.head = Head::Masked { pooler: true };
        bert
    }

    /// Its layers.
    ///
    /// # Errors
    /// If a dimension is zero or beyond any model.
    pub fn model(&self, name: impl Into<String>, family: impl Into<String>) -> Result<Model> {
        self.stack.check()?;
        self.embedding.check()?;
        limits::within("sequence", self.sequence, 1, limits::POSITIONS)?;
        let mut blocks = vec![self.embedding.layer(&self.stack, "embedding", Tokens::Sequence)];
        blocks.extend(self.stack.blocks("layer", Tokens::Sequence, false));
        blocks.extend(self.head.layers(self));
        let longest = (self.embedding.positions > 0).then_some(self.embedding.positions);
        let default = longest.map_or(self.sequence, |longest| longest.min(self.sequence));
        let sample = Sample::Tokens { default, longest };
        Model::new(name, family, sample, blocks)
    }
}
