//! The JSON of `plan`.

mod convert;
mod recorded;

pub use recorded::{
    KeptReport, PlanRecordedReport, RecordedChoiceReport, RecordedClusterReport,
    RecordedDifferenceReport, RecordedRivalReport, RecordedSizeReport,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::common::{EvidenceReport, RangeNs};
use super::estimate::{
    AdviceReport, CalibratedReport, HorizonReport, LayoutReport, PartReport, TrainingReport,
};

/// Layouts of a model on clusters, ranked.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PlanReport {
    /// `foretrain/plan/1`.
    pub schema: String,
    /// The model.
    pub model: String,
    /// The software.
    pub software: String,
    /// What is trained.
    pub training: TrainingReport,
    /// Whether every layout was looked at; if not, the answer is the best so far.
    pub complete: bool,
    /// Tokens (or samples) to finish.
    pub goal_tokens: Option<f64>,
    /// Seconds to finish them in.
    pub goal_seconds: Option<f64>,
    /// Clusters and sizes, in the order asked.
    pub places: Vec<PlaceReport>,
    /// Position of the best place; `null` where nothing fits.
    pub best: Option<usize>,
    /// How it was chosen: `only`, `fastest`, `cheapest`, `cheapest-in-time` or `none-in-time`.
    pub choice: String,
    /// Clusters and sizes that could not be planned for.
    pub left_out: Vec<LeftOutPlaceReport>,
    /// Layouts that none beats in time, cost and memory at once, the fastest first.
    pub front: Vec<FrontReport>,
    /// The best place's next in the ranking.
    pub runner_up: Option<RivalReport>,
    /// The best that divides the model otherwise, where the runner-up does not.
    pub other_split: Option<RivalReport>,
    /// What a tenth more speed would save the winner.
    pub sensitivity: Vec<SensitivityReport>,
    /// What is missing, where nothing fits.
    pub needs: Option<NeedsReport>,
    /// The layout asked about.
    pub explained: Option<ExplainedReport>,
    /// What the winner's numbers rest on.
    pub evidence: Vec<EvidenceReport>,
}

/// A cluster and a size.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PlaceReport {
    /// The cluster.
    pub cluster: String,
    /// Devices.
    pub devices: u32,
    /// Memory of a device.
    pub capacity_bytes: u64,
    /// Memory that may be filled.
    pub limit_bytes: u64,
    /// Layouts that there are.
    pub layouts: usize,
    /// Layouts looked at.
    pub looked_at: usize,
    /// Refused: they do not go with the model, the batch or the cluster.
    pub illegal: usize,
    /// Refused: they do not fit into memory.
    pub too_large: usize,
    /// Refused: they compute alone for more than twice the best step.
    pub hopeless: usize,
    /// The best layouts.
    pub ranked: Vec<CandidateReport>,
    /// How many are ranked, listed here or not.
    pub ranked_count: usize,
    /// The fastest, where a simpler one of equal time is preferred.
    pub fastest: Option<CandidateReport>,
    /// Everything about the preferred one.
    pub winner: Option<LayoutReport>,
    /// What it takes to finish the goal.
    pub to_finish: Option<HorizonReport>,
    /// Measured steps that its times rest on.
    pub calibrated: Option<CalibratedReport>,
}

/// A layout of a ranking.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CandidateReport {
    /// As `--parallel` takes it.
    pub layout: String,
    /// Its step time.
    pub step_time: RangeNs,
    /// Whether its interval overlaps the winner's.
    pub ties: bool,
    /// Tokens (or samples) per second, all devices together.
    pub tokens_per_second: f64,
    /// Model FLOPs over the dense peak.
    pub mfu: Option<f64>,
    /// US dollars for a million tokens.
    pub dollars_per_million_tokens: Option<f64>,
    /// Most likely use of the fullest device.
    pub memory_bytes: u64,
    /// `yes` or `tight`.
    pub fits: String,
}

/// A cluster and size without a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LeftOutPlaceReport {
    /// The cluster.
    pub cluster: String,
    /// Devices.
    pub devices: u32,
    /// Why.
    pub reason: String,
}

/// A layout on the front.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FrontReport {
    /// Position of its place.
    pub place: usize,
    /// The layout.
    pub candidate: CandidateReport,
}

/// A layout beside the winner.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RivalReport {
    /// The layout.
    pub layout: LayoutReport,
    /// What it spends more than the winner, part by part, the largest first.
    pub differences: Vec<PartReport>,
    /// Where the order flips.
    pub crossovers: Vec<CrossoverReport>,
    /// Step times of both at other batches.
    pub by_batch: Vec<AtBatchReport>,
}

/// Where the order of two layouts flips.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CrossoverReport {
    /// What is changed.
    pub what: String,
    /// Unit of the values; empty for counts.
    pub unit: String,
    /// The value at which it flips; `null` if it does not within the range.
    pub at: Option<f64>,
    /// The value now.
    pub now: f64,
    /// The least that was looked at.
    pub from: f64,
    /// The most.
    pub to: f64,
}

/// Two layouts at one batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AtBatchReport {
    /// Samples of a step.
    pub global_batch: u64,
    /// The winner's step.
    pub winner_ns: i64,
    /// The other's.
    pub rival_ns: i64,
}

/// How the winner answers to the hardware.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SensitivityReport {
    /// What is made a tenth faster.
    pub what: String,
    /// Step time saved, per cent.
    pub saved_percent: f64,
}

/// What is missing where nothing fits.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct NeedsReport {
    /// The layout that comes nearest.
    pub layout: String,
    /// What its fullest device needs.
    pub memory_bytes: u64,
    /// Single changes after which it fits.
    pub changes: Vec<AdviceReport>,
    /// The first doubling of devices at which something fits.
    pub more_devices: Option<u32>,
    /// What fits there.
    pub layout_on_more_devices: Option<String>,
}

/// A layout that was asked about.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ExplainedReport {
    /// As it was asked for.
    pub asked: String,
    /// Why it is no layout of this job.
    pub refused: Option<String>,
    /// What to do about it.
    pub hints: Vec<String>,
    /// The layout.
    pub layout: Option<LayoutReport>,
    /// Its position in the ranking, counted from 1.
    pub rank: Option<usize>,
    /// Beside the winner.
    pub beside_winner: Option<RivalReport>,
    /// Where it does not fit, changes after which it does.
    pub changes: Vec<AdviceReport>,
}
