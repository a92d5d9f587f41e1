//! `[encoder_decoder]` and `[vision_transformer]`.

use foretrain_core::Result;
use serde::Deserialize;

use super::Describes;
use super::transformer::{TransformerSpec, set};
use crate::architecture::transformer::{
    EncoderDecoder, Head, Stack, Transformer, VisionTransformer,
};
use crate::limits::{self, within};
use crate::model::Model;

/// The table `[encoder_decoder]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EncoderDecoderSpec {
    /// Both stacks, but for what follows.
    stack: TransformerSpec,
    decoder_layers: Option<u64>,
    /// Distances with a trainable score per head.
    distances: Option<u64>,
    source: Option<u64>,
    target: Option<u64>,
}

/// The table `[vision_transformer]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct VisionTransformerSpec {
    layers: u64,
    hidden: u64,
    heads: u64,
    inner: Option<u64>,
    /// Rows and columns of an image and of a patch.
    image: Option<u64>,
    patch: Option<u64>,
    channels: Option<u64>,
    classes: Option<u64>,
    dropout: Option<bool>,
}

impl Describes for EncoderDecoderSpec {
    fn model(&self, name: &str) -> Result<Model> {
        let (model, _) = self.stack.transformer()?;
        let decoder_layers = self.decoder_layers.unwrap_or(model.stack.layers);
        let decoder = Stack { layers: decoder_layers, ..model.stack.clone() };
        let mut encoder = model.stack;
        encoder.attention.causal = false;
        let pair = EncoderDecoder {
            encoder,
            decoder,
            embedding: model.embedding,
            distances: self.distances.unwrap_or(0),
            final_norms: model.final_norm,
            tied: matches!(model.head, Head::Language { tied: true, .. }),
            source: self.source.unwrap_or(model.sequence),
            target: self.target.unwrap_or(model.sequence),
        };
        pair.model(name, "encoder-decoder")
    }
}

impl Describes for VisionTransformerSpec {
    fn model(&self, name: &str) -> Result<Model> {
        let (hidden, heads) = (self.hidden, self.heads);
        within("hidden", hidden, 1, limits::WIDTH)?;
        limits::divided("hidden", hidden, "heads", heads)?;
        let mut stack = Transformer::gpt(self.layers, hidden, heads, 1, 0).stack;
        stack.attention.causal = false;
        set(&mut stack.perceptron.inner, self.inner);
        stack.dropout = self.dropout.unwrap_or(false);
        let vit = VisionTransformer {
            stack,
            image: self.image.unwrap_or(224),
            patch: self.patch.unwrap_or(16),
            channels: self.channels.unwrap_or(3),
            classes: self.classes.unwrap_or(1000),
        };
        vit.model(name, "vit")
    }
}
