//! A configuration that runs, and one that does not.

use std::fmt;

use foretrain_core::{Bytes, InputError, Nanos};

use super::share::{Owner, Shares};
use crate::varuna::layout::Stage;
use crate::varuna::partition::Balance;
use crate::varuna::schedule::Schedule;
use crate::varuna::simulate::{Distribution, Pipeline};

/// A configuration that runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The order of work.
    pub schedule: Schedule,
    /// How cut-points were dealt.
    pub balance: Balance,
    /// The stages, first to last.
    pub stages: Vec<Stage>,
    /// The pipeline that was simulated.
    pub pipeline: Pipeline,
    /// Pipelines side by side.
    pub replicas: u32,
    /// GPUs that have no work.
    pub idle_gpus: u32,
    /// Samples per micro-batch.
    pub micro_batch: u32,
    /// Micro-batches per step and replica.
    pub micro_batches: u32,
    /// Samples per step over all replicas.
    pub samples: u64,
    /// Samples of the batch that are left out.
    pub dropped: u64,
    /// A step: pipeline, all-reduce and update.
    pub step: Nanos,
    /// The pipeline of one replica; under jitter its median.
    pub makespan: Nanos,
    /// The all-reduce, after the pipeline.
    pub all_reduce: Nanos,
    /// The optimizer's update on the slowest stage.
    pub update: Nanos,
    /// Share of the pipeline's time in which stages do not compute, without jitter.
    pub bubble: f64,
    /// The pipeline under jitter.
    pub distribution: Option<Distribution>,
    /// Memory of the fullest stage, if it was checked.
    pub memory: Option<Bytes>,
    /// Whose the step's time is.
    pub shares: Shares,
    /// Why it is not the first: what costs more time than there, and how much of it.
    pub lost_to: Option<(Owner, Nanos)>,
    /// Time per sample over that of the first.
    pub slower: f64,
}

impl Candidate {
    /// Seconds per sample.
    pub fn per_sample(&self) -> f64 {
        self.step.secs_f64() / self.samples as f64
    }

    /// Samples per second.
    pub fn throughput(&self) -> f64 {
        let seconds = self.step.secs_f64();
        if seconds > 0.0 { self.samples as f64 / seconds } else { 0.0 }
    }

    /// Stages, from 0, whose input takes longer to copy to the host than to use.
    pub fn slow_copies(&self) -> impl Iterator<Item = usize> {
        let stages = self.stages.iter().enumerate();
        let slow = stages.filter(|(_, stage)| stage.copy.is_some_and(|t| t > stage.time.forward));
        slow.map(|(index, _)| index)
    }
}

/// A configuration that cannot run, or cannot be known.
#[derive(Clone, Debug, PartialEq)]
pub struct Refused {
    /// The order of work.
    pub schedule: Schedule,
    /// Stages.
    pub stages: u32,
    /// How cut-points were dealt.
    pub balance: Balance,
    /// Samples per micro-batch, where there is one to name.
    pub micro_batch: Option<u32>,
    /// Why.
    pub reason: Reason,
}

/// Why a configuration cannot run.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// Fewer GPUs than stages.
    Gpus {
        /// GPUs that one pipeline takes.
        needed: u64,
        /// GPUs there are.
        there: u32,
    },
    /// Fewer samples than replicas.
    Batch {
        /// Samples.
        batch: u64,
        /// Replicas.
        replicas: u32,
    },
    /// A stage needs more memory than a GPU has.
    Memory {
        /// Which stage, from 0.
        stage: usize,
        /// What it needs.
        needed: Bytes,
        /// What a GPU has.
        there: Bytes,
    },
    /// The profile lacks an entry, or the step is too large to simulate.
    Unknown(InputError),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gpus { needed, there } => {
                write!(f, "takes {needed} GPUs, there are {there}")
            }
            Self::Batch { batch, replicas } => {
                write!(
                    f,
                    "a batch of {batch} is less than one sample for each of {replicas} replicas"
                )
            }
            Self::Memory { stage, needed, there } => write!(
                f,
                "does not fit: stage {stage} needs {needed}, {} more than {there}",
                *needed - *there
            ),
            Self::Unknown(error) => write!(f, "{error}"),
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stages = if self.stages == 1 { "stage" } else { "stages" };
        write!(f, "{} {stages}, {}", self.stages, self.schedule)?;
        if let Some(size) = self.micro_batch {
            write!(f, ", micro-batch {size}")?;
        }
        write!(f, ": {}", self.reason)
    }
}
