//! The JSON of `varuna`.

mod convert;

use schemars::JsonSchema;
use serde::Serialize;

/// Pipelines of a model on so many GPUs, ranked.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct VarunaPlanReport {
    /// `foretrain/varuna-plan/1`.
    pub schema: String,
    /// The model, if the profile names it.
    pub model: Option<String>,
    /// GPUs there are.
    pub gpus: u32,
    /// Samples per step that were asked for.
    pub batch: u64,
    /// Memory of one GPU; `null` if nothing was checked.
    pub gpu_memory_bytes: Option<u64>,
    /// Those that can run, least time per sample first.
    pub ranked: Vec<VarunaCandidateReport>,
    /// Those that cannot run or cannot be known.
    pub refused: Vec<VarunaRefusedReport>,
    /// What the profile did not hold and was filled in, by kind, with an example.
    pub filled: Vec<VarunaFilledReport>,
    /// What the answer leaves out.
    pub notes: Vec<String>,
}

/// One configuration.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct VarunaCandidateReport {
    /// `varuna`, `gpipe`, `1f1b` or `1f1b-recompute`.
    pub schedule: String,
    /// `by count` or `by cost`.
    pub dealt: String,
    /// Stages, first to last.
    pub stages: Vec<VarunaStageReport>,
    /// Pipelines side by side.
    pub replicas: u32,
    /// GPUs without work.
    pub idle_gpus: u32,
    /// Samples per micro-batch.
    pub micro_batch: u32,
    /// Micro-batches per step and replica.
    pub micro_batches: u32,
    /// Samples per step over all replicas.
    pub samples: u64,
    /// Samples of the batch that are left out.
    pub dropped: u64,
    /// A step: pipeline, all-reduce, update.
    pub step_ns: i64,
    /// The pipeline; under jitter its median.
    pub pipeline_ns: i64,
    /// The all-reduce.
    pub all_reduce_ns: i64,
    /// The optimizer's update.
    pub update_ns: i64,
    /// Samples per second.
    pub throughput: f64,
    /// Share of the pipeline's time without computing, without jitter.
    pub bubble: f64,
    /// The pipeline under jitter.
    pub distribution: Option<VarunaDistributionReport>,
    /// Memory of the fullest stage; `null` if it was not checked.
    pub memory_bytes: Option<u64>,
    /// Whose the step's time is; the parts add up to it.
    pub shares: Vec<VarunaShareReport>,
    /// Time per sample over that of the first.
    pub slower: f64,
    /// What it loses by, against the first; `null` of the first.
    pub lost_to: Option<VarunaShareReport>,
}

/// One stage, for one micro-batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct VarunaStageReport {
    /// Its first cut-point, from 0.
    pub first_cut_point: usize,
    /// How many it has.
    pub cut_points: usize,
    /// The forward pass.
    pub forward_ns: i64,
    /// The backward pass.
    pub backward_ns: i64,
    /// Its output; `null` if it was not measured.
    pub activation_bytes: Option<u64>,
    /// A message to the next stage; `null` of the last.
    pub message_ns: Option<i64>,
}

/// Part of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct VarunaShareReport {
    /// `computing`, `imbalance`, `bubble`, `messages`, `jitter`, `all-reduce` or `update`.
    pub owner: String,
    /// How long.
    pub time_ns: i64,
}

/// A time under many draws of jitter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct VarunaDistributionReport {
    /// Draws.
    pub draws: u32,
    /// Seed of all draws.
    pub seed: u64,
    /// Standard deviation of a task's offset before truncation.
    pub compute_sigma_ns: i64,
    /// Standard deviation of a message's offset before truncation.
    pub network_sigma_ns: i64,
    /// The fifth percentile.
    pub p5_ns: i64,
    /// The median.
    pub p50_ns: i64,
    /// The 95th percentile.
    pub p95_ns: i64,
    /// The mean.
    pub mean_ns: i64,
}

/// A configuration that cannot run, or cannot be known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct VarunaRefusedReport {
    /// As of a candidate.
    pub schedule: String,
    /// Stages.
    pub stages: u32,
    /// As of a candidate.
    pub dealt: String,
    /// Samples per micro-batch; `null` if none is concerned.
    pub micro_batch: Option<u32>,
    /// `gpus`, `batch`, `memory` or `unknown`.
    pub kind: String,
    /// By how much memory it does not fit; `null` for other reasons.
    pub over_bytes: Option<u64>,
    /// Why.
    pub reason: String,
}

/// Something that was filled in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct VarunaFilledReport {
    /// `costs`, `send`, `long_send` or `all_reduce`.
    pub kind: String,
    /// The first that was.
    pub example: String,
}

/// Schedules of one pipeline.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct VarunaSimulateReport {
    /// `foretrain/varuna-simulate/1`.
    pub schema: String,
    /// Stages.
    pub stages: usize,
    /// Micro-batches.
    pub micro_batches: u32,
    /// In the order in which they were asked for.
    pub schedules: Vec<VarunaScheduleReport>,
}

/// One schedule.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct VarunaScheduleReport {
    /// As of a candidate.
    pub schedule: String,
    /// The pipeline without jitter.
    pub pipeline_ns: i64,
    /// With what follows it.
    pub step_ns: i64,
    /// Share of the pipeline's time without computing.
    pub bubble: f64,
    /// How long each stage computes.
    pub busy_ns: Vec<i64>,
    /// Micro-batches forward and not yet backward on each stage, at the most.
    pub in_flight: Vec<u32>,
    /// The pipeline under jitter.
    pub distribution: Option<VarunaDistributionReport>,
    /// What ran when; empty unless a timeline was asked for.
    pub timeline: Vec<VarunaTaskReport>,
}

/// A task as it ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct VarunaTaskReport {
    /// The stage, from 0.
    pub stage: usize,
    /// `forward`, `recompute` or `backward`.
    pub work: String,
    /// The micro-batch, from 0.
    pub micro_batch: u32,
    /// Its start.
    pub start_ns: i64,
    /// Its end.
    pub end_ns: i64,
}

/// A job on preemptible machines.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct VarunaMorphReport {
    /// `foretrain/varuna-morph/1`.
    pub schema: String,
    /// Length of the trace.
    pub length_ns: i64,
    /// Samples that count.
    pub samples: u64,
    /// Where the time went; the parts add up to the length.
    pub account: VarunaAccountReport,
    /// The GPUs of the trace.
    pub preemptible: VarunaCostReport,
    /// GPUs that are always there; `null` if the job cannot run on them.
    pub dedicated: Option<VarunaCostReport>,
    /// Plans in turn.
    pub plans: Vec<VarunaMorphingReport>,
    /// Slow machines that were left out.
    pub excluded: Vec<VarunaSlowReport>,
    /// Numbers of GPUs without a plan.
    pub unusable: Vec<VarunaUnusableReport>,
    /// As of a plan.
    pub filled: Vec<VarunaFilledReport>,
}

/// Where the time of a job went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct VarunaAccountReport {
    /// Steps that count.
    pub training_ns: i64,
    /// Steps that were lost, and pieces of steps.
    pub lost_ns: i64,
    /// Standing still for checkpoints.
    pub checkpoints_ns: i64,
    /// Waiting and restarting.
    pub restarting_ns: i64,
    /// Too few GPUs.
    pub starved_ns: i64,
}

/// GPUs and what they cost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct VarunaCostReport {
    /// GPUs, on average.
    pub gpus: f64,
    /// Samples per second, all waits included.
    pub goodput: f64,
    /// Price of a GPU for an hour; `null` if it was not given.
    pub gpu_hour: Option<f64>,
    /// Price of a million samples.
    pub per_million_samples: Option<f64>,
}

/// One plan of a job.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct VarunaMorphingReport {
    /// When its cause came.
    pub at_ns: i64,
    /// `start`, `loss`, `transient loss` or `growth`.
    pub cause: String,
    /// From when on the job trained again.
    pub resumed_ns: i64,
    /// GPUs there were.
    pub gpus: u32,
    /// Stages.
    pub stages: u32,
    /// Pipelines side by side.
    pub replicas: u32,
    /// Samples per micro-batch.
    pub micro_batch: u32,
    /// Micro-batches per step and replica.
    pub micro_batches: u32,
    /// Samples per second while it trains.
    pub throughput: f64,
    /// Steps that were lost before.
    pub lost_steps: i64,
}

/// A slow machine.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct VarunaSlowReport {
    /// Its name.
    pub machine: String,
    /// Its stage.
    pub stage: String,
    /// Its forward time over its stage's median.
    pub over_median: f64,
}

/// A number of GPUs that no plan can use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct VarunaUnusableReport {
    /// How many.
    pub gpus: u32,
    /// Why.
    pub reason: String,
}
