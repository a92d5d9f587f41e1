//! What came of a job on preemptible machines.

use std::collections::BTreeMap;

use foretrain_core::Nanos;

use super::machines::Slow;
use crate::varuna::profile::Filled;

/// Why a job was planned anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// It began, or there were too few GPUs before.
    Start,
    /// GPUs were lost.
    Loss,
    /// GPUs were lost, and as many there again before the wait ended.
    Transient,
    /// GPUs were added that make it faster.
    Growth,
}

impl Cause {
    /// The word for tables.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Loss => "loss",
            Self::Transient => "transient loss",
            Self::Growth => "growth",
        }
    }
}

/// One time that the job was planned anew.
#[derive(Clone, Debug, PartialEq)]
pub struct Morphing {
    /// When the cause came.
    pub at: Nanos,
    /// Why.
    pub cause: Cause,
    /// From when on it trained again.
    pub resumed: Nanos,
    /// GPUs there were when it was planned.
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

/// Where the time went; the parts add up to the trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Steps that count.
    pub training: Nanos,
    /// Steps that were lost, and pieces of steps.
    pub lost: Nanos,
    /// Standing still for checkpoints.
    pub checkpoints: Nanos,
    /// Waiting and restarting.
    pub restarting: Nanos,
    /// Too few GPUs for any plan.
    pub starved: Nanos,
}

impl Account {
    /// All of it.
    pub fn total(&self) -> Nanos {
        self.training + self.lost + self.checkpoints + self.restarting + self.starved
    }
}

/// GPUs and what they cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// GPUs, on average.
    pub gpus: f64,
    /// Samples per second, all waits included.
    pub goodput: f64,
    /// Price of a GPU for an hour, if it is known.
    pub gpu_hour: Option<f64>,
    /// Price of a million samples, if it is known and there are any.
    pub per_million: Option<f64>,
}

impl Cost {
    pub(super) fn new(gpus: f64, goodput: f64, gpu_hour: Option<f64>) -> Self {
        let per_sample = |price: f64| gpus * price / 3600.0 / goodput;
        let per_million = gpu_hour.filter(|_| goodput > 0.0).map(|price| 1e6 * per_sample(price));
        Self { gpus, goodput, gpu_hour, per_million }
    }
}

/// A job on preemptible machines.
#[derive(Clone, Debug, PartialEq)]
pub struct Morph {
    /// Length of the trace.
    pub length: Nanos,
    /// Samples trained that count.
    pub samples: u64,
    /// Where the time went.
    pub account: Account,
    /// Each plan in turn.
    pub morphings: Vec<Morphing>,
    /// As the trace has it.
    pub preemptible: Cost,
    /// With GPUs that are always there, and their number.
    pub dedicated: Option<Cost>,
    /// Machines that were left out.
    pub excluded: Vec<Slow>,
    /// Numbers of GPUs that no plan could use, and why.
    pub unusable: BTreeMap<u32, String>,
    /// What the profile did not hold and was filled in.
    pub filled: Filled,
}
