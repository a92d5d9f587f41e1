//! The arguments of `scaling`.

use std::path::PathBuf;

use clap::Args;
use foretrain::core::InputError;
use foretrain::predict::scaling::read::{JobSpec, Unit, Written};

use super::values;
use crate::commands::scaling::{Inline, Options};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  foretrain scaling runs.toml
  foretrain scaling runs.csv --gpus-per-node 8 --gradient-bytes 500MB --nic 25Gbit/s --ask 32,64
  foretrain scaling --point 8=2697 --point 16=2633 --unit img/s --gpus-per-node 8 \\
      --gradient-bytes 102MB --ask 64
  foretrain scaling --point 2=2.46s,nodes=1,forward=357ms,backward=673ms \\
      --point 4=8.68s,nodes=2,forward=1.6s,backward=2.51s \\
      --parameters 1.54e9 --dtype bf16 --strategy zero-3
  foretrain scaling --ranks slow:count=2,rate=500,batch=200,most=200 \\
      --ranks fast:count=2,rate=750,batch=200,most=300

docs/scaling.md explains the files, the model and the verdicts.")]
pub(super) struct Scaling {
    /// Files of measured points: TOML, or tables with commas (.csv).
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// A measured point, as in 16=2633 or 4=8.68s,nodes=2,accumulation=8; may be given several times.
    /// It takes nodes, batch (per GPU), accumulation, strategy, forward and backward.
    #[arg(long = "point", value_name = "GPUS=VALUE")]
    points: Vec<String>,
    /// The unit of points: s/step, s/epoch (time for the same data), img/s (all GPUs together) or
    /// img/s/GPU.
    #[arg(long, value_name = "UNIT", default_value = "s/step", value_parser = values::hinted::<Unit>)]
    unit: Unit,
    /// Ranks of one speed, as in slow:count=2,rate=500,batch=200,most=200: samples per second of one,
    /// its batch and the most its memory holds; may be given several times.
    #[arg(long = "ranks", value_name = "NAME:rate=N")]
    ranks: Vec<String>,
    /// Samples per step of all ranks, where that is fixed.
    #[arg(long, value_name = "N", value_parser = values::positive)]
    global_batch: Option<f64>,
    /// Sizes to predict, in GPUs.
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = values::gpus)]
    ask: Vec<u32>,
    /// Micro-batches per step to predict.
    #[arg(long, value_name = "COUNTS", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..))]
    ask_accumulation: Vec<u32>,
    #[command(flatten)]
    job: Job,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "What is known of the job")]
struct Job {
    /// GPUs on a node.
    #[arg(long, value_name = "N")]
    gpus_per_node: Option<String>,
    /// Bytes of all gradients, as in 102MB.
    #[arg(long, value_name = "SIZE")]
    gradient_bytes: Option<String>,
    /// Bytes of all parameters, where sharded strategies gather more than they reduce.
    #[arg(long, value_name = "SIZE")]
    parameter_bytes: Option<String>,
    /// Parameters, as in 1.54e9; with --dtype it gives the bytes.
    #[arg(long, value_name = "N")]
    parameters: Option<String>,
    /// Trainable parameters, where others are frozen (LoRA).
    #[arg(long, value_name = "N")]
    trainable_parameters: Option<String>,
    /// Element type of parameters and gradients, as in bf16 [default: fp32].
    #[arg(long, value_name = "TYPE")]
    dtype: Option<String>,
    /// Element type of gradients, where it differs.
    #[arg(long, value_name = "TYPE")]
    gradient_dtype: Option<String>,
    /// How gradients are synchronised: ddp, zero-1, zero-2, zero-3, fsdp, hsdp or ps [default: ddp].
    #[arg(long, value_name = "NAME")]
    strategy: Option<String>,
    /// Micro-batches per step.
    #[arg(long, value_name = "N")]
    accumulation: Option<String>,
    /// Samples (or whatever the unit counts) per GPU and micro-batch.
    #[arg(long, value_name = "N")]
    batch_per_gpu: Option<String>,
    /// Gradients are exchanged after every micro-batch (no no_sync).
    #[arg(long)]
    sync_every_micro_batch: bool,
    /// Nominal rate of a node's NICs together, in one direction, as in 25Gbit/s.
    #[arg(long, value_name = "RATE")]
    nic: Option<String>,
    /// The batch of all GPUs together was the same at all sizes (strong scaling).
    #[arg(long)]
    same_global_batch: bool,
    /// Time of a step at the smallest point, where points are rates or times for the same data.
    #[arg(long, value_name = "TIME")]
    base_step: Option<String>,
}

impl From<Job> for JobSpec {
    fn from(job: Job) -> Self {
        let written = |text: Option<String>| text.map(Written);
        Self {
            gpus_per_node: written(job.gpus_per_node),
            parameters: written(job.parameters),
            trainable_parameters: written(job.trainable_parameters),
            dtype: job.dtype,
            gradient_dtype: job.gradient_dtype,
            parameter_bytes: written(job.parameter_bytes),
            gradient_bytes: written(job.gradient_bytes),
            strategy: job.strategy,
            accumulation: written(job.accumulation),
            batch_per_gpu: written(job.batch_per_gpu),
            sync_every_micro_batch: job.sync_every_micro_batch.then_some(true),
            nic: job.nic,
            same_global_batch: job.same_global_batch.then_some(true),
            base_step: job.base_step,
        }
    }
}

impl From<Scaling> for Options {
    fn from(args: Scaling) -> Self {
        Self {
            files: args.files,
            inline: Inline { points: args.points, unit: args.unit, ranks: args.ranks },
            global_batch: args.global_batch,
            ask: args.ask,
            ask_accumulation: args.ask_accumulation,
            job: args.job.into(),
        }
    }
}

/// `gpus_per_node` of a job table is `--gpus-per-node` here.
pub(crate) fn as_argument(error: InputError) -> InputError {
    match error.place().map(str::to_owned) {
        Some(key) if key.chars().all(|c| c.is_ascii_lowercase() || c == '_') => {
            let hints = error.hints().to_vec();
            let moved = InputError::new(error.message()).at(format!("--{}", key.replace('_', "-")));
            hints.into_iter().fold(moved, InputError::hint)
        }
        _ => error,
    }
}
