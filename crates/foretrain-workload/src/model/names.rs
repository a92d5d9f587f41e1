//! Names of operations, for answers.

use super::{Elementwise, Norm, OpKind, Split};

impl Split {
    /// Its name, `columns`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Columns => "columns",
            Self::Rows => "rows",
            Self::Inner => "inner",
            Self::Outer => "outer",
            Self::Vocabulary => "vocabulary",
            Self::Experts => "experts",
            Self::Whole => "whole",
        }
    }
}

impl OpKind {
    /// Its name, `linear`; that of what is done to each number for elementwise ones.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Linear { .. } => "linear",
            Self::Attention(_) => "attention",
            Self::Norm { norm: Norm::Layer, .. } => "layer-norm",
            Self::Norm { norm: Norm::Rms, .. } => "rms-norm",
            Self::Elementwise { what, .. } => what.as_str(),
            Self::Embedding { .. } => "embedding",
            Self::CrossEntropy { .. } => "cross-entropy",
            Self::Router { .. } => "router",
            Self::Experts(_) => "experts",
            Self::Convolution(_) => "convolution",
            Self::BatchNorm { .. } => "batch-norm",
            Self::Pool { .. } => "pool",
            Self::Recurrent { .. } => "recurrent",
            Self::Interaction { .. } => "interaction",
        }
    }
}

impl Elementwise {
    /// Its name, `activation`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Activation => "activation",
            Self::Relu => "relu",
            Self::Gated => "gated",
            Self::Dropout => "dropout",
            Self::Residual => "residual",
            Self::DropoutResidual => "dropout-residual",
            Self::Rotary => "rotary",
            Self::Scale => "scale",
        }
    }
}
