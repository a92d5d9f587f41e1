//! Operations of a layer, unsplit and per position.

use serde::Serialize;

/// Positions that a layer works on, per sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tokens {
    /// As many as the sequence is long.
    Sequence,
    /// As many as the target sequence of a pair is long.
    Target,
    /// A fixed number: patches of an image, 1 for a whole image.
    Fixed(u64),
}

/// How tensor parallelism divides an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Split {
    /// Its outputs are divided; every rank needs the whole input.
    Columns,
    /// Its inputs are divided; ranks hold parts of a sum.
    Rows,
    /// Inside the divided part: heads, or the width between a column and a row split.
    Inner,
    /// Between the divided parts: whole on every rank, or divided by positions under sequence
    /// parallelism.
    Outer,
    /// The vocabulary is divided.
    Vocabulary,
    /// Experts are divided among the ranks of expert parallelism.
    Experts,
    /// Never.
    Whole,
}

/// One operation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Op {
    /// Its name in the layer, `mlp.up`.
    pub name: String,
    /// What it computes.
    pub kind: OpKind,
    /// How tensor parallelism divides it.
    pub split: Split,
    /// Its trainable tensors, in the order of their definition.
    pub parameters: Vec<Parameter>,
    /// Its weight is another operation's (output layer and embedding): counted and stored there
    /// unless the two live on different stages.
    pub tied: bool,
    /// The backward pass needs its input, and no operation before keeps it already.
    pub keeps_input: bool,
    /// It works on the positions of the source sequence, not on those of its layer: keys and values
    /// of cross-attention.
    pub on_source: bool,
}

/// A trainable tensor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Parameter {
    /// Its name in the operation: `weight`, `bias`.
    pub name: &'static str,
    /// How many numbers it holds.
    pub elements: u64,
    /// Divided as its operation is; else whole on every rank.
    pub divided: bool,
}

/// What an operation computes, per position (widths are numbers per position).
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OpKind {
    /// A matrix product with trainable weights (several that share an input are one).
    Linear {
        /// Width in.
        inputs: u64,
        /// Width out, all parts together.
        outputs: u64,
    },
    /// Attention without its projections.
    Attention(SelfAttention),
    /// A norm over the width.
    Norm {
        /// Which.
        norm: Norm,
        /// Width.
        width: u64,
    },
    /// Something done to each number.
    Elementwise {
        /// What.
        what: Elementwise,
        /// Width of the result.
        width: u64,
    },
    /// Rows picked from a table.
    Embedding {
        /// Rows of the table.
        rows: u64,
        /// Width of a row.
        width: u64,
        /// Look-ups per position.
        lookups: u64,
    },
    /// Softmax and cross-entropy over the vocabulary.
    CrossEntropy {
        /// Width of the logits.
        vocabulary: u64,
    },
    /// Scores and the choice of experts.
    Router {
        /// Width in.
        width: u64,
        /// Routed experts.
        experts: u64,
        /// Experts per position.
        top_k: u64,
    },
    /// The routed experts, with dispatch and combination.
    Experts(Experts),
    /// A convolution; positions are samples.
    Convolution(Conv2d),
    /// Batch norm over `channels` planes of `places`.
    BatchNorm {
        /// Channels.
        channels: u64,
        /// Rows times columns.
        places: u64,
    },
    /// Pooling.
    Pool {
        /// Numbers in.
        inputs: u64,
        /// Numbers out.
        outputs: u64,
    },
    /// A recurrent layer over `steps`, whose products depend on each other.
    Recurrent {
        /// Width in.
        inputs: u64,
        /// Width of the state.
        hidden: u64,
        /// Gates: 1 plain, 3 GRU, 4 LSTM.
        gates: u64,
        /// Steps in a row.
        steps: u64,
        /// 1 or 2.
        directions: u64,
    },
    /// Products of all pairs of feature vectors.
    Interaction {
        /// Vectors.
        vectors: u64,
        /// Their width.
        width: u64,
    },
}

/// Attention's shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SelfAttention {
    /// Heads of the queries.
    pub heads: u64,
    /// Heads of keys and values.
    pub kv_heads: u64,
    /// Width of a query's and a key's head.
    pub head_dim: u64,
    /// Width of a value's head.
    pub value_dim: u64,
    /// Queries see only keys up to their own place.
    pub causal: bool,
    /// Queries see only so many keys back.
    pub window: Option<u64>,
    /// Keys and values come from the source sequence.
    pub cross: bool,
}

/// Which norm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Norm {
    /// Mean and variance.
    Layer,
    /// Root mean square.
    Rms,
}

/// What is done to each number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Elementwise {
    /// GELU, SiLU, tanh and the like.
    Activation,
    /// ReLU, whose backward pass needs its result only.
    Relu,
    /// An activation of one half times the other half; the width is that of the result.
    Gated,
    /// Dropout.
    Dropout,
    /// Sum with the residual stream.
    Residual,
    /// Dropout, then the sum with the residual stream.
    DropoutResidual,
    /// Rotation of queries and keys by position.
    Rotary,
    /// A product with a constant, a soft cap, a bias by position.
    Scale,
}

/// Routed experts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Experts {
    /// Routed experts.
    pub experts: u64,
    /// Experts per position.
    pub top_k: u64,
    /// Width of the residual stream.
    pub width: u64,
    /// Width inside an expert.
    pub hidden: u64,
    /// Two products side by side, one through the activation.
    pub gated: bool,
}

/// A convolution's shape, per sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Conv2d {
    /// Channels in.
    pub inputs: u64,
    /// Channels out.
    pub outputs: u64,
    /// Rows and columns of the filter.
    pub kernel: (u64, u64),
    /// Steps between applications.
    pub stride: u64,
    /// Rows and columns of zeros around the input; `None` where the description does not tell.
    pub padding: Option<(u64, u64)>,
    /// Steps between the filter's own places, 1 as a rule.
    pub dilation: u64,
    /// Rows and columns of the result.
    pub size: (u64, u64),
    /// Groups of channels that do not mix.
    pub groups: u64,
}

impl Op {
    /// An operation without parameters.
    pub fn new(name: impl Into<String>, kind: OpKind, split: Split) -> Self {
        let keeps_input = matches!(
            kind,
            OpKind::Linear { .. }
                | OpKind::Norm { .. }
                | OpKind::Router { .. }
                | OpKind::Experts(_)
                | OpKind::Convolution(_)
                | OpKind::BatchNorm { .. }
                | OpKind::Recurrent { .. }
                | OpKind::Attention(_)
                | OpKind::CrossEntropy { .. }
                | OpKind::Interaction { .. }
                | OpKind::Elementwise { what: Elementwise::Activation | Elementwise::Gated, .. }
        );
        let name = name.into();
        Self {
            name,
            kind,
            split,
            parameters: Vec::new(),
            tied: false,
            keeps_input,
            on_source: false,
        }
    }

    /// With a trainable tensor more.
    pub fn with(mut self, name: &'static str, elements: u64, divided: bool) -> Self {
        self.parameters.push(Parameter { name, elements, divided });
        self
    }

    /// Trainable numbers.
    pub fn parameters(&self) -> u64 {
        self.parameters.iter().map(|parameter| parameter.elements).sum()
    }

    /// Trainable numbers that one position meets.
    pub fn active_parameters(&self) -> u64 {
        match self.kind {
            OpKind::Experts(Experts { experts, top_k, .. }) if experts > 0 => {
                self.parameters() / experts * top_k.min(experts)
            }
            _ => self.parameters(),
        }
    }
}
