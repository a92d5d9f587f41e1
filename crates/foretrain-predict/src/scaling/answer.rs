//! What is said of measured scaling.

use foretrain_core::{Bandwidth, Estimate, Nanos};
use foretrain_cost::{Synchronisation, Volume};

/// Everything that was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScalingAnswer {
    /// By series, in the order of the input.
    pub series: Vec<SeriesAnswer>,
    /// Ranks of different speed, if the input has them.
    pub ranks: Option<RankAnswer>,
    /// Series or points that contradict each other, and what to ask about them.
    pub contradictions: Vec<String>,
}

/// What limits a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The time lost is that of moving bytes between nodes.
    CommunicationBound,
    /// The time lost grows with the number of ranks, as latencies of many hops do.
    LatencyBound,
    /// Most is lost before the job leaves its node.
    LossInsideNode,
    /// Ranks wait for the slowest.
    ImbalancedRanks,
    /// Throughput stays where it is whatever the number of GPUs.
    InputBoundSuspected,
    /// Less than a tenth is lost.
    ScalesWell,
    /// The points do not tell.
    NotEnoughInformation,
}

impl Verdict {
    /// The words for tables and JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CommunicationBound => "communication-bound",
            Self::LatencyBound => "latency-bound",
            Self::LossInsideNode => "loss inside the node",
            Self::ImbalancedRanks => "imbalanced ranks",
            Self::InputBoundSuspected => "input-bound suspected",
            Self::ScalesWell => "scales well",
            Self::NotEnoughInformation => "not enough information",
        }
    }
}

/// What was found of one series.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesAnswer {
    /// Its name; empty if it has none.
    pub name: String,
    /// The unit of rates; `None` where times were measured.
    pub unit: Option<String>,
    /// What limits it.
    pub verdict: Verdict,
    /// Why.
    pub reasons: Vec<String>,
    /// By nodes and size.
    pub points: Vec<PointAnswer>,
    /// Where the loss is.
    pub losses: Losses,
    /// The rate of a node's NICs in one direction that the measured growth implies, if bytes and
    /// step times are known.
    pub effective: Option<Estimate<Bandwidth>>,
    /// The same for batches per GPU that would be usual, where the batch is not known.
    pub effective_by_batch: Vec<(u32, Bandwidth)>,
    /// The rate that the parts of the step imply.
    pub segments: Vec<SegmentRate>,
    /// What rate would do.
    pub break_even: Option<BreakEven>,
    /// What points of different accumulation tell.
    pub accumulation: Option<AccumulationAnswer>,
    /// What would help at the largest measured size, most helpful first.
    pub remedies: Vec<Remedy>,
    /// What each strategy moves and how it would do at the size in question.
    pub strategies: Vec<StrategyOutlook>,
    /// Sizes that were asked for.
    pub predictions: Vec<Predicted>,
    /// Sizes that were asked for and cannot be answered.
    pub unanswered: Vec<String>,
    /// What misleads.
    pub warnings: Vec<String>,
    /// What was taken for granted.
    pub assumptions: Vec<String>,
}

/// A measured point in common terms.
#[derive(Clone, Debug, PartialEq)]
pub struct PointAnswer {
    /// GPUs.
    pub gpus: u32,
    /// Nodes.
    pub nodes: u32,
    /// Micro-batches per step.
    pub accumulation: u32,
    /// How gradients were synchronised.
    pub strategy: Synchronisation,
    /// Work per second against the smallest point.
    pub speed_up: f64,
    /// Work per second and GPU against the smallest point.
    pub efficiency: f64,
    /// Work per second and GPU against one GPU, if one GPU was measured.
    pub scaling_factor: Option<f64>,
    /// Work per second and GPU, in the unit; `None` where times were measured.
    pub per_gpu: Option<f64>,
    /// Step time over that of the smallest point; `None` if that needs an unknown batch.
    pub step_ratio: Option<f64>,
    /// Time of a step, if it can be known.
    pub step: Option<Nanos>,
    /// Bytes that a rank sends per step in one direction.
    pub rank_bytes: Option<Volume>,
    /// Bytes that leave a node per step.
    pub node_bytes: Option<Volume>,
    /// Rate of a node's NICs in one direction that the growth of the step implies.
    pub effective: Option<Bandwidth>,
    /// Average use of the NICs in one direction over the whole step.
    pub average: Option<Bandwidth>,
}

/// Shares of the per-GPU rate lost, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Losses {
    /// From the smallest point of one node to its largest.
    pub inside_node: Option<f64>,
    /// From the largest point of one node to the largest size.
    pub between_nodes: Option<f64>,
}

/// A part of the step that grew.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SegmentRate {
    /// `forward` or `backward`.
    pub part: &'static str,
    /// GPUs of the larger point.
    pub gpus: u32,
    /// By how much.
    pub growth: Nanos,
    /// What leaves a node in it.
    pub node_bytes: f64,
    /// Bytes over growth.
    pub rate: Bandwidth,
}

/// Rates of a node's NICs in one direction at the largest measured size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BreakEven {
    /// GPUs of that size.
    pub gpus: u32,
    /// Times the present effective rate that give 80 % of one node's rate per GPU.
    pub times_for_80: f64,
    /// That rate, where known.
    pub rate_for_80: Option<Bandwidth>,
    /// Times the present effective rate at which communication fits into the backward pass (two
    /// thirds of the computation).
    pub times_to_hide: f64,
    /// That rate, where known.
    pub rate_to_hide: Option<Bandwidth>,
}

/// `k` micro-steps and one synchronisation per step.
#[derive(Clone, Debug, PartialEq)]
pub struct AccumulationAnswer {
    /// GPUs of the points.
    pub gpus: u32,
    /// The accumulations measured.
    pub measured: Vec<u32>,
    /// Rate of all GPUs with endless accumulation, in the unit; `None` where times were measured.
    pub ceiling: Option<f64>,
    /// Cost of a synchronisation in micro-steps.
    pub sync_micro_steps: f64,
    /// The synchronisation's time, if times are known.
    pub sync: Option<Nanos>,
    /// Largest deviation of a point from the line, relative; zero for two points.
    pub misfit: f64,
    /// Micro-batches for 80 % of the ceiling.
    pub knee_80: u32,
    /// Micro-batches for 90 % of the ceiling.
    pub knee_90: u32,
}

/// Something to change.
#[derive(Clone, Debug, PartialEq)]
pub struct Remedy {
    /// What.
    pub what: String,
    /// Efficiency against one node that it is predicted to give.
    pub efficiency: Estimate<f64>,
    /// Rate against the present one.
    pub gain: f64,
    /// On what condition, at what price.
    pub condition: String,
}

/// A strategy at the largest size.
#[derive(Clone, Debug, PartialEq)]
pub struct StrategyOutlook {
    /// Which.
    pub strategy: Synchronisation,
    /// GPUs.
    pub gpus: u32,
    /// Whether it is the one that was measured.
    pub is_present: bool,
    /// Bytes that leave a node per step, over those of the present strategy.
    pub relative_bytes: f64,
    /// Bytes that leave a node per step, if known.
    pub node_bytes: Option<Volume>,
    /// The time for that at the NICs' nominal rate.
    pub at_line_rate: Option<Nanos>,
    /// The step.
    pub step: Option<Estimate<Nanos>>,
    /// Efficiency against one node.
    pub efficiency: Option<Estimate<f64>>,
}

/// A size that was not measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Predicted {
    /// GPUs.
    pub gpus: u32,
    /// Nodes.
    pub nodes: u32,
    /// Micro-batches per step.
    pub accumulation: u32,
    /// Efficiency against the smallest point.
    pub efficiency: Estimate<f64>,
    /// Rate of all GPUs in the unit; `None` where times were measured.
    pub throughput: Option<Estimate<f64>>,
    /// Time of a step, if it can be known.
    pub step: Option<Estimate<Nanos>>,
    /// What it rests on.
    pub basis: String,
}

/// Ranks of different speed.
#[derive(Clone, Debug, PartialEq)]
pub struct RankAnswer {
    /// Whether ranks wait for the slowest, with the batches as they are.
    pub verdict: Verdict,
    /// With the batches as they are, if all are known.
    pub present: Option<SplitAnswer>,
    /// With the best batches under the memory of each.
    pub best: SplitAnswer,
    /// What to heed.
    pub warnings: Vec<String>,
}

/// Batches and what they give.
#[derive(Clone, Debug, PartialEq)]
pub struct SplitAnswer {
    /// By kind of rank: name, how many, batch of each, time of its step.
    pub kinds: Vec<(String, u32, f64, Nanos)>,
    /// The step: that of the slowest.
    pub step: Nanos,
    /// Samples per second of all.
    pub throughput: f64,
}
