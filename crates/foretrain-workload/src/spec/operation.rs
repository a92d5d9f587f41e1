//! One operation of a layer that is written out.

use foretrain_core::Result;
use serde::Deserialize;

use crate::limits::{self, divided, within};
use crate::model::{Conv2d, Elementwise, Experts, Norm, Op, OpKind, SelfAttention, Split};

/// How an operation is divided, as written.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SplitSpec {
    Columns,
    Rows,
    Inner,
    Outer,
    Vocabulary,
    Whole,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum NormSpec {
    Layer,
    Rms,
}

/// One operation: its kind is the key, its shape the table under it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OpSpec {
    Linear(LinearSpec),
    Attention(AttentionSpec),
    Norm(NormOpSpec),
    Activation(WidthSpec),
    Relu(WidthSpec),
    Gated(WidthSpec),
    Dropout(WidthSpec),
    Residual(WidthSpec),
    Scale(WidthSpec),
    Embedding(EmbeddingSpec),
    CrossEntropy(CrossEntropySpec),
    Experts(ExpertsOpSpec),
    Convolution(ConvolutionSpec),
    BatchNorm(BatchNormSpec),
    Pool(PoolSpec),
    Recurrent(RecurrentSpec),
    Interaction(InteractionSpec),
}

macro_rules! shapes {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $kind:ty,)* })*) => {
        $($(#[$doc])*
        #[derive(Clone, Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct $name {
            name: Option<String>,
            split: Option<SplitSpec>,
            $($(#[$field_doc])* $field: $kind,)*
        })*
    };
}

shapes! {
    /// A matrix product with weights.
    LinearSpec { inputs: u64, outputs: u64, bias: Option<bool>, tied: Option<bool>, }
    /// Attention without its projections.
    AttentionSpec {
        heads: u64, head_dim: u64, kv_heads: Option<u64>, value_dim: Option<u64>,
        causal: Option<bool>, window: Option<u64>, cross: Option<bool>,
    }
    /// A norm over the width.
    NormOpSpec { width: u64, norm: Option<NormSpec>, }
    /// Something done to each number.
    WidthSpec { width: u64, }
    /// Rows picked from a table.
    EmbeddingSpec { rows: u64, width: u64, lookups: Option<u64>, }
    /// The loss.
    CrossEntropySpec { classes: u64, }
    /// A convolution; two numbers are rows and columns.
    ConvolutionSpec {
        inputs: u64, outputs: u64, kernel: [u64; 2], size: [u64; 2],
        stride: Option<u64>, padding: Option<[u64; 2]>, dilation: Option<u64>,
        groups: Option<u64>, bias: Option<bool>,
    }
    /// Batch norm.
    BatchNormSpec { channels: u64, places: u64, }
    /// Pooling.
    PoolSpec { inputs: u64, outputs: u64, }
    /// A recurrent layer; two biases per gate unless said otherwise.
    RecurrentSpec {
        inputs: u64, hidden: u64, gates: u64, steps: u64,
        directions: Option<u64>, biases: Option<u64>,
    }
    /// Products of all pairs of vectors.
    InteractionSpec { vectors: u64, width: u64, }
}

/// Routed experts, which are always divided as such; their router is a `linear` before them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExpertsOpSpec {
    name: Option<String>,
    experts: u64,
    top_k: u64,
    width: u64,
    hidden: u64,
    gated: Option<bool>,
}

fn width(name: &str, value: u64) -> Result<u64> {
    within(name, value, 1, limits::ROWS)
}

fn op(name: Option<&String>, split: Option<SplitSpec>, usual: &str, kind: OpKind) -> Op {
    let split = match split {
        Some(SplitSpec::Columns) => Split::Columns,
        Some(SplitSpec::Rows) => Split::Rows,
        Some(SplitSpec::Inner) => Split::Inner,
        Some(SplitSpec::Outer) => Split::Outer,
        Some(SplitSpec::Vocabulary) => Split::Vocabulary,
        Some(SplitSpec::Whole) | None => Split::Whole,
    };
    Op::new(name.map_or(usual, String::as_str), kind, split)
}

impl OpSpec {
    pub(super) fn op(&self) -> Result<Op> {
        match self {
            Self::Linear(spec) => spec.op(),
            Self::Attention(spec) => spec.op(),
            Self::Norm(spec) => spec.op(),
            Self::Activation(spec) => spec.op("activation", Elementwise::Activation),
            Self::Relu(spec) => spec.op("relu", Elementwise::Relu),
            Self::Gated(spec) => spec.op("gated", Elementwise::Gated),
            Self::Dropout(spec) => spec.op("dropout", Elementwise::Dropout),
            Self::Residual(spec) => spec.op("residual", Elementwise::Residual),
            Self::Scale(spec) => spec.op("scale", Elementwise::Scale),
            Self::Embedding(spec) => spec.op(),
            Self::CrossEntropy(spec) => {
                let vocabulary = width("classes", spec.classes)?;
                let kind = OpKind::CrossEntropy { vocabulary };
                Ok(op(spec.name.as_ref(), spec.split, "loss", kind))
            }
            Self::Experts(spec) => spec.op(),
            Self::Convolution(spec) => spec.op(),
            Self::BatchNorm(spec) => spec.op(),
            Self::Pool(spec) => {
                let (inputs, outputs) =
                    (width("inputs", spec.inputs)?, width("outputs", spec.outputs)?);
                Ok(op(spec.name.as_ref(), spec.split, "pool", OpKind::Pool { inputs, outputs }))
            }
            Self::Recurrent(spec) => spec.op(),
            Self::Interaction(spec) => {
                let vectors = within("vectors", spec.vectors, 2, limits::PARTS)?;
                let width = within("width", spec.width, 1, limits::WIDTH)?;
                let kind = OpKind::Interaction { vectors, width };
                Ok(op(spec.name.as_ref(), spec.split, "interaction", kind))
            }
        }
    }
}

impl LinearSpec {
    fn op(&self) -> Result<Op> {
        let inputs = within("inputs", self.inputs, 1, 1 << 26)?;
        let outputs = within("outputs", self.outputs, 1, 1 << 26)?;
        let kind = OpKind::Linear { inputs, outputs };
        let mut op = op(self.name.as_ref(), self.split, "linear", kind);
        let divided = op.split != Split::Whole;
        op.tied = self.tied.unwrap_or(false);
        if !op.tied {
            op = op.with("weight", inputs * outputs, divided);
        }
        if self.bias.unwrap_or(true) {
            let whole = matches!(op.split, Split::Whole | Split::Rows);
            op = op.with("bias", outputs, !whole);
        }
        Ok(op)
    }
}

impl AttentionSpec {
    fn op(&self) -> Result<Op> {
        let heads = within("heads", self.heads, 1, limits::PARTS)?;
        let kv_heads = within("kv_heads", self.kv_heads.unwrap_or(heads), 1, heads)?;
        divided("heads", heads, "kv_heads", kv_heads)?;
        let head_dim = within("head_dim", self.head_dim, 1, limits::PARTS)?;
        let value_dim = within("value_dim", self.value_dim.unwrap_or(head_dim), 1, limits::PARTS)?;
        let cross = self.cross.unwrap_or(false);
        let window =
            self.window.map(|window| within("window", window, 1, limits::POSITIONS)).transpose()?;
        let shape = SelfAttention {
            heads,
            kv_heads,
            head_dim,
            value_dim,
            causal: self.causal.unwrap_or(true) && !cross,
            window,
            cross,
        };
        Ok(op(self.name.as_ref(), self.split, "attention", OpKind::Attention(shape)))
    }
}

impl NormOpSpec {
    fn op(&self) -> Result<Op> {
        let width = within("width", self.width, 1, limits::WIDTH)?;
        let (norm, has_bias) = match self.norm {
            Some(NormSpec::Rms) => (Norm::Rms, false),
            Some(NormSpec::Layer) | None => (Norm::Layer, true),
        };
        let op = op(self.name.as_ref(), self.split, "norm", OpKind::Norm { norm, width });
        let op = op.with("weight", width, false);
        Ok(if has_bias { op.with("bias", width, false) } else { op })
    }
}

impl WidthSpec {
    fn op(&self, usual: &str, what: Elementwise) -> Result<Op> {
        let kind = OpKind::Elementwise { what, width: width("width", self.width)? };
        Ok(op(self.name.as_ref(), self.split, usual, kind))
    }
}

impl EmbeddingSpec {
    fn op(&self) -> Result<Op> {
        let rows = width("rows", self.rows)?;
        let width = within("width", self.width, 1, limits::PARTS)?;
        let lookups = within("lookups", self.lookups.unwrap_or(1), 1, limits::WIDTH)?;
        let kind = OpKind::Embedding { rows, width, lookups };
        let op = op(self.name.as_ref(), self.split, "embedding", kind);
        let divided = op.split == Split::Vocabulary;
        Ok(op.with("weight", rows * width, divided))
    }
}

impl ExpertsOpSpec {
    fn op(&self) -> Result<Op> {
        let experts = within("experts", self.experts, 1, limits::PARTS)?;
        let top_k = within("top_k", self.top_k, 1, experts)?;
        let width = within("width", self.width, 1, limits::WIDTH)?;
        let hidden = within("hidden", self.hidden, 1, limits::WIDTH)?;
        let gated = self.gated.unwrap_or(false);
        let kind = OpKind::Experts(Experts { experts, top_k, width, hidden, gated });
        let products = if gated { 3 } else { 2 };
        let op = Op::new(self.name.as_deref().unwrap_or("experts"), kind, Split::Experts);
        Ok(op.with("weight", experts * products * width * hidden, true))
    }
}

impl ConvolutionSpec {
    fn op(&self) -> Result<Op> {
        let inputs = within("inputs", self.inputs, 1, limits::WIDTH)?;
        let outputs = within("outputs", self.outputs, 1, limits::WIDTH)?;
        for side in self.kernel {
            within("kernel", side, 1, 1024)?;
        }
        for side in self.size {
            within("size", side, 1, limits::PARTS)?;
        }
        let stride = within("stride", self.stride.unwrap_or(1), 1, limits::PARTS)?;
        let groups = within("groups", self.groups.unwrap_or(1), 1, limits::WIDTH)?;
        let each = divided("inputs", inputs, "groups", groups)?;
        divided("outputs", outputs, "groups", groups)?;
        let kernel = (self.kernel[0], self.kernel[1]);
        let size = (self.size[0], self.size[1]);
        for side in self.padding.unwrap_or_default() {
            within("padding", side, 0, 1024)?;
        }
        let padding = self.padding.map(|[rows, columns]| (rows, columns));
        let dilation = within("dilation", self.dilation.unwrap_or(1), 1, 1024)?;
        let shape = Conv2d { inputs, outputs, kernel, stride, padding, dilation, size, groups };
        let kind = OpKind::Convolution(shape);
        let op = op(self.name.as_ref(), self.split, "convolution", kind);
        let op = op.with("weight", each * outputs * kernel.0 * kernel.1, false);
        Ok(if self.bias.unwrap_or(true) { op.with("bias", outputs, false) } else { op })
    }
}

impl BatchNormSpec {
    fn op(&self) -> Result<Op> {
        let channels = within("channels", self.channels, 1, limits::WIDTH)?;
        let places = within("places", self.places, 1, limits::POSITIONS)?;
        let kind = OpKind::BatchNorm { channels, places };
        let op = op(self.name.as_ref(), self.split, "batch_norm", kind);
        Ok(op.with("weight", channels, false).with("bias", channels, false))
    }
}

impl RecurrentSpec {
    fn op(&self) -> Result<Op> {
        let inputs = within("inputs", self.inputs, 1, limits::WIDTH)?;
        let hidden = within("hidden", self.hidden, 1, limits::WIDTH)?;
        let gates = within("gates", self.gates, 1, 4)?;
        let steps = within("steps", self.steps, 1, limits::PARTS)?;
        let directions = within("directions", self.directions.unwrap_or(1), 1, 2)?;
        let biases = within("biases", self.biases.unwrap_or(2), 0, 2)?;
        let kind = OpKind::Recurrent { inputs, hidden, gates, steps, directions };
        let rows = directions * gates * hidden;
        let op = op(self.name.as_ref(), self.split, "recurrent", kind)
            .with("input.weight", rows * inputs, false)
            .with("state.weight", rows * hidden, false);
        Ok(if biases == 0 { op } else { op.with("state.bias", rows * biases, false) })
    }
}
