//! Arguments that say what is trained, and by what software.

use clap::Args;
use foretrain::core::{Bytes, DType};
use foretrain::plan::Optimiser;
use foretrain::plan::Precision;
use foretrain::plan::training::Lora;

use super::{planning, values};
use crate::commands::job::{AttentionForm, Job, Overrides};

/// What is trained.
#[derive(Debug, Args)]
pub(super) struct JobArgs {
    /// Samples of one step, over all replicas.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    batch: Option<u64>,
    /// Tokens of a sample; of a pair, the source's [default: the model's usual length].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    sequence: Option<u64>,
    /// Tokens of a pair's target [default: the model's usual length].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    target_sequence: Option<u64>,
    /// Number formats: fp32, tf32, fp16, bf16, fp8 or fp4 for matrix products, with what is usual
    /// beside them.
    #[arg(long, value_name = "TYPE", default_value = "bf16", value_parser = planning::precision)]
    precision: Precision,
    /// What updates the parameters: adam, momentum or sgd.
    #[arg(long, value_name = "NAME", default_value = "adam", value_parser = planning::optimiser)]
    optimizer: Optimiser,
    /// Train low-rank adapters of this width instead of the weights; with ,attention beside
    /// attention's projections only.
    #[arg(long, value_name = "RANK[,attention]", value_parser = planning::lora)]
    lora: Option<Lora>,
    /// Tokens of the busiest rank's experts over the mean, where experts are routed.
    #[arg(long, value_name = "X", default_value = "1", value_parser = values::positive)]
    expert_imbalance: f64,
    #[command(flatten)]
    software: SoftwareArgs,
}

#[derive(Debug, Args)]
struct SoftwareArgs {
    /// What runs the step: megatron, megatron-deepspeed (as of 2021 to 2023), fsdp, fsdp-compile,
    /// pytorch (eager, DDP) or xla.
    #[arg(long, help_heading = "Software", value_name = "NAME", default_value = "megatron")]
    software: String,
    /// Tensor-parallel communication is cut up and runs beside the products it belongs to.
    #[arg(long, help_heading = "Software")]
    overlap_tensor: bool,
    /// Gradients are synchronised after the last backward pass, not beside it.
    #[arg(long, help_heading = "Software")]
    no_overlap_gradients: bool,
    /// What runs attention: tuned (cuDNN, FlashAttention-3), flash-2, flash-1, or written-out where
    /// scores are formed, kept and read again.
    #[arg(long, help_heading = "Software", value_name = "KERNEL", value_parser = planning::attention)]
    attention: Option<AttentionForm>,
    /// Ranks that divide causal sequences take contiguous pieces, so that the last has most to do.
    #[arg(long, help_heading = "Software")]
    unbalanced_context: bool,
    /// The host launches recorded graphs, so its pace does not matter.
    #[arg(long, help_heading = "Software")]
    cuda_graphs: bool,
    /// Gradients synchronised at once, as in 25MiB.
    #[arg(long, help_heading = "Software", value_name = "SIZE", value_parser = values::size)]
    bucket: Option<Bytes>,
    /// Number format in which gradients are reduced, as in bf16, whatever they are accumulated in.
    #[arg(long, help_heading = "Software", value_name = "TYPE", value_parser = planning::dtype)]
    reduce_in: Option<DType>,
}

impl JobArgs {
    /// The job of `model`.
    pub(super) fn of(self, model: String) -> Job {
        let software = self.software;
        Job {
            model,
            batch: self.batch,
            sequence: self.sequence,
            target: self.target_sequence,
            precision: self.precision,
            optimiser: self.optimizer,
            lora: self.lora,
            expert_imbalance: self.expert_imbalance,
            software: software.software,
            overrides: Overrides {
                overlap_tensor: software.overlap_tensor,
                no_overlap_gradients: software.no_overlap_gradients,
                attention: software.attention,
                unbalanced_context: software.unbalanced_context,
                cuda_graphs: software.cuda_graphs,
                bucket: software.bucket,
                reduce_in: software.reduce_in,
            },
        }
    }
}
