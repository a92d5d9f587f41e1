//! The JSON of `plan` for recordings.

use foretrain_core::{Ledger, Nanos};
use foretrain_predict::Owner;
use foretrain_predict::plan::{Kept, RecordedChoice, RecordedPlan};
use schemars::JsonSchema;
use serde::Serialize;

use crate::json::common::{EvidenceReport, LedgerReport, finite};
use crate::json::predict::RecordedReport;
use crate::json::whatif::{LeftOutScenarioReport, OutcomeReport};

/// How to run a recorded job: every size with every way to synchronise it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PlanRecordedReport {
    /// `foretrain/plan-recorded/1`.
    pub schema: String,
    /// What it starts from.
    pub recorded: RecordedReport,
    /// One entry per cluster, in the order asked.
    pub clusters: Vec<RecordedClusterReport>,
    /// What is as it was recorded.
    pub kept: Vec<KeptReport>,
    /// What reading and analysing the traces met.
    pub ledger: LedgerReport,
}

/// The plan on one cluster.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RecordedClusterReport {
    /// The cluster.
    pub cluster: String,
    /// Whether every choice was looked at.
    pub complete: bool,
    /// Choices that there are.
    pub choices: usize,
    /// Choices that were looked at.
    pub looked_at: usize,
    /// One entry per size, in the order asked.
    pub sizes: Vec<RecordedSizeReport>,
    /// Choices that could not be simulated, and why.
    pub left_out: Vec<LeftOutScenarioReport>,
    /// What the numbers rest on, strongest first.
    pub evidence: Vec<EvidenceReport>,
    /// What a reader must know before using them.
    pub warnings: Vec<String>,
}

/// The choices on one number of devices.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RecordedSizeReport {
    /// Devices.
    pub gpus: u32,
    /// Choices, the fastest first; as many as were asked for.
    pub ranked: Vec<RecordedChoiceReport>,
    /// How many there are.
    pub ranked_count: usize,
    /// The second beside the first.
    pub runner_up: Option<RecordedRivalReport>,
    /// The one that was asked about beside the first.
    pub explained: Option<RecordedRivalReport>,
}

/// One way to run the job.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RecordedChoiceReport {
    /// How replicas are synchronised, as `predict --strategy` takes it.
    pub strategy: String,
    /// The job under it.
    pub outcome: OutcomeReport,
    /// Throughput over that of the fastest on as many devices.
    pub of_best: f64,
    /// Whether the fastest lies within its interval.
    pub ties: bool,
    /// US dollars per hour of the nodes.
    pub dollars_per_hour: Option<f64>,
}

/// A choice beside the fastest.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RecordedRivalReport {
    /// Its position in the ranking, counted from 1.
    pub rank: usize,
    /// The choice.
    pub choice: RecordedChoiceReport,
    /// What it spends more, by owner, the largest first; adds up to the difference of the steps.
    pub differences: Vec<RecordedDifferenceReport>,
}

/// What a choice spends more than the fastest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RecordedDifferenceReport {
    /// The owner's stable name.
    pub owner: String,
    /// For people.
    pub label: String,
    /// The time.
    pub time_ns: i64,
}

/// Something that is not planned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct KeptReport {
    /// What.
    pub what: String,
    /// Why the recording does not tell what another choice would cost.
    pub why: String,
}

impl PlanRecordedReport {
    /// The report of plans from the recording that `first` starts from, one for each cluster, and of
    /// what reading it met; `top` choices of each size are listed.
    pub fn new(first: &RecordedPlan, others: &[RecordedPlan], ledger: &Ledger, top: usize) -> Self {
        let plans = std::iter::once(first).chain(others);
        let kept = |kept: &Kept| KeptReport { what: kept.what.into(), why: kept.why.clone() };
        Self {
            schema: "foretrain/plan-recorded/1".into(),
            recorded: (&first.start.recorded).into(),
            clusters: plans.map(|plan| cluster(plan, top)).collect(),
            kept: first.kept.iter().map(kept).collect(),
            ledger: ledger.into(),
        }
    }
}

fn cluster(plan: &RecordedPlan, top: usize) -> RecordedClusterReport {
    let left_out = |(label, reason): &(String, String)| LeftOutScenarioReport {
        label: label.clone(),
        reason: reason.clone(),
    };
    RecordedClusterReport {
        cluster: plan.cluster.clone(),
        complete: plan.is_complete(),
        choices: plan.all,
        looked_at: plan.looked_at,
        sizes: plan.sizes().map(|choices| size(choices, plan.explain.as_deref(), top)).collect(),
        left_out: plan.left_out.iter().map(left_out).collect(),
        evidence: plan.start.evidence.iter().map(Into::into).collect(),
        warnings: plan.start.warnings.clone(),
    }
}

fn size(choices: &[RecordedChoice], asked: Option<&str>, top: usize) -> RecordedSizeReport {
    let beside = |at: usize| {
        let (best, other) = (choices.first()?, choices.get(at)?);
        Some(RecordedRivalReport {
            rank: at + 1,
            choice: other.into(),
            differences: best.why(other).into_iter().map(difference).collect(),
        })
    };
    let asked = asked.and_then(|asked| choices.iter().position(|one| one.strategy == asked));
    RecordedSizeReport {
        gpus: choices.first().map_or(0, |choice| choice.outcome.gpus),
        ranked: choices.iter().take(top).map(Into::into).collect(),
        ranked_count: choices.len(),
        runner_up: beside(1),
        explained: asked.and_then(beside),
    }
}

fn difference((owner, time): (Owner, Nanos)) -> RecordedDifferenceReport {
    RecordedDifferenceReport {
        owner: owner.code().into(),
        label: owner.describe(),
        time_ns: time.nanos(),
    }
}

impl From<&RecordedChoice> for RecordedChoiceReport {
    fn from(choice: &RecordedChoice) -> Self {
        Self {
            strategy: choice.strategy.clone(),
            outcome: (&choice.outcome).into(),
            of_best: finite(choice.of_best),
            ties: choice.ties,
            dollars_per_hour: choice.dollars_per_hour.map(finite),
        }
    }
}
