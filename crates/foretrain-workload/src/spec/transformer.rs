//! `[transformer]`: a style, its dimensions, and what differs from the style.

use foretrain_core::Result;
use serde::Deserialize;

use super::Describes;
use crate::architecture::transformer::{
    Arrangement, Head, Latent, MixtureOfExperts, Norms, QueryKeyNorm, Stack, Transformer,
};
use crate::limits::{self, within};
use crate::model::{Model, Norm};

/// What is taken for everything that a description leaves open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Style {
    #[default]
    Gpt,
    Llama,
    Bert,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum HeadSpec {
    None,
    Language,
    Masked,
    Pooler,
    MaskedAndPooler,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ArrangementSpec {
    PreNorm,
    PostNorm,
    Sandwich,
    ResultNorm,
    Parallel,
    ParallelSharedNorm,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum NormSpec {
    Layer,
    LayerWithoutBias,
    Rms,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum QueryKeyNormSpec {
    None,
    Weightless,
    PerHead,
    Full,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ActivationSpec {
    Relu,
    Gelu,
    Silu,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpertsSpec {
    count: u64,
    top_k: u64,
    inner: Option<u64>,
    gated: Option<bool>,
    bias: Option<bool>,
    router_bias: Option<bool>,
    shared: Option<u64>,
    shared_gate: Option<bool>,
    dense_first: Option<u64>,
    every: Option<u64>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LatentSpec {
    query_rank: Option<u64>,
    key_value_rank: u64,
    plain: u64,
    rotated: u64,
    value: u64,
}

/// The table `[transformer]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TransformerSpec {
    style: Option<Style>,
    layers: u64,
    hidden: u64,
    heads: u64,
    vocabulary: u64,
    kv_heads: Option<u64>,
    head_dim: Option<u64>,
    inner: Option<u64>,
    gated: Option<bool>,
    activation: Option<ActivationSpec>,
    /// Learned positions; 0 for none.
    positions: Option<u64>,
    /// Numbers of a head that are rotated; 0 for none.
    rotary: Option<u64>,
    norm: Option<NormSpec>,
    arrangement: Option<ArrangementSpec>,
    final_norm: Option<bool>,
    query_key_norm: Option<QueryKeyNormSpec>,
    /// All products of the layers.
    bias: Option<bool>,
    qkv_bias: Option<bool>,
    out_bias: Option<bool>,
    mlp_bias: Option<bool>,
    causal: Option<bool>,
    sinks: Option<bool>,
    /// Per layer in turn; 0 for a global one.
    windows: Option<Vec<u64>>,
    experts: Option<ExpertsSpec>,
    latent: Option<LatentSpec>,
    dropout: Option<bool>,
    token_types: Option<u64>,
    embedding_norm: Option<bool>,
    embedding_width: Option<u64>,
    embedding_scaled: Option<bool>,
    head: Option<HeadSpec>,
    tied: Option<bool>,
    head_bias: Option<bool>,
    soft_cap: Option<bool>,
    sequence: Option<u64>,
}

pub(super) fn set<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

impl Describes for TransformerSpec {
    fn model(&self, name: &str) -> Result<Model> {
        let (model, family) = self.transformer()?;
        model.model(name, family)
    }
}

impl TransformerSpec {
    /// The transformer, and the name of its style.
    pub(super) fn transformer(&self) -> Result<(Transformer, &'static str)> {
        let (layers, hidden, heads) = (self.layers, self.hidden, self.heads);
        within("hidden", hidden, 1, limits::WIDTH)?;
        within("heads", heads, 1, limits::PARTS)?;
        if self.head_dim.is_none() && self.latent.is_none() {
            limits::divided("hidden", hidden, "heads", heads)?;
        }
        let (vocabulary, positions) = (self.vocabulary, self.positions.unwrap_or(1024));
        let inner = self.inner.unwrap_or(4 * hidden);
        let style = self.style.unwrap_or_default();
        let (mut model, family) = match style {
            Style::Gpt => (Transformer::gpt(layers, hidden, heads, vocabulary, positions), "gpt"),
            Style::Bert => {
                (Transformer::bert(layers, hidden, heads, vocabulary, positions), "bert")
            }
            Style::Llama => (Transformer::llama(layers, hidden, heads, vocabulary, inner), "llama"),
        };
        self.set_stack(&mut model.stack);
        let embedding = &mut model.embedding;
        set(&mut embedding.positions, self.positions);
        set(&mut embedding.types, self.token_types);
        set(&mut embedding.norm, self.embedding_norm);
        set(&mut embedding.width, self.embedding_width);
        set(&mut embedding.scaled, self.embedding_scaled);
        set(&mut embedding.dropout, self.dropout);
        set(&mut model.final_norm, self.final_norm);
        set(&mut model.sequence, self.sequence);
        model.head = self.head(model.head);
        Ok((model, family))
    }

    fn set_stack(&self, stack: &mut Stack) {
        self.set_attention(stack);
        let perceptron = &mut stack.perceptron;
        set(&mut perceptron.inner, self.inner);
        set(&mut perceptron.gated, self.gated);
        set(&mut perceptron.relu, self.activation.map(|a| a == ActivationSpec::Relu));
        set(&mut perceptron.bias, self.mlp_bias.or(self.bias));
        let (gated, inner) = (perceptron.gated, perceptron.inner);
        stack.experts = self.experts.as_ref().map(|experts| experts.build(gated, inner));
        let norms = self.norm.map(|norm| match norm {
            NormSpec::Layer => Norms::layer(),
            NormSpec::LayerWithoutBias => Norms { norm: Norm::Layer, tensors: 1 },
            NormSpec::Rms => Norms::rms(),
        });
        set(&mut stack.norms, norms);
        let arrangement = self.arrangement.map(|arrangement| match arrangement {
            ArrangementSpec::PreNorm => Arrangement::PreNorm,
            ArrangementSpec::PostNorm => Arrangement::PostNorm,
            ArrangementSpec::Sandwich => Arrangement::Sandwich,
            ArrangementSpec::ResultNorm => Arrangement::ResultNorm,
            ArrangementSpec::Parallel => Arrangement::Parallel { shared_norm: false },
            ArrangementSpec::ParallelSharedNorm => Arrangement::Parallel { shared_norm: true },
        });
        set(&mut stack.arrangement, arrangement);
        set(&mut stack.dropout, self.dropout);
        let windows = self
            .windows
            .as_ref()
            .map(|windows| windows.iter().map(|window| (*window > 0).then_some(*window)).collect());
        set(&mut stack.windows, windows);
    }

    fn set_attention(&self, stack: &mut Stack) {
        let attention = &mut stack.attention;
        let turns = attention.rotary > 0;
        set(&mut attention.head_dim, self.head_dim);
        set(&mut attention.kv_heads, self.kv_heads);
        if turns {
            attention.rotary = attention.head_dim;
        }
        set(&mut attention.rotary, self.rotary);
        if let Some(latent) = &self.latent {
            attention.latent = Some(Latent {
                query_rank: latent.query_rank,
                key_value_rank: latent.key_value_rank,
                plain: latent.plain,
                rotated: latent.rotated,
                value: latent.value,
            });
            attention.rotary = latent.rotated;
        }
        set(&mut attention.causal, self.causal);
        set(&mut attention.sinks, self.sinks);
        set(&mut attention.input_bias, self.qkv_bias.or(self.bias));
        set(&mut attention.output_bias, self.out_bias.or(self.bias));
        let norm = self.query_key_norm.map(|norm| match norm {
            QueryKeyNormSpec::None => QueryKeyNorm::None,
            QueryKeyNormSpec::Weightless => QueryKeyNorm::Weightless,
            QueryKeyNormSpec::PerHead => QueryKeyNorm::PerHead,
            QueryKeyNormSpec::Full => QueryKeyNorm::Full,
        });
        set(&mut attention.query_key_norm, norm);
    }

    fn head(&self, style: Head) -> Head {
        let head = match self.head {
            None => style,
            Some(HeadSpec::None) => Head::None,
            Some(HeadSpec::Pooler) => Head::Pooler,
            Some(HeadSpec::Masked) => Head::Masked { pooler: false },
            Some(HeadSpec::MaskedAndPooler) => Head::Masked { pooler: true },
            Some(HeadSpec::Language) => Head::Language { tied: true, bias: false, soft_cap: false },
        };
        match head {
            Head::Language { tied, bias, soft_cap } => Head::Language {
                tied: self.tied.unwrap_or(tied),
                bias: self.head_bias.unwrap_or(bias),
                soft_cap: self.soft_cap.unwrap_or(soft_cap),
            },
            other => other,
        }
    }
}

impl ExpertsSpec {
    fn build(&self, gated: bool, inner: u64) -> MixtureOfExperts {
        MixtureOfExperts {
            gated: self.gated.unwrap_or(gated),
            bias: self.bias.unwrap_or(false),
            router_bias: u64::from(self.router_bias.unwrap_or(false)),
            shared: self.shared.unwrap_or(0),
            shared_gate: self.shared_gate.unwrap_or(false),
            dense_first: self.dense_first.unwrap_or(0),
            every: self.every.unwrap_or(1),
            ..MixtureOfExperts::of(self.count, self.top_k, self.inner.unwrap_or(inner))
        }
    }
}
