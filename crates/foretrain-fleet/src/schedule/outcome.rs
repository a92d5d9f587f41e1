//! What came of a run.

use foretrain_core::{Bytes, Nanos};

use super::Setup;
use super::gauge::{Gauge, Sample, Totals};
use super::job::Job;
use super::state::{Phase, Progress};

/// What became of one job.
#[derive(Clone, Debug)]
pub struct JobOutcome {
    /// Where it is in its life at the end of the run.
    pub phase: Phase,
    /// When it first got GPUs.
    pub first_start: Option<Nanos>,
    /// When it finished.
    pub finish: Option<Nanos>,
    /// From its submission until it finished.
    pub completion: Option<Nanos>,
    /// From its submission until it first got GPUs.
    pub wait: Option<Nanos>,
    /// Time without GPUs between submission and finish, or the end of the run.
    pub waited: Nanos,
    /// Time on GPUs.
    pub on_gpus: Nanos,
    /// GPU-seconds on its GPUs, shared or not; of a part of a GPU, that part.
    pub service: f64,
    /// GPU-seconds that it held: time on shared GPUs is divided among the jobs there, and parts and
    /// slices count as what they are of a GPU.
    pub held: f64,
    /// How often it lost GPUs to others, was moved or resized, and met a failure.
    pub disturbed: [u32; 3],
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// All jobs are done that could ever be.
    Done,
    /// It was to end then.
    Cut,
    /// Machines failed and came back so often without a job getting done that none would have been.
    Failures,
    /// The policy left all jobs waiting that were left, and nothing could have changed its mind.
    Stuck,
}

/// Times of many jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Times {
    /// Jobs that count.
    pub count: usize,
    /// Mean.
    pub mean: Nanos,
    /// The middle one.
    pub median: Nanos,
    /// 99 of 100 are not longer.
    pub p99: Nanos,
}

/// One run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The policy's name.
    pub policy: String,
    /// In the order of the jobs.
    pub jobs: Vec<JobOutcome>,
    /// From the first submission until the last job finished (or the run was cut).
    pub makespan: Nanos,
    /// When the first job was submitted.
    pub begin: Nanos,
    /// From submission to finish.
    pub completion: Times,
    /// From submission to the first GPUs.
    pub wait: Times,
    /// Time without GPUs from submission to finish.
    pub waited: Times,
    /// Jobs that finished.
    pub finished: usize,
    /// Jobs that no GPUs of the cluster would ever do for.
    pub impossible: usize,
    /// Jobs that had not finished when the run ended.
    pub unfinished: usize,
    /// Why it ended.
    pub ending: Ending,
    /// GPUs of the cluster.
    pub gpus: u32,
    /// Memory of all GPUs, bytes; `None` where that or what jobs take is not known.
    pub memory: Option<f64>,
    /// Integrals over the run.
    pub totals: Totals,
    /// The cluster over time.
    pub samples: Vec<Sample>,
    /// How often jobs lost GPUs to others, were moved or resized, and met failures.
    pub disturbed: [u64; 3],
}

impl Outcome {
    pub(super) fn new(
        policy: String,
        setup: &Setup<'_>,
        progress: &[Progress],
        (now, ending): (Nanos, Ending),
        gauge: Gauge,
    ) -> Self {
        let jobs: Vec<JobOutcome> =
            setup.jobs.iter().zip(progress).map(|(job, state)| outcome(job, state, now)).collect();
        let begin = setup.jobs.iter().map(|job| job.submit).min().unwrap_or(Nanos::ZERO);
        let last = jobs.iter().filter_map(|job| job.finish).max();
        let count = |phase: Phase| jobs.iter().filter(|job| job.phase == phase).count();
        let (finished, impossible) = (count(Phase::Done), count(Phase::Impossible));
        let unfinished = jobs.len() - finished - impossible;
        let end = if unfinished > 0 { Some(now) } else { last };
        let (totals, samples) = gauge.finish();
        let done = || jobs.iter().filter(|job| job.phase == Phase::Done);
        let sum = |which: usize| jobs.iter().map(|job| u64::from(job.disturbed[which])).sum();
        let memory = setup.cluster.nodes().iter().map(|node| {
            let kind = &setup.cluster.kinds()[node.kind as usize];
            kind.memory.map(|memory| memory.as_f64() * f64::from(node.gpus))
        });
        Self {
            policy,
            makespan: end.map_or(Nanos::ZERO, |end| end - begin),
            begin,
            completion: Times::of(done().filter_map(|job| job.completion)),
            wait: Times::of(done().filter_map(|job| job.wait)),
            waited: Times::of(done().map(|job| job.waited)),
            finished,
            impossible,
            unfinished,
            ending,
            gpus: setup.cluster.gpus(),
            memory: if setup.jobs.iter().any(|job| job.memory > Bytes::ZERO) {
                memory.sum()
            } else {
                None
            },
            totals,
            samples,
            disturbed: [sum(0), sum(1), sum(2)],
            jobs,
        }
    }

    /// Share of the cluster's GPU-time with a job, 0 to 1.
    pub fn allocated(&self) -> f64 {
        self.share(self.totals.busy)
    }

    /// Share of the cluster's GPU-time that jobs computed, 0 to 1 ([`Totals::utilised`]).
    pub fn utilisation(&self) -> f64 {
        self.share(self.totals.utilised)
    }

    /// Of the idle GPU-time, the share that no usual job could use, 0 to 1.
    pub fn fragmentation(&self) -> f64 {
        if self.totals.idle > 0.0 { self.totals.useless / self.totals.idle } else { 0.0 }
    }

    /// Share of the cluster's memory that jobs held, 0 to 1; `None` where memory is not known.
    pub fn memory_share(&self) -> Option<f64> {
        let whole = self.memory.filter(|memory| *memory > 0.0)? * self.makespan.secs_f64();
        (whole > 0.0).then(|| self.totals.memory / whole)
    }

    /// Energy that the GPUs drew, kWh.
    pub fn kilowatt_hours(&self) -> f64 {
        self.totals.energy / 3.6e6
    }

    fn share(&self, gpu_seconds: f64) -> f64 {
        let whole = f64::from(self.gpus) * self.makespan.secs_f64();
        if whole > 0.0 { (gpu_seconds / whole).clamp(0.0, 1.0) } else { 0.0 }
    }
}

impl Times {
    /// Of any times.
    pub fn of(times: impl IntoIterator<Item = Nanos>) -> Self {
        let mut sorted: Vec<Nanos> = times.into_iter().collect();
        sorted.sort_unstable();
        let count = sorted.len();
        if count == 0 {
            return Self::default();
        }
        let sum: i128 = sorted.iter().map(|time| i128::from(time.nanos())).sum();
        let p99 = sorted[((count as f64 * 0.99) as usize).min(count - 1)];
        let (low, high) = (sorted[(count - 1) / 2], sorted[count / 2]);
        let median = low + (high - low).scale(0.5);
        let mean = Nanos::from_nanos((sum / count as i128) as i64);
        Self { count, mean, median, p99 }
    }
}

fn outcome(job: &Job, state: &Progress, now: Nanos) -> JobOutcome {
    let (submit, part) = (job.submit, job.part());
    // From its submission on a job waits where it has no GPUs.
    let waited = match state.phase {
        Phase::Future | Phase::Impossible => Nanos::ZERO,
        Phase::Waiting | Phase::Running | Phase::Done => {
            (state.finish.unwrap_or(now) - submit - state.on_gpus).clamp_positive()
        }
    };
    JobOutcome {
        phase: state.phase,
        first_start: state.first_start,
        finish: state.finish,
        completion: state.finish.map(|finish| finish - submit),
        wait: state.first_start.map(|start| start - submit),
        waited,
        on_gpus: state.on_gpus,
        service: state.service * part,
        held: state.held,
        disturbed: [state.preemptions, state.moves, state.failures],
    }
}
