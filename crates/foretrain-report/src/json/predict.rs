//! The JSON of `predict`.

use foretrain_core::{Bytes, Ledger, Nanos};
use foretrain_predict::answer::{CriticalPart, HeldUp, Recorded, ScaledCollective};
use foretrain_predict::{Owner, Prediction, SizePrediction};
use schemars::JsonSchema;
use serde::Serialize;

use super::common::{EvidenceReport, LedgerReport, Range, RangeNs, finite};

/// Step times of a job on a cluster, by job size.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PredictReport {
    /// `foretrain/predict/1`.
    pub schema: String,
    /// Cluster the prediction is for.
    pub cluster: String,
    /// What it starts from.
    pub recorded: RecordedReport,
    /// One entry per size asked for, in the order asked.
    pub sizes: Vec<SizeReport>,
    /// What the numbers rest on, strongest first.
    pub evidence: Vec<EvidenceReport>,
    /// What a reader must know before using them.
    pub warnings: Vec<String>,
    /// What reading and analysing the traces met.
    pub ledger: LedgerReport,
}

/// What a prediction starts from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RecordedReport {
    /// Files.
    pub sources: Vec<String>,
    /// Rank whose steps stand for the job.
    pub rank: u32,
    /// Recorded ranks that were simulated together; one alone carries its recorded waiting along.
    pub simulated_ranks: Vec<u32>,
    /// Ranks in the recorded job.
    pub world_size: u32,
    /// Devices of one model replica.
    pub replica_size: u32,
    /// Device as the recording names it; empty if it does not.
    pub device: String,
    /// How step boundaries are known.
    pub step_source: String,
    /// Steps used.
    pub steps: usize,
    /// Median recorded step time.
    pub step_time_ns: i64,
    /// Step time of the steady graph replayed unchanged.
    pub replayed_ns: i64,
}

/// One size of job.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SizeReport {
    /// Devices.
    pub gpus: u32,
    /// Nodes they fill.
    pub nodes: u32,
    /// Model replicas.
    pub replicas: u32,
    /// Time of a steady step.
    pub step_time: RangeNs,
    /// Steps per second times replicas.
    pub replica_steps_per_second: Range,
    /// The same times the batch of one replica, if that was given.
    pub samples_per_second: Option<Range>,
    /// Step time of one replica over this step time; 1 is perfect weak scaling.
    pub scaling_factor: Range,
    /// Predicted step time at the recorded size over this step time.
    pub efficiency: f64,
    /// Time in which communication runs and nothing computes.
    pub exposed_communication_ns: i64,
    /// Who owns the step; the times add up to it.
    pub breakdown: Vec<OwnerReport>,
    /// What the straggler wait waited for, the longest first. Empty where ranks were not simulated
    /// together.
    pub held_up: Vec<HeldUpReport>,
    /// Communication of one step, by time.
    pub collectives: Vec<CollectiveReport>,
    /// The chain of nodes that decides the step time, merged by name, by time.
    pub critical_path: Vec<CriticalPartReport>,
    /// Whether simulated step times had settled.
    pub converged: bool,
}

/// An owner of step time.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct OwnerReport {
    /// `compute`, `exposed-communication`, `straggler-wait`, `copy`, `input`, `launch-bound` or
    /// `host`.
    pub owner: String,
    /// Group of exposed communication.
    pub group: Option<String>,
    /// Operation of exposed communication.
    pub collective: Option<String>,
    /// For people.
    pub label: String,
    /// Its time.
    pub time_ns: i64,
    /// Its share of the step (0 to 1).
    pub share: f64,
}

/// Straggler wait, by what it waited for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HeldUpReport {
    /// Recorded rank that came last.
    pub rank: u32,
    /// What that rank was doing meanwhile; words as in the breakdown.
    pub owner: String,
    /// How long.
    pub time_ns: i64,
}

/// Collectives of one kind, group and size.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CollectiveReport {
    /// Operation.
    pub collective: String,
    /// Group name; empty if unknown.
    pub group: String,
    /// `data-parallel`, `tensor-parallel`, `pipeline-parallel`, `expert-parallel` or `unknown`.
    pub role: String,
    /// Members at this size.
    pub ranks: u32,
    /// Payload in bytes, if known.
    pub bytes: Option<u64>,
    /// How many per step.
    pub count: usize,
    /// Time of each, without waiting for the last rank.
    pub each: RangeNs,
}

/// Time on the critical path under one name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CriticalPartReport {
    /// Name of the nodes.
    pub name: String,
    /// Kind of the nodes.
    pub kind: String,
    /// Time in one step.
    pub time_ns: i64,
    /// How many nodes.
    pub count: usize,
}

impl PredictReport {
    /// The report of a prediction and of what reading its traces met.
    pub fn new(prediction: &Prediction, ledger: &Ledger) -> Self {
        Self {
            schema: "foretrain/predict/1".into(),
            cluster: prediction.cluster.clone(),
            recorded: (&prediction.recorded).into(),
            sizes: prediction.sizes.iter().map(Into::into).collect(),
            evidence: prediction.evidence.iter().map(Into::into).collect(),
            warnings: prediction.warnings.clone(),
            ledger: ledger.into(),
        }
    }
}

impl From<&Recorded> for RecordedReport {
    fn from(recorded: &Recorded) -> Self {
        Self {
            sources: recorded.sources.clone(),
            rank: recorded.rank,
            simulated_ranks: recorded.simulated_ranks.clone(),
            world_size: recorded.world_size,
            replica_size: recorded.replica_size,
            device: recorded.device.clone(),
            step_source: recorded.step_source.clone(),
            steps: recorded.steps,
            step_time_ns: recorded.step_time.nanos(),
            replayed_ns: recorded.replayed.nanos(),
        }
    }
}

impl From<&SizePrediction> for SizeReport {
    fn from(size: &SizePrediction) -> Self {
        let total = size.breakdown.total();
        let owner = |(owner, time): &(Owner, Nanos)| OwnerReport::new(owner, *time, total);
        Self {
            gpus: size.gpus,
            nodes: size.nodes,
            replicas: size.replicas,
            step_time: size.step_time.into(),
            replica_steps_per_second: size.throughput.into(),
            samples_per_second: size.samples_per_second.map(Into::into),
            scaling_factor: size.scaling_factor.into(),
            efficiency: finite(size.efficiency),
            exposed_communication_ns: size.breakdown.exposed_communication().nanos(),
            breakdown: size.breakdown.parts.iter().map(owner).collect(),
            held_up: size.held_up.iter().map(Into::into).collect(),
            collectives: size.collectives.iter().map(Into::into).collect(),
            critical_path: size.critical_path.iter().map(Into::into).collect(),
            converged: size.converged,
        }
    }
}

impl OwnerReport {
    /// An owner's time, and its share of `total`.
    pub(super) fn new(owner: &Owner, time: Nanos, total: Nanos) -> Self {
        let (group, collective) = match owner {
            Owner::ExposedCommunication { group, kind } => {
                (Some(group.clone()), Some(kind.to_string()))
            }
            _ => (None, None),
        };
        Self {
            owner: owner.code().into(),
            group,
            collective,
            label: owner.describe(),
            time_ns: time.nanos(),
            share: finite(time.nanos() as f64 / total.nanos().max(1) as f64),
        }
    }
}

impl From<&HeldUp> for HeldUpReport {
    fn from(held_up: &HeldUp) -> Self {
        Self {
            rank: held_up.rank,
            owner: held_up.owner.code().into(),
            time_ns: held_up.time.nanos(),
        }
    }
}

impl From<&ScaledCollective> for CollectiveReport {
    fn from(collective: &ScaledCollective) -> Self {
        Self {
            collective: collective.kind.to_string(),
            group: collective.group.clone(),
            role: collective.role.into(),
            ranks: collective.ranks,
            bytes: collective.bytes.map(Bytes::get),
            count: collective.count,
            each: collective.each.into(),
        }
    }
}

impl From<&CriticalPart> for CriticalPartReport {
    fn from(part: &CriticalPart) -> Self {
        Self {
            name: part.name.clone(),
            kind: part.kind.clone(),
            time_ns: part.time.nanos(),
            count: part.count,
        }
    }
}
