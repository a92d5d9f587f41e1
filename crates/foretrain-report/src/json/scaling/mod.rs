//! The JSON of `scaling`.

mod convert;

use schemars::JsonSchema;
use serde::Serialize;

use super::common::{Range, RangeNs};

/// Measured scaling, judged. Rates of the network are gigabits per second of a node's NICs together,
/// in one direction; bytes are per step and in one direction.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ScalingReport {
    /// `foretrain/scaling/1`.
    pub schema: String,
    /// By series, in the order of the input.
    pub series: Vec<ScaleSeriesReport>,
    /// Ranks of different speed; `null` if the input has none.
    pub ranks: Option<RanksReport>,
    /// Series or points that contradict each other, and what to ask about them.
    pub contradictions: Vec<String>,
}

/// One series.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ScaleSeriesReport {
    /// Its name; empty if it has none.
    pub name: String,
    /// Unit of rates; `null` where times were measured.
    pub unit: Option<String>,
    /// `communication-bound`, `latency-bound`, `loss inside the node`, `imbalanced ranks`,
    /// `input-bound suspected`, `scales well` or `not enough information`.
    pub verdict: String,
    /// Why.
    pub reasons: Vec<String>,
    /// By nodes and size.
    pub points: Vec<ScalePointReport>,
    /// Share of the per-GPU rate lost from the smallest to the largest point of one node.
    pub lost_inside_node: Option<f64>,
    /// Share of the node's per-GPU rate lost at the largest size.
    pub lost_between_nodes: Option<f64>,
    /// The rate that the measured growth implies.
    pub effective_gbit_per_s: Option<Range>,
    /// The same for usual batches, where the batch per GPU is unknown.
    pub effective_by_batch: Vec<RateByBatchReport>,
    /// The rate that parts of the step imply.
    pub segments: Vec<SegmentRateReport>,
    /// What rate would do.
    pub break_even: Option<BreakEvenReport>,
    /// What points of different accumulation tell.
    pub accumulation: Option<AccumulationReport>,
    /// What would help at the largest size, most helpful first.
    pub remedies: Vec<RemedyReport>,
    /// What each strategy moves, fewest bytes first.
    pub strategies: Vec<StrategyOutlookReport>,
    /// Sizes that were asked for.
    pub predictions: Vec<PredictedScaleReport>,
    /// Those that cannot be answered, and why.
    pub unanswered: Vec<String>,
    /// What misleads.
    pub warnings: Vec<String>,
    /// What was taken for granted.
    pub assumptions: Vec<String>,
}

/// A measured point.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ScalePointReport {
    /// GPUs.
    pub gpus: u32,
    /// Nodes.
    pub nodes: u32,
    /// Micro-batches per step.
    pub accumulation: u32,
    /// How gradients were synchronised.
    pub strategy: String,
    /// Work per second against the smallest point.
    pub speed_up: f64,
    /// Work per second and GPU against the smallest point.
    pub efficiency: f64,
    /// Work per second and GPU against one GPU; `null` if one GPU was not measured.
    pub scaling_factor: Option<f64>,
    /// Work per second and GPU, in the unit.
    pub per_gpu: Option<f64>,
    /// Step time over that of the smallest point.
    pub step_ratio: Option<f64>,
    /// Time of a step, if it can be known.
    pub step_ns: Option<i64>,
    /// What a rank sends.
    pub rank_bytes: Option<VolumeReport>,
    /// What leaves a node.
    pub node_bytes: Option<VolumeReport>,
    /// Rate that the growth of the step implies.
    pub effective_gbit_per_s: Option<f64>,
    /// Average use of the NICs over the step.
    pub average_gbit_per_s: Option<f64>,
}

/// Bytes by part of the step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct VolumeReport {
    /// Before or during forward passes.
    pub forward: f64,
    /// During or after backward passes.
    pub backward: f64,
    /// After the update.
    pub update: f64,
    /// All of it.
    pub total: f64,
}

/// A rate under an assumed batch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RateByBatchReport {
    /// Samples per GPU and micro-batch.
    pub batch_per_gpu: u32,
    /// The rate that the growth implies then.
    pub effective_gbit_per_s: f64,
}

/// A part of the step that grew.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SegmentRateReport {
    /// `forward` or `backward`.
    pub part: String,
    /// GPUs of the larger point.
    pub gpus: u32,
    /// By how much.
    pub growth_ns: i64,
    /// What leaves a node in it.
    pub node_bytes: f64,
    /// Bytes over growth.
    pub gbit_per_s: f64,
}

/// Rates that would do at the largest size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BreakEvenReport {
    /// GPUs of that size.
    pub gpus: u32,
    /// Times the present effective rate, for 80 % of one node's rate per GPU.
    pub times_for_80_percent: f64,
    /// That rate.
    pub gbit_per_s_for_80_percent: Option<f64>,
    /// Times the present effective rate, to hide communication behind the backward pass.
    pub times_to_hide: f64,
    /// That rate.
    pub gbit_per_s_to_hide: Option<f64>,
}

/// Micro-steps and one synchronisation per step.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AccumulationReport {
    /// GPUs of the points.
    pub gpus: u32,
    /// Micro-batches of the points.
    pub measured: Vec<u32>,
    /// Rate of all GPUs with endless accumulation.
    pub ceiling: Option<f64>,
    /// Cost of a synchronisation in micro-steps.
    pub sync_micro_steps: f64,
    /// Its time.
    pub sync_ns: Option<i64>,
    /// Largest relative deviation of a point.
    pub misfit: f64,
    /// Micro-batches for 80 % of the ceiling.
    pub knee_80_percent: u32,
    /// Micro-batches for 90 % of the ceiling.
    pub knee_90_percent: u32,
}

/// Something to change.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RemedyReport {
    /// What.
    pub what: String,
    /// Efficiency against one node that it gives.
    pub efficiency: Range,
    /// Rate against the present one.
    pub gain: f64,
    /// On what condition.
    pub condition: String,
}

/// A strategy at the largest size.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct StrategyOutlookReport {
    /// Which.
    pub strategy: String,
    /// GPUs.
    pub gpus: u32,
    /// Whether it was measured.
    pub present: bool,
    /// Bytes that leave a node over those of the present strategy.
    pub relative_bytes: f64,
    /// What leaves a node, if known.
    pub node_bytes: Option<VolumeReport>,
    /// The time for that at the NICs' nominal rate.
    pub at_line_rate_ns: Option<i64>,
    /// The step.
    pub step: Option<RangeNs>,
    /// Efficiency against one node.
    pub efficiency: Option<Range>,
}

/// A size that was not measured.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PredictedScaleReport {
    /// GPUs.
    pub gpus: u32,
    /// Nodes.
    pub nodes: u32,
    /// Micro-batches per step.
    pub accumulation: u32,
    /// Efficiency against the smallest point.
    pub efficiency: Range,
    /// Rate of all GPUs in the unit.
    pub throughput: Option<Range>,
    /// Time of a step.
    pub step: Option<RangeNs>,
    /// What it rests on.
    pub basis: String,
}

/// Ranks of different speed.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RanksReport {
    /// As of a series.
    pub verdict: String,
    /// With the batches as they are.
    pub present: Option<RankSplitReport>,
    /// With the best batches.
    pub best: RankSplitReport,
    /// What to heed.
    pub warnings: Vec<String>,
}

/// Batches and what they give.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RankSplitReport {
    /// By kind of rank.
    pub kinds: Vec<RankKindReport>,
    /// The step: that of the slowest.
    pub step_ns: i64,
    /// Samples per second of all.
    pub throughput: f64,
}

/// Ranks of one speed.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RankKindReport {
    /// Its name.
    pub name: String,
    /// How many.
    pub count: u32,
    /// Samples per step of each.
    pub batch: f64,
    /// Time of its step alone.
    pub step_ns: i64,
}
