//! What really happened in a simulated job.

use serde::{Deserialize, Serialize};

use crate::buckets::Bucket;
use crate::schedule::StepLog;
use crate::spec::JobSpec;

/// The truth about a job. All times are on the true clock, in ns since the job started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Truth {
    /// Says that this is made up, and by what.
    pub generator: String,
    /// Seed of the noise.
    pub seed: u64,
    /// Name of the dialect of the traces.
    pub dialect: String,
    /// True start of the job, in ns since the Unix epoch.
    pub epoch_ns: i64,
    /// Parameters of the model.
    pub parameters: u64,
    /// Gradient buckets, in the order of their all-reduces.
    pub buckets: Vec<Bucket>,
    /// Time of each bucket's all-reduce without noise and waiting, in ns.
    pub bucket_transfers_ns: Vec<i64>,
    /// Mean time between the completions of successive steps, the first left out (with one step:
    /// that step).
    pub steady_step_ns: i64,
    /// Every rank.
    pub ranks: Vec<RankTruth>,
    /// Every all-reduce of the traced steps, in order of issue.
    pub collectives: Vec<CollectiveTruth>,
}

/// A rank's truth.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RankTruth {
    /// Rank.
    pub rank: u32,
    /// Its clock's offset, in ns.
    pub clock_offset_ns: i64,
    /// Its clock's drift, in parts per million of the time since the job started.
    pub clock_drift_ppm: f64,
    /// Factor on its kernel times.
    pub slow_factor: f64,
    /// Its traced steps.
    pub steps: Vec<StepTruth>,
}

/// A step of a rank. Its period runs from the completion of the step before (or from its own host
/// start, for the first) to its own completion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepTruth {
    /// Number in its mark.
    pub number: u32,
    /// When the host began it.
    pub host_start_ns: i64,
    /// When the host ended it.
    pub host_end_ns: i64,
    /// When its last device work ended (on a CPU job: the host's end).
    pub completion_ns: i64,
    /// Length of its period.
    pub period_ns: i64,
    /// The period, shared out.
    pub owners: Owners,
    /// Time the compute stream ran kernels (on a CPU job: the host computed).
    pub compute_busy_ns: i64,
    /// Time a collective was in progress on this rank, waiting included.
    pub comm_busy_ns: i64,
    /// Time in copies between host and device.
    pub copy_busy_ns: i64,
    /// Compute kernels.
    pub kernels: u32,
}

/// Who holds each nanosecond of a period: the first in this order that is active.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owners {
    /// Compute kernels.
    pub compute_ns: i64,
    /// Copies between host and device.
    pub copy_ns: i64,
    /// Collective transfers with nothing beside them.
    pub exposed_transfer_ns: i64,
    /// Waiting in a collective for other ranks, with nothing beside it.
    pub exposed_wait_ns: i64,
    /// The host waiting for the data loader, the device idle.
    pub loader_ns: i64,
    /// Anything else: the device idle for want of launches.
    pub host_ns: i64,
}

impl Owners {
    /// The sum; equals the period.
    pub const fn total_ns(&self) -> i64 {
        self.compute_ns
            + self.copy_ns
            + self.exposed_transfer_ns
            + self.exposed_wait_ns
            + self.loader_ns
            + self.host_ns
    }
}

/// One all-reduce.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectiveTruth {
    /// Step, counted from the start of the job (warm-up included).
    pub step: u32,
    /// Bucket.
    pub bucket: u32,
    /// Bytes reduced.
    pub bytes: u64,
    /// When each rank's kernel started.
    pub arrivals_ns: Vec<i64>,
    /// Last arrival less first.
    pub skew_ns: i64,
    /// When it ended, on all ranks.
    pub end_ns: i64,
    /// From the last arrival to the end.
    pub transfer_ns: i64,
}

impl StepTruth {
    pub(crate) fn new(number: u32, previous_completion: Option<i64>, log: StepLog) -> Self {
        let from = previous_completion.unwrap_or(log.host_start);
        let to = log.completion;
        let compute = log.compute.union();
        let copies = log.copies.union();
        let transfers = log.comm_transfers.union();
        let waits = log.comm_waits.union();
        let mut free = crate::intervals::Intervals::default();
        free.push(from, to);
        let mut take = |set: &crate::intervals::Intervals| {
            let held = free.total();
            free = free.minus(&set.clip(from, to));
            held - free.total()
        };
        let mut owners = Owners {
            compute_ns: take(&compute),
            copy_ns: take(&copies),
            exposed_transfer_ns: take(&transfers),
            exposed_wait_ns: take(&waits),
            loader_ns: take(&log.loads.union()),
            host_ns: 0,
        };
        owners.host_ns = free.total();
        Self {
            number,
            host_start_ns: log.host_start,
            host_end_ns: log.host_end,
            completion_ns: to,
            period_ns: to - from,
            owners,
            compute_busy_ns: compute.total(),
            comm_busy_ns: waits.total() + transfers.total(),
            copy_busy_ns: copies.total(),
            kernels: log.kernels,
        }
    }
}

/// Collects steps into the truth.
pub(crate) struct TruthBuilder<'a> {
    spec: &'a JobSpec,
    /// When each rank completed the step before the first traced one.
    before: Vec<Option<i64>>,
    ranks: Vec<RankTruth>,
}

impl<'a> TruthBuilder<'a> {
    pub(crate) fn new(spec: &'a JobSpec, before: Vec<Option<i64>>) -> Self {
        let ranks = (0..spec.ranks)
            .map(|rank| {
                let clock = spec.clock(rank);
                let slow = spec.slow_rank.filter(|slow| slow.rank == rank);
                RankTruth {
                    rank,
                    clock_offset_ns: clock.offset_ns,
                    clock_drift_ppm: clock.drift_ppm,
                    slow_factor: slow.map_or(1.0, |slow| slow.factor),
                    steps: Vec::new(),
                }
            })
            .collect();
        Self { spec, before, ranks }
    }

    pub(crate) fn add(&mut self, number: u32, logs: Vec<StepLog>) {
        for ((rank, log), before) in self.ranks.iter_mut().zip(logs).zip(&self.before) {
            let previous = rank.steps.last().map(|step| step.completion_ns).or(*before);
            rank.steps.push(StepTruth::new(number, previous, log));
        }
    }

    pub(crate) fn finish(
        self,
        program: &crate::program::Program,
        collectives: Vec<CollectiveTruth>,
    ) -> Truth {
        Truth {
            generator: "foretrain-testkit: a simulated job, not a measurement".to_owned(),
            seed: self.spec.seed,
            dialect: self.spec.dialect.as_str().to_owned(),
            epoch_ns: self.spec.epoch_ns,
            parameters: program.parameters,
            buckets: program.buckets.clone(),
            bucket_transfers_ns: program.transfers_ns.clone(),
            steady_step_ns: steady(&self.ranks),
            ranks: self.ranks,
            collectives,
        }
    }
}

fn steady(ranks: &[RankTruth]) -> i64 {
    let steps = ranks.first().map_or(0, |rank| rank.steps.len());
    let done =
        |index: usize| ranks.iter().map(|rank| rank.steps[index].completion_ns).max().unwrap_or(0);
    match steps {
        0 => 0,
        1 => ranks.iter().map(|rank| rank.steps[0].period_ns).max().unwrap_or(0),
        _ => (done(steps - 1) - done(0)) / (steps as i64 - 1),
    }
}
