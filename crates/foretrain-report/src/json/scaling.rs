//! The JSON of `scaling`.

use foretrain_core::{Bandwidth, Estimate};
use foretrain_cost::Volume;
use foretrain_predict::scaling::{
    AccumulationAnswer, BreakEven, PointAnswer, Predicted, RankAnswer, Remedy, ScalingAnswer,
    SegmentRate, SeriesAnswer, SplitAnswer, StrategyOutlook,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::common::{Range, RangeNs, finite};

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
    /// What leaves a node.
    pub node_bytes: VolumeReport,
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

impl ScalingReport {
    /// A report of an answer.
    pub fn new(answer: &ScalingAnswer) -> Self {
        Self {
            schema: "foretrain/scaling/1".into(),
            series: answer.series.iter().map(Into::into).collect(),
            ranks: answer.ranks.as_ref().map(Into::into),
            contradictions: answer.contradictions.clone(),
        }
    }
}

fn gbit(rate: Bandwidth) -> f64 {
    finite(rate.get() * 8e-9)
}

impl From<&SeriesAnswer> for ScaleSeriesReport {
    fn from(series: &SeriesAnswer) -> Self {
        let by_batch = |(batch_per_gpu, rate): &(u32, Bandwidth)| RateByBatchReport {
            batch_per_gpu: *batch_per_gpu,
            effective_gbit_per_s: gbit(*rate),
        };
        let effective = |rate: Estimate<Bandwidth>| rate.map::<f64>(|rate| rate * 8e-9).into();
        Self {
            name: series.name.clone(),
            unit: series.unit.clone(),
            verdict: series.verdict.as_str().into(),
            reasons: series.reasons.clone(),
            points: series.points.iter().map(Into::into).collect(),
            lost_inside_node: series.losses.inside_node.map(finite),
            lost_between_nodes: series.losses.between_nodes.map(finite),
            effective_gbit_per_s: series.effective.map(effective),
            effective_by_batch: series.effective_by_batch.iter().map(by_batch).collect(),
            segments: series.segments.iter().map(Into::into).collect(),
            break_even: series.break_even.map(Into::into),
            accumulation: series.accumulation.as_ref().map(Into::into),
            remedies: series.remedies.iter().map(Into::into).collect(),
            strategies: series.strategies.iter().map(Into::into).collect(),
            predictions: series.predictions.iter().map(Into::into).collect(),
            unanswered: series.unanswered.clone(),
            warnings: series.warnings.clone(),
            assumptions: series.assumptions.clone(),
        }
    }
}

impl From<&PointAnswer> for ScalePointReport {
    fn from(point: &PointAnswer) -> Self {
        Self {
            gpus: point.gpus,
            nodes: point.nodes,
            accumulation: point.accumulation,
            strategy: point.strategy.as_str().into(),
            speed_up: finite(point.speed_up),
            efficiency: finite(point.efficiency),
            scaling_factor: point.scaling_factor.map(finite),
            per_gpu: point.per_gpu.map(finite),
            step_ratio: point.step_ratio.map(finite),
            step_ns: point.step.map(foretrain_core::Nanos::nanos),
            rank_bytes: point.rank_bytes.map(Into::into),
            node_bytes: point.node_bytes.map(Into::into),
            effective_gbit_per_s: point.effective.map(gbit),
            average_gbit_per_s: point.average.map(gbit),
        }
    }
}

impl From<Volume> for VolumeReport {
    fn from(volume: Volume) -> Self {
        Self {
            forward: finite(volume.forward),
            backward: finite(volume.backward),
            update: finite(volume.update),
            total: finite(volume.total()),
        }
    }
}

impl From<&SegmentRate> for SegmentRateReport {
    fn from(segment: &SegmentRate) -> Self {
        Self {
            part: segment.part.into(),
            gpus: segment.gpus,
            growth_ns: segment.growth.nanos(),
            node_bytes: finite(segment.node_bytes),
            gbit_per_s: gbit(segment.rate),
        }
    }
}

impl From<BreakEven> for BreakEvenReport {
    fn from(break_even: BreakEven) -> Self {
        Self {
            gpus: break_even.gpus,
            times_for_80_percent: finite(break_even.times_for_80),
            gbit_per_s_for_80_percent: break_even.rate_for_80.map(gbit),
            times_to_hide: finite(break_even.times_to_hide),
            gbit_per_s_to_hide: break_even.rate_to_hide.map(gbit),
        }
    }
}

impl From<&AccumulationAnswer> for AccumulationReport {
    fn from(answer: &AccumulationAnswer) -> Self {
        Self {
            gpus: answer.gpus,
            measured: answer.measured.clone(),
            ceiling: answer.ceiling.map(finite),
            sync_micro_steps: finite(answer.sync_micro_steps),
            sync_ns: answer.sync.map(foretrain_core::Nanos::nanos),
            misfit: finite(answer.misfit),
            knee_80_percent: answer.knee_80,
            knee_90_percent: answer.knee_90,
        }
    }
}

impl From<&Remedy> for RemedyReport {
    fn from(remedy: &Remedy) -> Self {
        Self {
            what: remedy.what.clone(),
            efficiency: remedy.efficiency.into(),
            gain: finite(remedy.gain),
            condition: remedy.condition.clone(),
        }
    }
}

impl From<&StrategyOutlook> for StrategyOutlookReport {
    fn from(outlook: &StrategyOutlook) -> Self {
        Self {
            strategy: outlook.strategy.as_str().into(),
            gpus: outlook.gpus,
            present: outlook.is_present,
            node_bytes: outlook.node_bytes.into(),
            at_line_rate_ns: outlook.at_line_rate.map(foretrain_core::Nanos::nanos),
            step: outlook.step.map(Into::into),
            efficiency: outlook.efficiency.map(Into::into),
        }
    }
}

impl From<&Predicted> for PredictedScaleReport {
    fn from(predicted: &Predicted) -> Self {
        Self {
            gpus: predicted.gpus,
            nodes: predicted.nodes,
            accumulation: predicted.accumulation,
            efficiency: predicted.efficiency.into(),
            throughput: predicted.throughput.map(Into::into),
            step: predicted.step.map(Into::into),
            basis: predicted.basis.clone(),
        }
    }
}

impl From<&RankAnswer> for RanksReport {
    fn from(answer: &RankAnswer) -> Self {
        Self {
            verdict: answer.verdict.as_str().into(),
            present: answer.present.as_ref().map(Into::into),
            best: (&answer.best).into(),
            warnings: answer.warnings.clone(),
        }
    }
}

impl From<&SplitAnswer> for RankSplitReport {
    fn from(split: &SplitAnswer) -> Self {
        let kinds = split.kinds.iter().map(|(name, count, batch, step)| RankKindReport {
            name: name.clone(),
            count: *count,
            batch: finite(*batch),
            step_ns: step.nanos(),
        });
        Self {
            kinds: kinds.collect(),
            step_ns: split.step.nanos(),
            throughput: finite(split.throughput),
        }
    }
}
