//! What is trained, and in which numbers.

use foretrain_core::{DType, InputError, Result};
use serde::{Deserialize, Serialize};

/// What is trained, apart from the layout.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Training {
    /// Samples of one step, over all replicas.
    pub global_batch: u64,
    /// Tokens of a sample; the source of a pair. Ignored by models with a fixed input.
    pub sequence: u64,
    /// Tokens of a pair's target.
    #[serde(default)]
    pub target: u64,
    /// Number formats.
    pub precision: Precision,
    /// What updates the parameters.
    #[serde(default)]
    pub optimiser: Optimiser,
    /// Low-rank adapters beside frozen weights.
    #[serde(default)]
    pub lora: Option<Lora>,
    /// Tokens of the busiest rank's experts over the mean.
    #[serde(default = "balanced")]
    pub expert_imbalance: f64,
}

impl Training {
    /// So many samples of so many tokens, in bf16 with Adam, experts in balance.
    pub const fn of(global_batch: u64, sequence: u64) -> Self {
        Self {
            global_batch,
            sequence,
            target: 0,
            precision: Precision::BF16,
            optimiser: Optimiser::Adam,
            lora: None,
            expert_imbalance: 1.0,
        }
    }
}

fn balanced() -> f64 {
    1.0
}

/// Number formats of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Precision {
    /// Factors of matrix products.
    pub compute: DType,
    /// Activations as they are kept and passed on.
    pub activations: DType,
    /// Parameters that the passes read.
    pub weights: DType,
    /// Gradients as they are accumulated and synchronised.
    pub gradients: DType,
    /// A second copy of the parameters that the update works on.
    pub master: Option<DType>,
    /// Each of the optimiser's moments.
    pub moments: DType,
}

impl Precision {
    /// bf16 passes, gradients and optimiser in f32 (Megatron-LM).
    pub const BF16: Self = Self {
        compute: DType::Bf16,
        activations: DType::Bf16,
        weights: DType::Bf16,
        gradients: DType::F32,
        master: Some(DType::F32),
        moments: DType::F32,
    };
    /// fp16 passes and gradients, optimiser in f32.
    pub const F16: Self = Self {
        compute: DType::F16,
        activations: DType::F16,
        weights: DType::F16,
        gradients: DType::F16,
        master: Some(DType::F32),
        moments: DType::F32,
    };
    /// All in f32, with f32 products.
    pub const F32: Self = Self {
        compute: DType::F32,
        activations: DType::F32,
        weights: DType::F32,
        gradients: DType::F32,
        master: None,
        moments: DType::F32,
    };
    /// f32 with TF32 products.
    pub const TF32: Self = Self { compute: DType::Tf32, ..Self::F32 };
    /// bf16 with products of 8-bit floats.
    pub const F8: Self = Self { compute: DType::F8E4m3, ..Self::BF16 };
    /// bf16 with products of 4-bit floats.
    pub const F4: Self = Self { compute: DType::F4, ..Self::BF16 };

    /// By name.
    ///
    /// # Errors
    /// For an unknown name.
    pub fn parse(name: &str) -> Result<Self> {
        Ok(match name.trim().to_ascii_lowercase().as_str() {
            "bf16" | "bfloat16" => Self::BF16,
            "fp16" | "f16" | "half" => Self::F16,
            "fp32" | "f32" => Self::F32,
            "tf32" => Self::TF32,
            "fp8" | "f8" => Self::F8,
            "fp4" | "f4" | "nvfp4" => Self::F4,
            _ => {
                return Err(InputError::new(format!("\"{name}\" is no precision"))
                    .hint("one of fp32, tf32, fp16, bf16, fp8, fp4"));
            }
        })
    }

    /// Products in fewer bits than activations have need the factors cast first.
    pub fn casts(&self) -> bool {
        self.compute.bits() < self.activations.bits()
    }

    /// Type of products that stay in the activations' type, as attention's do.
    pub fn unquantised(&self) -> DType {
        if self.casts() { self.activations } else { self.compute }
    }
}

/// What updates the parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Optimiser {
    /// Two moments.
    #[default]
    Adam,
    /// One moment.
    Momentum,
    /// None.
    Sgd,
}

impl Optimiser {
    /// Numbers kept per parameter beside the parameter itself.
    pub const fn moments(self) -> u64 {
        match self {
            Self::Adam => 2,
            Self::Momentum => 1,
            Self::Sgd => 0,
        }
    }
    /// Its name, as read and written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Adam => "adam",
            Self::Momentum => "momentum",
            Self::Sgd => "sgd",
        }
    }
    /// By name.
    ///
    /// # Errors
    /// For an unknown name.
    pub fn parse(name: &str) -> Result<Self> {
        [Self::Adam, Self::Momentum, Self::Sgd]
            .into_iter()
            .find(|one| one.as_str() == name.trim().to_ascii_lowercase())
            .ok_or_else(|| {
                InputError::new(format!("\"{name}\" is no optimiser"))
                    .hint("one of adam, momentum, sgd")
            })
    }
}

/// Low-rank adapters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Lora {
    /// Width of the adapters.
    pub rank: u64,
    /// Beside attention's projections only, not the feed-forward ones.
    #[serde(default)]
    pub attention_only: bool,
}

impl Lora {
    /// Adapter parameters that a rank trains in `layer`.
    pub(crate) fn parameters(
        &self,
        layer: &foretrain_workload::model::Layer,
        layout: &crate::Layout,
    ) -> u64 {
        use foretrain_workload::model::{OpKind, Split};
        let ranks = u64::from(layout.tensor.max(1));
        let adapters = layer.ops.iter().filter(|op| self.adapts(op)).map(|op| match op.kind {
            OpKind::Linear { inputs, outputs } if op.split == Split::Columns => {
                self.rank * (inputs + outputs.div_ceil(ranks))
            }
            OpKind::Linear { inputs, outputs } => self.rank * (inputs.div_ceil(ranks) + outputs),
            _ => 0,
        });
        adapters.sum()
    }

    /// Whether `op` has an adapter beside it.
    pub(crate) fn adapts(&self, op: &foretrain_workload::model::Op) -> bool {
        use foretrain_workload::model::Split;
        let attention = ["attention", "attn", "qkv"].iter().any(|word| op.name.contains(word));
        (attention || !self.attention_only) && matches!(op.split, Split::Columns | Split::Rows)
    }
}
