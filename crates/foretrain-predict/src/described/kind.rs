//! What an operator computes, and which of its arguments are data and which are weights.

use foretrain_ingest::execution_trace::{Operand, Operator};
use foretrain_workload::model::Elementwise;

/// What is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Data times a weight with extents (outputs, inputs), and a bias.
    Linear,
    /// Data times a weight with extents (inputs, outputs); the positions of data, weight and bias.
    Product { data: usize, weight: usize, bias: Option<usize> },
    /// Data times data: the positions of both.
    Both { left: usize, right: usize },
    /// A convolution.
    Convolution,
    /// Attention in one kernel.
    Attention,
    /// Batch norm.
    BatchNorm,
    /// A norm over the last extents: the positions of weight and bias, and whether it has a mean.
    Norm { weight: usize, is_rms: bool },
    /// Rows picked from a table.
    Embedding,
    /// Rows picked and summed up.
    Bag,
    /// Softmax and cross-entropy.
    Loss,
    /// Pooling or another reduction.
    Pool,
    /// Something done to each number.
    Each(Elementwise),
}

/// The kind of a known operator. `is_data` tells what is computed from the sample.
pub(super) fn kind(operator: &Operator, is_data: &dyn Fn(&Operand) -> bool) -> Option<Kind> {
    let input = |at: usize| operator.inputs.get(at).and_then(|argument| argument.first());
    let product = |left: usize, right: usize, bias: Option<usize>| {
        let (a, b) = (input(left)?, input(right)?);
        // What is not of the sample is a weight; of two such, one is the sample itself.
        if is_data(b) || b.shape.len() != 2 || a.shape.is_empty() {
            return Some(Kind::Both { left, right });
        }
        Some(Kind::Product { data: left, weight: right, bias })
    };
    let kind = match operator.name.strip_prefix("aten::")? {
        "linear" => Kind::Linear,
        "addmm" => product(1, 2, Some(0))?,
        "mm" | "matmul" | "bmm" => product(0, 1, None)?,
        "baddbmm" => Kind::Both { left: 1, right: 2 },
        "conv1d" | "conv2d" | "conv3d" | "convolution" | "_convolution" => Kind::Convolution,
        "scaled_dot_product_attention"
        | "_scaled_dot_product_flash_attention"
        | "_scaled_dot_product_efficient_attention"
        | "_flash_attention_forward" => Kind::Attention,
        "batch_norm" | "cudnn_batch_norm" | "native_batch_norm" | "miopen_batch_norm" => {
            Kind::BatchNorm
        }
        "layer_norm" | "native_layer_norm" | "group_norm" => {
            Kind::Norm { weight: 2, is_rms: false }
        }
        "rms_norm" | "_fused_rms_norm" => Kind::Norm { weight: 2, is_rms: true },
        "embedding" => Kind::Embedding,
        "embedding_bag" | "_embedding_bag" => Kind::Bag,
        "cross_entropy_loss" | "log_softmax" | "_log_softmax" => Kind::Loss,
        name if is_reduction(name) => Kind::Pool,
        "relu" | "relu_" | "threshold" | "clamp_min" | "clamp_min_" => {
            Kind::Each(Elementwise::Relu)
        }
        "dropout" | "dropout_" | "native_dropout" | "feature_dropout" => {
            Kind::Each(Elementwise::Dropout)
        }
        "gelu" | "gelu_" | "silu" | "silu_" | "tanh" | "tanh_" | "sigmoid" | "sigmoid_" | "elu"
        | "leaky_relu" | "leaky_relu_" | "hardswish" | "hardswish_" | "hardtanh" | "hardtanh_"
        | "mish" | "softplus" => Kind::Each(Elementwise::Activation),
        "add" | "add_" | "sub" | "sub_" => {
            let both = input(0)?.elements == input(1).map_or(0, |other| other.elements)
                && input(1).is_some_and(is_data);
            Kind::Each(if both { Elementwise::Residual } else { Elementwise::Scale })
        }
        "mul" | "mul_" | "div" | "div_" | "neg" | "pow" | "rsqrt" | "sqrt" | "exp" | "cat"
        | "softmax" | "_softmax" | "where" | "masked_fill" | "masked_fill_" | "clone" | "copy_"
        | "_to_copy" => Kind::Each(Elementwise::Scale),
        _ => return None,
    };
    (!matches!(kind, Kind::Each(_)) || moves(operator)).then_some(kind)
}

/// Work on single numbers, such as counts of batches, takes no time of its own.
fn moves(operator: &Operator) -> bool {
    operator.outputs.iter().any(|output| output.elements > 1)
}

fn is_reduction(name: &str) -> bool {
    let is_pool = name.contains("pool") && !name.contains("backward");
    is_pool || matches!(name, "mean" | "sum" | "amax" | "max" | "min")
}

/// What moves no data: other shapes of the same memory, and memory that is not yet written.
pub(crate) fn is_view(name: &str) -> bool {
    let name = name.trim_start_matches("aten::");
    const VIEWS: [&str; 40] = [
        "view",
        "_unsafe_view",
        "reshape",
        "_reshape_alias",
        "t",
        "transpose",
        "permute",
        "expand",
        "expand_as",
        "unsqueeze",
        "unsqueeze_",
        "squeeze",
        "squeeze_",
        "select",
        "slice",
        "split",
        "split_with_sizes",
        "chunk",
        "unbind",
        "detach",
        "detach_",
        "as_strided",
        "as_strided_",
        "flatten",
        "alias",
        "narrow",
        "view_as",
        "lift_fresh",
        "empty",
        "empty_like",
        "empty_strided",
        "zeros",
        "zeros_like",
        "ones",
        "ones_like",
        "new_empty",
        "resize_",
        "result_type",
        "item",
        "_local_scalar_dense",
    ];
    VIEWS.contains(&name)
}

impl Kind {
    /// What is taken for work on each number.
    pub(super) const fn stranger() -> Self {
        Self::Each(Elementwise::Scale)
    }

    /// The position of its main weight.
    pub(super) const fn weight(self) -> Option<usize> {
        Some(match self {
            Self::Linear | Self::Convolution | Self::BatchNorm => 1,
            Self::Product { weight, .. } | Self::Norm { weight, .. } => weight,
            Self::Embedding | Self::Bag => 0,
            _ => return None,
        })
    }

    /// Whether it trains something, so that what else it reads is the sample, though nothing was
    /// computed from it yet.
    pub(super) const fn has_weight(self) -> bool {
        self.weight().is_some()
    }

    /// The data that it reads.
    pub(super) fn data(self, operator: &Operator) -> Option<&Operand> {
        let at = match self {
            Self::Linear | Self::Convolution | Self::Attention | Self::BatchNorm => 0,
            Self::Norm { .. } | Self::Loss | Self::Pool | Self::Each(_) => 0,
            Self::Product { data, .. } => data,
            Self::Both { left, .. } => left,
            Self::Embedding | Self::Bag => 1,
        };
        operator.inputs.get(at)?.first()
    }

    /// Its trainable tensors with their names.
    pub(super) fn weights<'a>(
        self,
        operator: &'a Operator,
        is_data: &dyn Fn(&Operand) -> bool,
    ) -> Vec<(&'static str, &'a Operand)> {
        let of = |at: usize| operator.inputs.get(at).and_then(|argument| argument.first());
        let bias = match self {
            Self::Linear | Self::Convolution | Self::BatchNorm => Some(2),
            Self::Norm { weight, is_rms: false } => Some(weight + 1),
            Self::Product { bias, .. } => bias,
            Self::Each(_) => return scale(operator, is_data),
            _ => None,
        };
        let named = [("weight", self.weight()), ("bias", bias)];
        let found = named.into_iter().filter_map(|(name, at)| Some((name, of(at?)?)));
        found.filter(|(_, operand)| operand.elements > 0 && !is_data(operand)).collect()
    }
}

/// A scale or shift by a vector as wide as the data: how norms are written out.
fn scale<'a>(
    operator: &'a Operator,
    is_data: &dyn Fn(&Operand) -> bool,
) -> Vec<(&'static str, &'a Operand)> {
    let width = operator.outputs.first().and_then(|output| output.shape.last());
    // A vector beside a vector weighs samples.
    let is_scale = matches!(operator.name.as_str(), "aten::mul" | "aten::add")
        && operator.outputs.first().is_some_and(|output| output.shape.len() >= 2);
    let fits = |operand: &&Operand| {
        operand.shape.len() == 1 && operand.shape.last() == width && operand.elements > 1
    };
    let inputs = operator.inputs.iter().take(2).flatten();
    let vector = inputs.filter(|operand| !is_data(operand)).find(fits);
    vector.filter(|_| is_scale).map(|vector| ("weight", vector)).into_iter().collect()
}
