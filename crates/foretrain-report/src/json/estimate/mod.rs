//! The JSON of `estimate`, and of layouts in plans.

mod calibrated;
mod convert;

use schemars::JsonSchema;
use serde::Serialize;

use super::common::{EvidenceReport, Range, RangeNs};

pub use calibrated::{CalibratedReport, MeasuredStepReport};
pub(super) use convert::fit;

/// What one layout of a model costs on a cluster.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct EstimateReport {
    /// `foretrain/estimate/1`.
    pub schema: String,
    /// The model.
    pub model: String,
    /// Its trainable numbers.
    pub parameters: u64,
    /// Those that one position meets.
    pub active_parameters: u64,
    /// The cluster.
    pub cluster: String,
    /// The device.
    pub device: String,
    /// Its dense peak for the passes' number format, FLOP/s.
    pub peak_flops_per_s: Option<f64>,
    /// The software.
    pub software: String,
    /// What is trained.
    pub training: TrainingReport,
    /// Measured steps that its times rest on.
    pub calibrated: Option<CalibratedReport>,
    /// The layout's costs.
    pub layout: LayoutReport,
    /// How the stages of a pipeline take turns.
    pub pipeline: Option<PipelineReport>,
    /// What it takes to finish the tokens asked for.
    pub to_finish: Option<HorizonReport>,
    /// What would make it fit, where it does not.
    pub remedies: Option<RemediesReport>,
    /// What the numbers rest on, strongest first.
    pub evidence: Vec<EvidenceReport>,
    /// What a reader must know before using them.
    pub notes: Vec<String>,
}

/// What is trained.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TrainingReport {
    /// Samples of a step, over all replicas.
    pub global_batch: u64,
    /// Tokens of a sample; the source of a pair; 0 for a fixed input.
    pub sequence: u64,
    /// Tokens of a pair's target.
    pub target_sequence: u64,
    /// Number format of matrix products.
    pub compute_dtype: String,
    /// Number format of kept activations.
    pub activation_dtype: String,
    /// Number format of weights.
    pub weight_dtype: String,
    /// Number format of gradients.
    pub gradient_dtype: String,
    /// What updates the parameters.
    pub optimiser: String,
    /// Width of low-rank adapters, where they are trained instead of the weights.
    pub lora_rank: Option<u64>,
}

/// One layout and what it costs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LayoutReport {
    /// As `--parallel` takes it.
    pub text: String,
    /// Devices.
    pub devices: u64,
    /// From the start of one step to that of the next.
    pub step_time: RangeNs,
    /// Micro-batches of one replica.
    pub micro_batches: u64,
    /// Tokens of a step; samples for models with a fixed input.
    pub tokens_per_step: f64,
    /// Whether these are samples.
    pub in_samples: bool,
    /// Per second, all devices together.
    pub tokens_per_second: f64,
    /// Model FLOPs of a step: three times those of a forward pass, twice where weights are frozen.
    pub model_flops_per_step: f64,
    /// Model FLOPs over step time, devices and dense peak.
    pub mfu: Option<f64>,
    /// What a rank of the busiest stage spends the step on; adds up to the step time.
    pub parts: Vec<PartReport>,
    /// The stage that `parts` is of.
    pub parts_stage: u32,
    /// Communication of that rank that runs beside kernels.
    pub hidden_communication_ns: i64,
    /// Times of every stage.
    pub stages: Vec<StageTimeReport>,
    /// `yes`, `tight` or `no`.
    pub fits: String,
    /// Memory of every stage.
    pub memory: Vec<StageMemoryReport>,
    /// Power of all nodes.
    pub watts: Option<f64>,
    /// Energy of a step.
    pub joules_per_step: Option<f64>,
    /// US dollars of all nodes per hour.
    pub dollars_per_hour: Option<f64>,
    /// US dollars of a step.
    pub dollars_per_step: Option<f64>,
}

/// A part of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PartReport {
    /// Its stable name.
    pub part: String,
    /// For people.
    pub label: String,
    /// Its time.
    pub time_ns: i64,
}

/// One stage's time, from the step's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StageTimeReport {
    /// In passes.
    pub busy_ns: i64,
    /// Its first pass begins.
    pub started_ns: i64,
    /// Passes are done.
    pub computed_ns: i64,
    /// Gradients are synchronised.
    pub synchronised_ns: i64,
    /// The update takes.
    pub update_ns: i64,
}

/// One stage's memory at its peak.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StageMemoryReport {
    /// The stage.
    pub stage: u32,
    /// What the device has.
    pub capacity_bytes: u64,
    /// `yes`, `tight` or `no`.
    pub fits: String,
    /// What it is used for.
    pub items: Vec<MemoryItemReport>,
    /// What tensors take.
    pub allocated: RangeBytes,
    /// What the allocator holds for them.
    pub reserved: RangeBytes,
    /// With what lies outside the allocator.
    pub used: RangeBytes,
}

/// An item of memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MemoryItemReport {
    /// Its stable name.
    pub item: String,
    /// Its size.
    pub bytes: u64,
}

/// A size between two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RangeBytes {
    /// Most likely.
    pub value_bytes: u64,
    /// At least.
    pub low_bytes: u64,
    /// At most.
    pub high_bytes: u64,
}

/// How stages take turns.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PipelineReport {
    /// The schedule.
    pub schedule: String,
    /// Micro-batches of one replica.
    pub micro_batches: u64,
    /// Chunks of layers per stage.
    pub chunks: u32,
    /// By stage: forward passes over a chunk before they alternate with backward passes.
    pub warm_up: Vec<u64>,
    /// By stage: forward passes over a chunk that are kept at once.
    pub in_flight: Vec<u64>,
    /// Idle share of the passes, simulated.
    pub bubble: f64,
    /// (p - 1) / (v m + p - 1), for schedules that have it.
    pub ideal_bubble: Option<f64>,
}

/// What it takes to finish.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct HorizonReport {
    /// Tokens (or samples).
    pub tokens: f64,
    /// Steps.
    pub steps: f64,
    /// Seconds, without interruptions.
    pub seconds: Range,
    /// US dollars.
    pub dollars: Option<f64>,
    /// Joules.
    pub joules: Option<f64>,
}

/// What would make a layout fit.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RemediesReport {
    /// Single changes, fastest first.
    pub changes: Vec<AdviceReport>,
    /// Where there are none, the fastest layout of the same devices that fits.
    pub plan: Option<String>,
    /// Where there is none, the one that comes nearest.
    pub nearest: Option<String>,
    /// What that needs.
    pub nearest_bytes: Option<u64>,
}

/// A change and what comes of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AdviceReport {
    /// For people.
    pub change: String,
    /// The changed layout.
    pub layout: String,
    /// Its step time.
    pub step_time: RangeNs,
    /// Most likely use of its fullest device.
    pub memory_bytes: u64,
    /// `yes` or `tight`.
    pub fits: String,
}
