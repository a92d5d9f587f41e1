//! Trying one way to cut a model, with one schedule.

use std::ops::Range;

use foretrain_core::{Bytes, Result};

use super::candidate::{Candidate, Reason, Refused};
use super::share::Shares;
use super::{MicroBatches, PlanOptions};
use crate::varuna::layout;
use crate::varuna::partition::Balance;
use crate::varuna::profile::{Filled, Profile};
use crate::varuna::schedule::Schedule;
use crate::varuna::simulate::{Step, draws, simulate};

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
