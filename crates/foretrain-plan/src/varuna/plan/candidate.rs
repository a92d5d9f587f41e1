//! One configuration: whether it can run, and how long its step takes.

use std::fmt;
use std::ops::Range;

use foretrain_core::{Bytes, InputError, Nanos, Result};

use super::share::Shares;
use super::{MicroBatches, PlanOptions};
use crate::varuna::layout::{self, Stage};
use crate::varuna::partition::Balance;
use crate::varuna::profile::{Filled, Profile};
use crate::varuna::schedule::Schedule;
use crate::varuna::simulate::{Distribution, Pipeline, Step, draws, simulate};

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
    pub lost_to: Option<(super::Owner, Nanos)>,
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

pub(super) enum Outcome {
    Runs(Box<Candidate>, Filled),
    Refused(Refused),
}

/// A configuration to try, with the micro-batch sizes to try it with, largest first.
pub(super) struct Attempt {
    schedule: Schedule,
    balance: Balance,
    partition: Vec<Range<usize>>,
    replicas: u32,
    /// Samples of the replica that has the most.
    share: u64,
    sizes: Vec<u32>,
    stop_at_first: bool,
}

impl Attempt {
    pub(super) fn new(
        profile: &Profile,
        options: &PlanOptions,
        schedule: Schedule,
        balance: Balance,
        partition: Vec<Range<usize>>,
    ) -> Self {
        let needed = partition.len() as u64 * u64::from(profile.tensor_parallel);
        let replicas = u32::try_from(u64::from(options.gpus) / needed).unwrap_or(0);
        let batch = options.batch;
        let share = match u64::from(replicas) {
            0 => 0,
            many if options.drop_remainder || batch < many => batch / many,
            many => batch.div_ceil(many),
        };
        let mut sizes = match &options.micro_batches {
            MicroBatches::Only(sizes) => sizes.clone(),
            MicroBatches::All | MicroBatches::Largest => profile.micro_batches(),
        };
        sizes.sort_unstable();
        sizes.dedup();
        if !matches!(options.micro_batches, MicroBatches::Only(_)) {
            // One that a replica cannot fill pays for samples that are not there.
            let least = sizes.first().copied();
            sizes.retain(|size| u64::from(*size) <= share || Some(*size) == least);
        }
        sizes.reverse();
        let stop_at_first = options.micro_batches == MicroBatches::Largest;
        Self { schedule, balance, partition, replicas, share, sizes, stop_at_first }
    }

    fn stages(&self) -> u32 {
        u32::try_from(self.partition.len()).unwrap_or(u32::MAX)
    }

    fn micro_batches(&self, size: u32) -> u64 {
        self.share.div_ceil(size.into())
    }

    /// Stages times micro-batches to simulate, at the least.
    pub(super) fn work(&self) -> u64 {
        let sizes = if self.stop_at_first { 1 } else { self.sizes.len() };
        let works = self.sizes.iter().take(sizes).map(|size| self.micro_batches(*size));
        works.fold(0, u64::saturating_add).saturating_mul(self.stages().into())
    }

    pub(super) fn run(&self, profile: &Profile, options: &PlanOptions) -> Vec<Outcome> {
        let refuse = |micro_batch, reason| {
            let Self { schedule, balance, .. } = *self;
            let stages = self.stages();
            Outcome::Refused(Refused { schedule, stages, balance, micro_batch, reason })
        };
        if self.replicas == 0 {
            let needed = u64::from(self.stages()) * u64::from(profile.tensor_parallel);
            return vec![refuse(None, Reason::Gpus { needed, there: options.gpus })];
        }
        if self.share == 0 {
            let (batch, replicas) = (options.batch, self.replicas);
            return vec![refuse(None, Reason::Batch { batch, replicas })];
        }
        let mut outcomes = Vec::new();
        for &size in &self.sizes {
            match self.candidate(profile, options, size) {
                Ok((candidate, filled)) => {
                    let runs = Outcome::Runs(Box::new(candidate), filled);
                    if self.stop_at_first {
                        return vec![runs];
                    }
                    outcomes.push(runs);
                }
                Err(reason) => {
                    let is_known = matches!(reason, Reason::Memory { .. });
                    outcomes.push(refuse(Some(size), reason));
                    // A smaller one may fit, but what is missing now may not be missing there.
                    if self.stop_at_first && !is_known {
                        break;
                    }
                }
            }
        }
        // Of sizes that do not fit the smallest tells how far off it is.
        if self.stop_at_first && outcomes.len() > 1 {
            outcomes.drain(..outcomes.len() - 1);
        }
        outcomes
    }

    fn candidate(
        &self,
        profile: &Profile,
        options: &PlanOptions,
        size: u32,
    ) -> Result<(Candidate, Filled), Reason> {
        let mut filled = Filled::default();
        let memory = self.memory(profile, options, size, &mut filled)?;
        self.simulated(profile, options, size, memory, &mut filled)
            .map(|candidate| (candidate, filled))
            .map_err(Reason::Unknown)
    }

    /// Memory of the fullest stage, unless it does not fit.
    fn memory(
        &self,
        profile: &Profile,
        options: &PlanOptions,
        size: u32,
        filled: &mut Filled,
    ) -> Result<Option<Bytes>, Reason> {
        let Some(there) = options.gpu_memory else { return Ok(None) };
        let micro_batches = self.micro_batches(size);
        let mut most = (0, Bytes::ZERO);
        for (index, part) in self.partition.iter().enumerate() {
            let in_flight = micro_batches.min((self.partition.len() - index) as u64);
            let in_flight = u32::try_from(in_flight).unwrap_or(u32::MAX);
            let (schedule, gaps) = (self.schedule, options.gaps);
            let needed = layout::memory(profile, part, size, schedule, in_flight, gaps, filled)
                .map_err(Reason::Unknown)?;
            if needed > most.1 {
                most = (index, needed);
            }
        }
        if most.1 > there {
            return Err(Reason::Memory { stage: most.0, needed: most.1, there });
        }
        Ok(Some(most.1))
    }

    fn simulated(
        &self,
        profile: &Profile,
        options: &PlanOptions,
        size: u32,
        memory: Option<Bytes>,
        filled: &mut Filled,
    ) -> Result<Candidate> {
        let PlanOptions { machines, gaps, .. } = options;
        let (replicas, gaps) = (self.replicas, *gaps);
        let stages = layout::stages(profile, &self.partition, size, gaps, filled)?;
        let pipeline = layout::pipeline(profile, &stages, machines, replicas, gaps, filled)?;
        let all_reduce = profile.all_reduce(self.stages(), replicas, gaps, filled)?;
        let update = stages.iter().filter_map(|stage| stage.update).max().unwrap_or_default();
        let micro_batches = u32::try_from(self.micro_batches(size)).unwrap_or(u32::MAX);
        let step = Step::new(pipeline.clone(), self.schedule, micro_batches)?;
        let run = simulate(&step);
        let silent = Step::new(pipeline.without_messages(), self.schedule, micro_batches)?;
        let distribution = match options.jitter {
            Some((jitter, count)) => Some(draws(&step, jitter, count)?),
            None => None,
        };
        let makespan = distribution.as_ref().map_or(run.makespan, |found| found.p50);
        let shares = Shares::new(&run, makespan, simulate(&silent).makespan, all_reduce, update);
        let samples = options.batch.min(self.share.saturating_mul(replicas.into()));
        let used = u64::from(self.stages()) * u64::from(replicas);
        let used = used * u64::from(profile.tensor_parallel);
        Ok(Candidate {
            schedule: self.schedule,
            balance: self.balance,
            replicas,
            idle_gpus: options.gpus - u32::try_from(used).unwrap_or(options.gpus),
            micro_batch: size,
            micro_batches,
            samples,
            dropped: options.batch - samples,
            step: makespan + all_reduce + update,
            makespan,
            all_reduce,
            update,
            bubble: run.bubble(),
            distribution,
            memory,
            shares,
            lost_to: None,
            slower: 1.0,
            stages,
            pipeline,
        })
    }
}
