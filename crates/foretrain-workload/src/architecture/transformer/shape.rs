//! The dimensions of a stack of transformer layers.

use foretrain_core::Result;

use crate::limits::{self, within};
use crate::model::Norm;

/// Layers of attention and perceptrons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    /// How many.
    pub layers: u64,
    /// Width of the residual stream.
    pub hidden: u64,
    /// Attention.
    pub attention: Attention,
    /// Sliding windows of the layers in turn, repeated as often as needed: none at all, one for
    /// all layers, or a pattern such as local, global.
    pub windows: Vec<Option<u64>>,
    /// The perceptron of layers without experts.
    pub perceptron: Perceptron,
    /// Experts in place of the perceptron.
    pub experts: Option<MixtureOfExperts>,
    /// Norms.
    pub norms: Norms,
    /// Where they stand, and whether both halves of a layer run side by side.
    pub arrangement: Arrangement,
    /// Whether it is trained with dropout before each sum with the residual stream.
    pub dropout: bool,
}

/// Attention with its projections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attention {
    /// Heads of the queries.
    pub heads: u64,
    /// Heads of keys and values.
    pub kv_heads: u64,
    /// Width of a head.
    pub head_dim: u64,
    /// Keys and values (and maybe queries) go through a narrow middle; `head_dim` is not used then.
    pub latent: Option<Latent>,
    /// Queries see only keys up to their own place.
    pub causal: bool,
    /// Queries, keys and values have biases.
    pub input_bias: bool,
    /// The product after the heads has a bias.
    pub output_bias: bool,
    /// Norms of queries and keys.
    pub query_key_norm: QueryKeyNorm,
    /// Numbers of a head that are rotated by position; 0 for none.
    pub rotary: u64,
    /// A trainable score per head that no key belongs to.
    pub sinks: bool,
}

/// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latent {
    /// Width of the queries' middle; `None` if they have none.
    pub query_rank: Option<u64>,
    /// Width of the middle of keys and values.
    pub key_value_rank: u64,
    /// Numbers of a query's and a key's head without position.
    pub plain: u64,
    /// Numbers that are rotated; those of the keys are shared by all heads.
    pub rotated: u64,
    /// Width of a value's head.
    pub value: u64,
}

/// Norms of queries and keys before the scores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueryKeyNorm {
    /// None.
    #[default]
    None,
    /// Over each head, without weights.
    Weightless,
    /// Over each head, with weights that all heads share.
    PerHead,
    /// Over all heads together.
    Full,
}

/// A perceptron with one inner layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Perceptron {
    /// Width inside.
    pub inner: u64,
    /// Two products side by side, one of them through the activation (SwiGLU, GeGLU).
    pub gated: bool,
    /// The activation is ReLU.
    pub relu: bool,
    /// Both layers have biases.
    pub bias: bool,
}

/// Experts that a router chooses from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MixtureOfExperts {
    /// Routed experts.
    pub experts: u64,
    /// Experts per position.
    pub top_k: u64,
    /// Width inside an expert.
    pub inner: u64,
    /// Experts are gated perceptrons.
    pub gated: bool,
    /// Experts have biases.
    pub bias: bool,
    /// Numbers per expert that the router adds to the scores: 0, or 1 for a bias.
    pub router_bias: u64,
    /// Width inside the expert that every position meets; 0 for none.
    pub shared: u64,
    /// The shared expert's result is weighted by a score of its own.
    pub shared_gate: bool,
    /// First layers that have a perceptron instead.
    pub dense_first: u64,
    /// One in so many layers has experts: the last of each group.
    pub every: u64,
}

/// The kind of norms of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Norms {
    /// Which.
    pub norm: Norm,
    /// Trainable numbers per channel: 2 for a weight and a bias, 1 for a weight, 0 for neither.
    pub tensors: u64,
}

/// How the two halves of a layer, their norms and the residual stream are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrangement {
    /// A norm before each half.
    PreNorm,
    /// A norm after each sum.
    PostNorm,
    /// A norm before and one after each half (Gemma 2).
    Sandwich,
    /// A norm after each half, before the sum (OLMo 2).
    ResultNorm,
    /// Both halves read the same input at once.
    Parallel {
        /// One norm for both halves, or each its own.
        shared_norm: bool,
    },
}

impl Attention {
    /// With as many heads of keys as of queries, with biases, without positions of its own.
    pub fn plain(heads: u64, head_dim: u64) -> Self {
        Self {
            heads,
            kv_heads: heads,
            head_dim,
            latent: None,
            causal: true,
            input_bias: true,
            output_bias: true,
            query_key_norm: QueryKeyNorm::None,
            rotary: 0,
            sinks: false,
        }
    }

    /// Width of a query's and a key's head.
    pub fn score_dim(&self) -> u64 {
        self.latent.map_or(self.head_dim, |latent| latent.plain + latent.rotated)
    }

    /// Width of a value's head.
    pub fn value_dim(&self) -> u64 {
        self.latent.map_or(self.head_dim, |latent| latent.value)
    }

    fn check(&self) -> Result<()> {
        within("heads", self.heads, 1, limits::PARTS)?;
        within("kv_heads", self.kv_heads, 1, limits::PARTS)?;
        limits::divided("heads", self.heads, "kv_heads", self.kv_heads)?;
        if let Some(latent) = self.latent {
            let parts =
                [latent.key_value_rank, latent.plain, latent.value, latent.query_rank.unwrap_or(1)];
            for part in parts {
                within("a rank or head width of the latent attention", part, 1, limits::WIDTH)?;
            }
            within("rotated", latent.rotated, 0, limits::WIDTH)?;
        }
        within("head_dim", self.score_dim(), 1, limits::WIDTH)?;
        within("rotary", self.rotary, 0, self.score_dim())?;
        let all = self.heads * self.score_dim().max(self.value_dim());
        within("the width of all heads", all, 1, limits::WIDTH).map(|_| ())
    }
}

impl Perceptron {
    /// One product up, an activation, one down, with biases.
    pub fn plain(inner: u64) -> Self {
        Self { inner, gated: false, relu: false, bias: true }
    }
    /// Gated and without biases.
    pub fn gated(inner: u64) -> Self {
        Self { inner, gated: true, relu: false, bias: false }
    }
}

impl MixtureOfExperts {
    /// Gated experts in every layer, none shared.
    pub fn of(experts: u64, top_k: u64, inner: u64) -> Self {
        Self {
            experts,
            top_k,
            inner,
            gated: true,
            bias: false,
            router_bias: 0,
            shared: 0,
            shared_gate: false,
            dense_first: 0,
            every: 1,
        }
    }

    /// Whether the layer of this number (from 0) has experts.
    pub fn is_in(&self, layer: u64) -> bool {
        layer >= self.dense_first && (layer + 1).is_multiple_of(self.every)
    }

    fn check(&self) -> Result<()> {
        within("experts", self.experts, 1, limits::PARTS)?;
        within("experts per token", self.top_k, 1, self.experts)?;
        within("an expert's width", self.inner, 1, limits::WIDTH)?;
        within("the shared expert's width", self.shared, 0, limits::WIDTH)?;
        within("the period of layers with experts", self.every, 1, limits::LAYERS).map(|_| ())
    }
}

impl Norms {
    /// Layer norm with weight and bias.
    pub const fn layer() -> Self {
        Self { norm: Norm::Layer, tensors: 2 }
    }
    /// Root mean square with a weight.
    pub const fn rms() -> Self {
        Self { norm: Norm::Rms, tensors: 1 }
    }
}

impl Stack {
    /// The window of the layer of this number (from 0).
    pub(super) fn window(&self, layer: usize) -> Option<u64> {
        let turn = layer.checked_rem(self.windows.len())?;
        self.windows.get(turn).copied().flatten()
    }

    pub(super) fn check(&self) -> Result<()> {
        within("layers", self.layers, 1, limits::LAYERS)?;
        within("hidden", self.hidden, 1, limits::WIDTH)?;
        within("the perceptron's width", self.perceptron.inner, 1, limits::WIDTH)?;
        for window in self.windows.iter().flatten() {
            within("window", *window, 1, limits::POSITIONS)?;
        }
        self.attention.check()?;
        self.experts.as_ref().map_or(Ok(()), MixtureOfExperts::check)
    }
}
