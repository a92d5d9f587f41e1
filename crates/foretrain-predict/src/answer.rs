//! The answers' plain data.

use foretrain_core::{Bytes, Estimate, Evidence, Nanos};
use foretrain_graph::CollectiveKind;

use crate::breakdown::{Breakdown, Owner};

/// What a prediction starts from.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// Files the traces came from.
    pub sources: Vec<String>,
    /// Rank whose steps represent the job.
    pub rank: u32,
    /// Recorded ranks that were simulated, each as itself and the ranks like it.
    pub simulated_ranks: Vec<u32>,
    /// Ranks in the recorded job.
    pub world_size: u32,
    /// Ranks of one model replica (tensor x pipeline parallel).
    pub replica_size: u32,
    /// Device as the recording names it.
    pub device: String,
    /// How steps were found.
    pub step_source: String,
    /// Steps used.
    pub steps: usize,
    /// Median recorded step time.
    pub step_time: Nanos,
    /// Step time of the steady graph replayed unchanged.
    pub replayed: Nanos,
}

/// Straggler wait, by what it waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldUp {
    /// Recorded rank that came last.
    pub rank: u32,
    /// What that rank was doing meanwhile.
    pub owner: Owner,
    /// How long.
    pub time: Nanos,
}

/// One size of job.
#[derive(Clone, Debug, PartialEq)]
pub struct SizePrediction {
    /// Devices.
    pub gpus: u32,
    /// Nodes they fill.
    pub nodes: u32,
    /// Model replicas.
    pub replicas: u32,
    /// Time of a steady step, 80 % interval.
    pub step_time: Estimate<Nanos>,
    /// Steps per second times replicas: what the job gets done, in replica batches per second.
    pub throughput: Estimate<f64>,
    /// The same times the batch of one replica, if that was given.
    pub samples_per_second: Option<Estimate<f64>>,
    /// SF(N) = T(one replica) / T(N); 1 is perfect weak scaling.
    pub scaling_factor: Estimate<f64>,
    /// T(recorded size) / T(N): the same relative to the recording.
    pub efficiency: f64,
    /// Who owns the step.
    pub breakdown: Breakdown,
    /// What the straggler wait waited for, the longest first. Empty where ranks were not simulated
    /// together; less than the straggler wait where part of it is random lateness.
    pub held_up: Vec<HeldUp>,
    /// Communication nodes that were inserted or carried to this size, by time.
    pub collectives: Vec<ScaledCollective>,
    /// The chain of nodes that decides the step time, merged by name.
    pub critical_path: Vec<CriticalPart>,
    /// Whether simulated step times had settled.
    pub converged: bool,
}

/// Time on the critical path under one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CriticalPart {
    /// Node or gap name.
    pub name: String,
    /// Kind of the nodes, or of the gap.
    pub kind: String,
    /// Time in one step.
    pub time: Nanos,
    /// How many nodes.
    pub count: usize,
}

/// Collectives of one kind, group and size, at one job size.
#[derive(Clone, Debug, PartialEq)]
pub struct ScaledCollective {
    /// Operation.
    pub kind: CollectiveKind,
    /// Group name.
    pub group: String,
    /// Role of the group.
    pub role: &'static str,
    /// Members at this size.
    pub ranks: u32,
    /// Payload, if known.
    pub bytes: Option<Bytes>,
    /// How many per step.
    pub count: usize,
    /// Time of each, without waiting.
    pub each: Estimate<Nanos>,
}

/// The answer of `predict`.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// What it starts from.
    pub recorded: Recorded,
    /// Cluster it is for.
    pub cluster: String,
    /// One entry per size asked for.
    pub sizes: Vec<SizePrediction>,
    /// What the numbers rest on, strongest first.
    pub evidence: Vec<Evidence>,
    /// What a reader must know before using them.
    pub warnings: Vec<String>,
}
