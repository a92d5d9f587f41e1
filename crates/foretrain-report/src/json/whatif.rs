//! The JSON of `whatif`.

use foretrain_core::{Ledger, Nanos};
use foretrain_predict::Owner;
use foretrain_predict::whatif::answer::{Outcome, ScenarioAnswer, Share, WhatIf};
use schemars::JsonSchema;
use serde::Serialize;

use super::common::{EvidenceReport, LedgerReport, Range, RangeNs, finite};
use super::predict::{OwnerReport, RecordedReport};

/// What changes to a job would buy.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct WhatIfReport {
    /// `foretrain/whatif/1`.
    pub schema: String,
    /// Cluster of the baseline.
    pub cluster: String,
    /// What it starts from.
    pub recorded: RecordedReport,
    /// The job without changes.
    pub baseline: OutcomeReport,
    /// Whether the scenarios are the standard list, which is answered when none is asked for.
    pub standard: bool,
    /// One entry per scenario, in the order asked; of the standard list, the largest saving first.
    pub scenarios: Vec<ScenarioReport>,
    /// Scenarios of the standard list that do not apply.
    pub left_out: Vec<LeftOutScenarioReport>,
    /// What the numbers rest on, strongest first.
    pub evidence: Vec<EvidenceReport>,
    /// What a reader must know before using them.
    pub warnings: Vec<String>,
    /// What reading and analysing the traces met.
    pub ledger: LedgerReport,
}

/// A job as it is or would be.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct OutcomeReport {
    /// Devices.
    pub gpus: u32,
    /// Nodes they fill.
    pub nodes: u32,
    /// Model replicas.
    pub replicas: u32,
    /// Samples that a replica processes per step, over those of the recording.
    pub batch: f64,
    /// Time of a steady step.
    pub step_time: RangeNs,
    /// Recorded replica batches that the job gets done per second.
    pub batches_per_second: Range,
    /// The same in samples, if the batch of a replica was given.
    pub samples_per_second: Option<Range>,
    /// Who owns the step; the times add up to it.
    pub breakdown: Vec<OwnerReport>,
    /// Whether simulated step times had settled.
    pub converged: bool,
}

/// One scenario and what it buys.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ScenarioReport {
    /// Its name, or its changes.
    pub label: String,
    /// Its changes, in order.
    pub changes: Vec<String>,
    /// What the changes did, in words.
    pub notes: Vec<String>,
    /// The job under it.
    pub outcome: OutcomeReport,
    /// Time that a step takes less than the baseline's; negative if it takes longer.
    pub saving_ns: i64,
    /// The same over the baseline's step; at most 1.
    pub saving_share: f64,
    /// What each change is worth; empty for a single change and for combinations of a sweep.
    pub waterfall: Vec<WaterfallReport>,
    /// Whether the changes alone save more than together: they pay for the same time.
    pub overlaps: bool,
}

/// What one change of several is worth.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WaterfallReport {
    /// The change.
    pub change: String,
    /// What it saves made alone.
    pub alone_ns: i64,
    /// What it saves made last, when all the others are made.
    pub last_ns: i64,
}

/// A scenario of the standard list that does not apply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LeftOutScenarioReport {
    /// The scenario.
    pub label: String,
    /// Why.
    pub reason: String,
}

impl WhatIfReport {
    /// The report of an answer and of what reading its traces met.
    pub fn new(answer: &WhatIf, ledger: &Ledger) -> Self {
        let before = answer.baseline.step_time.value;
        let left_out = |(label, reason): &(String, String)| LeftOutScenarioReport {
            label: label.clone(),
            reason: reason.clone(),
        };
        Self {
            schema: "foretrain/whatif/1".into(),
            cluster: answer.cluster.clone(),
            recorded: (&answer.recorded).into(),
            baseline: (&answer.baseline).into(),
            standard: answer.is_standard,
            scenarios: answer.scenarios.iter().map(|one| scenario(one, before)).collect(),
            left_out: answer.left_out.iter().map(left_out).collect(),
            evidence: answer.evidence.iter().map(Into::into).collect(),
            warnings: answer.warnings.clone(),
            ledger: ledger.into(),
        }
    }
}

fn scenario(answer: &ScenarioAnswer, before: Nanos) -> ScenarioReport {
    let saving = answer.saving.nanos();
    ScenarioReport {
        label: answer.label.clone(),
        changes: answer.changes.clone(),
        notes: answer.notes.clone(),
        outcome: (&answer.outcome).into(),
        saving_ns: saving,
        saving_share: finite(saving as f64 / before.nanos().max(1) as f64),
        waterfall: answer.shares.iter().map(Into::into).collect(),
        overlaps: answer.overlaps(),
    }
}

impl From<&Outcome> for OutcomeReport {
    fn from(outcome: &Outcome) -> Self {
        let total = outcome.breakdown.total();
        let owner = |(owner, time): &(Owner, Nanos)| OwnerReport::new(owner, *time, total);
        Self {
            gpus: outcome.gpus,
            nodes: outcome.nodes,
            replicas: outcome.replicas,
            batch: finite(outcome.batch),
            step_time: outcome.step_time.into(),
            batches_per_second: outcome.throughput.into(),
            samples_per_second: outcome.samples_per_second.map(Into::into),
            breakdown: outcome.breakdown.parts.iter().map(owner).collect(),
            converged: outcome.converged,
        }
    }
}

impl From<&Share> for WaterfallReport {
    fn from(share: &Share) -> Self {
        Self {
            change: share.change.clone(),
            alone_ns: share.alone.nanos(),
            last_ns: share.last.nanos(),
        }
    }
}
