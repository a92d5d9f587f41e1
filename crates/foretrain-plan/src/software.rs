//! What the training software does with a layout: fusion, overlap, and what its host costs.

use foretrain_core::{Bytes, InputError, Nanos, Result, suggest};
use foretrain_cost::kernels::AttentionKernel;
use serde::{Deserialize, Serialize};

/// How software runs a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Software {
    /// Its name.
    pub name: String,
    /// The kernel that attention is; without one, scores are formed, kept and read again.
    pub attention: Option<AttentionKernel>,
    /// How far other kernels are merged.
    pub fusion: Fusion,
    /// Softmax and cross-entropy in one pass over the logits.
    pub fused_loss: bool,
    /// Host time from one launch to the next where the host is what limits, forward. This and the
    /// other times of the host are of an AMD EPYC 7742; [`Host`](crate::step::Host) scales them.
    pub host_forward: Nanos,
    /// The same in the backward pass, which no interpreter drives.
    pub host_backward: Nanos,
    /// Host time per micro-batch and stage beside the launches.
    pub host_per_pass: Nanos,
    /// Host time per step beside the passes: data, logging, schedules of learning rates.
    pub host_per_step: Nanos,
    /// Host time per layer that is formed again: generator states saved, set and set back.
    pub host_per_checkpoint: Nanos,
    /// Ranks that divide causal sequences take pieces from both ends, so that all see as many keys;
    /// else the last rank has nearly twice the mean to do.
    pub balanced_context: bool,
    /// Gradients are synchronised beside the last backward pass.
    pub overlap_gradients: bool,
    /// Divided parameters are gathered beside the passes that use them.
    pub overlap_parameters: bool,
    /// Tensor-parallel communication is cut up and runs beside the products it belongs to.
    pub overlap_tensor: bool,
    /// The gradient of a column split's input is reduced beside the product for its weights.
    pub overlap_tensor_gradients: bool,
    /// Activations travel between stages while the sender computes on.
    pub overlap_pipeline: bool,
    /// A token goes to each rank and node once, however many of its experts are there (DeepEP,
    /// HybridEP).
    pub expert_dedup: bool,
    /// Gradients synchronised at once.
    pub bucket: Bytes,
    /// Parameters that may stay gathered at once where they are divided (DeepSpeed's
    /// `stage3_max_live_parameters`); at least those of the layers at work.
    pub live_parameters: u64,
    /// Gradients are reduced in the activations' type although they are accumulated in f32.
    pub reduce_in_activations: bool,
}

/// How far kernels are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fusion {
    /// One kernel per operator.
    Eager,
    /// Hand-written fused norms, activations, dropout and softmax.
    Fused,
    /// A compiler merges everything between matrix products.
    Compiled,
}

impl Software {
    /// Names that [`named`](Self::named) knows.
    pub const NAMES: [&'static str; 7] =
        ["megatron", "megatron-deepspeed", "deepspeed", "fsdp", "fsdp-compile", "pytorch", "xla"];

    /// Megatron-Core with Transformer Engine, as of 2024. The host's times are those at which the
    /// steps of Megatron-LM's functional tests come out without bias (e2e_megatron_functional_tests).
    pub fn megatron() -> Self {
        Self {
            name: "megatron".into(),
            attention: Some(AttentionKernel::Tuned),
            fusion: Fusion::Fused,
            fused_loss: false,
            host_forward: Nanos::from_micros(225),
            host_backward: Nanos::from_micros(150),
            host_per_pass: Nanos::from_micros(300),
            host_per_checkpoint: Nanos::from_micros(600),
            host_per_step: Nanos::from_millis(5),
            balanced_context: true,
            overlap_gradients: true,
            overlap_parameters: true,
            overlap_tensor: false,
            overlap_tensor_gradients: true,
            overlap_pipeline: true,
            expert_dedup: true,
            bucket: Bytes::from_mib(160),
            live_parameters: 0,
            reduce_in_activations: false,
        }
    }

    /// PyTorch's own modules and attention, one kernel per operator.
    fn eager() -> Self {
        Self {
            attention: Some(AttentionKernel::Flash2),
            fusion: Fusion::Eager,
            host_forward: Nanos::from_micros(110),
            host_backward: Nanos::from_micros(70),
            bucket: Bytes::from_mib(25),
            ..Self::megatron()
        }
    }

    /// By name.
    ///
    /// # Errors
    /// For an unknown name.
    pub fn named(name: &str) -> Result<Self> {
        let megatron = Self::megatron();
        Ok(match name {
            "megatron" => megatron,
            // 2021 to 2023: no fused attention, gradients after the last backward pass. The host's
            // times are those of the smallest model of vTrain's grid.
            "megatron-deepspeed" => Self {
                attention: None,
                host_forward: Nanos::from_micros(60),
                host_backward: Nanos::from_micros(40),
                host_per_step: Nanos::from_millis(2),
                overlap_gradients: false,
                overlap_parameters: false,
                overlap_tensor_gradients: false,
                overlap_pipeline: false,
                ..megatron
            },
            // Its defaults: a thousand million live parameters, buckets of half as many elements.
            "deepspeed" => Self {
                host_forward: Nanos::from_micros(40),
                host_backward: Nanos::from_micros(30),
                host_per_step: Nanos::from_millis(2),
                overlap_parameters: false,
                bucket: Bytes::new(1_000_000_000),
                live_parameters: 1_000_000_000,
                ..Self::eager()
            },
            "fsdp" | "pytorch" => Self::eager(),
            "fsdp-compile" => Self {
                fusion: Fusion::Compiled,
                host_forward: Nanos::from_micros(6),
                bucket: megatron.bucket,
                ..Self::eager()
            },
            "xla" => Self {
                fusion: Fusion::Compiled,
                fused_loss: true,
                host_forward: Nanos::ZERO,
                host_backward: Nanos::ZERO,
                host_per_pass: Nanos::ZERO,
                host_per_step: Nanos::ZERO,
                host_per_checkpoint: Nanos::ZERO,
                ..megatron
            },
            _ => {
                let mut error = InputError::new(format!("\"{name}\" is no software known here"));
                if let Some(near) = suggest::nearest(name, Self::NAMES) {
                    error = error.hint(format!("did you mean \"{near}\"?"));
                }
                return Err(error.hint(format!("one of {}", Self::NAMES.join(", "))));
            }
        })
        .map(|software| Self { name: name.into(), ..software })
    }
}
