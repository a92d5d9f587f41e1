//! Transformers: BERT (arXiv 1810.04805), GPT-2, Llama (2307.09288, 2407.21783).

use crate::profile::{Layer, Profile};

/// How activations are normalised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Norm {
    /// LayerNorm: weight and bias.
    Layer,
    /// RMSNorm: weight only.
    Rms,
}

/// The block's multi-layer perceptron.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedForward {
    /// Up and down.
    Plain,
    /// Gate, up and down (SwiGLU).
    Gated,
}

/// A transformer by its dimensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transformer {
    /// Its name.
    pub name: String,
    /// Blocks.
    pub layers: u64,
    /// Width.
    pub hidden: u64,
    /// Width of keys and values together with their heads: `hidden` without grouped queries.
    pub key_value: u64,
    /// Width inside the perceptron.
    pub inner: u64,
    /// Its form.
    pub feed_forward: FeedForward,
    /// Norms.
    pub norm: Norm,
    /// Whether linear layers have biases.
    pub has_bias: bool,
    /// Tokens known.
    pub vocabulary: u64,
    /// Learned positions; 0 if positions are computed.
    pub positions: u64,
    /// Token types (BERT); 0 without.
    pub token_types: u64,
    /// A norm after the embeddings (BERT).
    pub norms_embeddings: bool,
    /// A norm after the last block (GPT, Llama).
    pub norms_output: bool,
    /// A linear layer over the first token (BERT).
    pub has_pooler: bool,
    /// An output layer of its own; else it shares the embedding's weights, or there is none.
    pub has_own_head: bool,
    /// Tokens of a sample.
    pub sequence: u64,
}

impl Transformer {
    fn bert(name: &str, layers: u64, hidden: u64, sequence: u64) -> Self {
        Self {
            name: name.into(),
            layers,
            hidden,
            key_value: hidden,
            inner: 4 * hidden,
            feed_forward: FeedForward::Plain,
            norm: Norm::Layer,
            has_bias: true,
            vocabulary: 30_522,
            positions: 512,
            token_types: 2,
            norms_embeddings: true,
            norms_output: false,
            has_pooler: true,
            has_own_head: false,
            sequence,
        }
    }
    /// BERT-Base (uncased) without a task's head.
    pub fn bert_base(sequence: u64) -> Self {
        Self::bert("BERT-Base", 12, 768, sequence)
    }
    /// BERT-Large (uncased) without a task's head.
    pub fn bert_large(sequence: u64) -> Self {
        Self::bert("BERT-Large", 24, 1024, sequence)
    }
    fn gpt2_of(name: &str, layers: u64, hidden: u64) -> Self {
        Self {
            vocabulary: 50_257,
            positions: 1024,
            token_types: 0,
            norms_embeddings: false,
            norms_output: true,
            has_pooler: false,
            ..Self::bert(name, layers, hidden, 1024)
        }
    }
    /// GPT-2 (124 M).
    pub fn gpt2() -> Self {
        Self::gpt2_of("GPT-2", 12, 768)
    }
    /// GPT-2 XL (1.5 B).
    pub fn gpt2_xl() -> Self {
        Self::gpt2_of("GPT-2 XL", 48, 1600)
    }
    fn llama(name: &str, dimensions: [u64; 5], sequence: u64) -> Self {
        let [layers, hidden, key_value, inner, vocabulary] = dimensions;
        Self {
            key_value,
            inner,
            feed_forward: FeedForward::Gated,
            norm: Norm::Rms,
            has_bias: false,
            vocabulary,
            positions: 0,
            has_own_head: true,
            sequence,
            ..Self::gpt2_of(name, layers, hidden)
        }
    }
    /// Llama-2 7B.
    pub fn llama2_7b() -> Self {
        Self::llama("Llama-2 7B", [32, 4096, 4096, 11_008, 32_000], 4096)
    }
    /// Llama-3 8B.
    pub fn llama3_8b() -> Self {
        Self::llama("Llama-3 8B", [32, 4096, 1024, 14_336, 128_256], 8192)
    }

    /// Its layers. The embedding comes first, so its gradient is ready last; where the output layer
    /// shares its weights, it also does the output layer's work.
    pub fn profile(&self) -> Profile {
        let mut layers = vec![self.embedding()];
        for block in 0..self.layers {
            self.block(block, &mut layers);
        }
        if self.norms_output {
            layers.push(self.norm("output.norm"));
        }
        if self.has_pooler {
            let weights = self.hidden * self.hidden;
            let parts = [("weight", weights), ("bias", self.hidden)];
            layers.push(Layer::new("pooler", 2.0 * weights as f64, parts));
        }
        if self.has_own_head {
            layers.push(self.linear("output", self.hidden, self.vocabulary));
        }
        Profile { name: self.name.clone(), layers }
    }

    fn embedding(&self) -> Layer {
        let mut tensors = vec![("tokens", self.vocabulary * self.hidden)];
        if self.positions > 0 {
            tensors.push(("positions", self.positions * self.hidden));
        }
        if self.token_types > 0 {
            tensors.push(("types", self.token_types * self.hidden));
        }
        if self.norms_embeddings {
            tensors.extend([("norm.weight", self.hidden), ("norm.bias", self.hidden)]);
        }
        Layer::new("embedding", 0.0, tensors)
    }

    fn block(&self, block: u64, layers: &mut Vec<Layer>) {
        let (h, named) = (self.hidden, |part: &str| format!("block{block}.{part}"));
        layers.push(self.linear(&named("query"), h, h));
        layers.push(self.linear(&named("key"), h, self.key_value));
        layers.push(self.linear(&named("value"), h, self.key_value));
        let mut out = self.linear(&named("attention.out"), h, h);
        // Scores and their product with the values belong to no parameter.
        let scores = 4.0 * (self.sequence * self.sequence * h) as f64;
        out.forward = out.forward + foretrain_core::Flops::new(scores);
        layers.push(out);
        layers.push(self.norm(&named("attention.norm")));
        if self.feed_forward == FeedForward::Gated {
            layers.push(self.linear(&named("gate"), h, self.inner));
        }
        layers.push(self.linear(&named("up"), h, self.inner));
        layers.push(self.linear(&named("down"), self.inner, h));
        layers.push(self.norm(&named("norm")));
    }

    fn linear(&self, name: &str, inputs: u64, outputs: u64) -> Layer {
        let weights = inputs * outputs;
        let bias = self.has_bias.then_some(("bias", outputs));
        let work = 2.0 * weights as f64 * self.sequence as f64;
        Layer::new(name, work, std::iter::once(("weight", weights)).chain(bias))
    }

    fn norm(&self, name: &str) -> Layer {
        let bias = (self.norm == Norm::Layer).then_some(("bias", self.hidden));
        let work = 8.0 * (self.hidden * self.sequence) as f64;
        Layer::new(name, work, std::iter::once(("weight", self.hidden)).chain(bias))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts that the authors or the model cards publish.
    #[test]
    fn parameters_are_those_published() {
        for (model, parameters) in [
            (Transformer::bert_base(128), 109_482_240),
            (Transformer::bert_large(128), 335_141_888),
            (Transformer::gpt2(), 124_439_808),
            (Transformer::gpt2_xl(), 1_557_611_200),
            (Transformer::llama2_7b(), 6_738_415_616),
            (Transformer::llama3_8b(), 8_030_261_248),
        ] {
            assert_eq!(model.profile().parameters(), parameters, "{}", model.name);
        }
    }

    #[test]
    fn work_is_two_flops_per_weight_and_token() {
        let model = Transformer::llama2_7b();
        let weights = model.profile().parameters() - model.vocabulary * model.hidden;
        let attention = 4 * model.layers * model.sequence * model.sequence * model.hidden;
        let expected = 2.0 * (weights * model.sequence) as f64 + attention as f64;
        let work = model.profile().forward().get();
        assert!((work / expected - 1.0).abs() < 1e-3, "{work} {expected}");
    }
}
