//! Several policies on the same jobs, several times.

use std::borrow::Cow;
use std::sync::atomic::{AtomicUsize, Ordering};

use foretrain_core::stats::normal_from_uniform;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use rayon::prelude::*;

use super::job::Job;
use super::outcome::Outcome;
use super::policy::{Named, Rules};
use super::speed::{Interference, Interleaved};
use super::{Setup, simulate};

/// What to compare.
#[derive(Clone, Debug)]
pub struct Study<'a> {
    /// The policies; gains are over the first.
    pub policies: &'a [&'static Named],
    /// What they have in common.
    pub rules: Rules,
    /// Runs per policy. The first plays the table as it is; the others play jobs drawn from it with
    /// replacement, at the table's times of submission, so that differences between policies that hang
    /// on a few jobs show as wide intervals.
    pub runs: u32,
    /// How far off expected durations are: the standard deviation of their logarithm.
    pub duration_error: f64,
}

/// A mean and how far it may be off.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Mean {
    /// Over all runs.
    pub mean: f64,
    /// Half-width of the interval that covers the mean with 90 %; `None` for a single run.
    pub half_width: Option<f64>,
}

/// What is compared, for the columns of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// From the first submission to the last end, seconds.
    Makespan,
    /// Mean time from submission to end, seconds.
    MeanCompletion,
    /// Its median, seconds.
    MedianCompletion,
    /// Its 99th percentile, seconds.
    P99Completion,
    /// Mean time from submission to the first GPUs, seconds.
    MeanWait,
    /// Its median, seconds.
    MedianWait,
    /// Its 99th percentile, seconds.
    P99Wait,
    /// Mean of all time without GPUs from submission to end, seconds.
    MeanWaited,
    /// Share of GPU-time with a job.
    Allocated,
    /// Share of GPU-time that jobs computed.
    Utilisation,
    /// Of the idle GPU-time, the share that no usual job could use.
    Fragmentation,
    /// Share of GPU memory that jobs held.
    Memory,
    /// Energy of the GPUs, kWh.
    Energy,
}

impl Metric {
    /// All of them, in the order of tables.
    pub const ALL: [Self; 13] = [
        Self::Makespan,
        Self::MeanCompletion,
        Self::MedianCompletion,
        Self::P99Completion,
        Self::MeanWait,
        Self::MedianWait,
        Self::P99Wait,
        Self::MeanWaited,
        Self::Allocated,
        Self::Utilisation,
        Self::Fragmentation,
        Self::Memory,
        Self::Energy,
    ];

    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Makespan => "makespan",
            Self::MeanCompletion => "completion_mean",
            Self::MedianCompletion => "completion_median",
            Self::P99Completion => "completion_p99",
            Self::MeanWait => "wait_mean",
            Self::MedianWait => "wait_median",
            Self::P99Wait => "wait_p99",
            Self::MeanWaited => "waited_mean",
            Self::Allocated => "allocated",
            Self::Utilisation => "utilisation",
            Self::Fragmentation => "fragmentation",
            Self::Memory => "memory",
            Self::Energy => "energy_kwh",
        }
    }

    /// Of one run; `None` where it is not known, as times are not where jobs had not finished: those
    /// that had would be compared with other ones.
    pub fn of(self, run: &Outcome) -> Option<f64> {
        use Metric::{Allocated, Energy, Fragmentation, Memory, Utilisation};
        let is_time = !matches!(self, Allocated | Utilisation | Fragmentation | Memory | Energy);
        if is_time && (run.unfinished > 0 || run.finished == 0) {
            return None;
        }
        Some(match self {
            Self::Makespan => run.makespan.secs_f64(),
            Self::MeanCompletion => run.completion.mean.secs_f64(),
            Self::MedianCompletion => run.completion.median.secs_f64(),
            Self::P99Completion => run.completion.p99.secs_f64(),
            Self::MeanWait => run.wait.mean.secs_f64(),
            Self::MedianWait => run.wait.median.secs_f64(),
            Self::P99Wait => run.wait.p99.secs_f64(),
            Self::MeanWaited => run.waited.mean.secs_f64(),
            Self::Allocated => run.allocated(),
            Self::Utilisation => run.utilisation(),
            Self::Fragmentation => run.fragmentation(),
            Self::Memory => run.memory_share()?,
            Self::Energy => run.kilowatt_hours(),
        })
    }
}

/// One policy.
#[derive(Clone, Debug)]
pub struct PolicyResult {
    /// Which.
    pub policy: &'static Named,
    /// The run of the table as it is.
    pub table: Outcome,
    /// Metrics over all runs, in the order of [`Metric::ALL`]; `None` where they are not known.
    pub means: Vec<Option<Mean>>,
    /// Saving of [`SAVED`] over the first policy, as shares: run by run, so that luck with the jobs that
    /// were drawn cancels. Nothing for the first, nor where some jobs had not finished.
    pub savings: Option<[Mean; 4]>,
}

/// What [`PolicyResult::savings`] are of.
pub const SAVED: [Metric; 4] =
    [Metric::Makespan, Metric::MeanCompletion, Metric::MeanWait, Metric::MeanWaited];

/// Plays all policies on all draws; `progress` is told how many runs of how many are done.
pub fn compare(
    setup: &Setup<'_>,
    study: &Study<'_>,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Vec<PolicyResult> {
    let runs = study.runs.max(1);
    let wanted: Vec<(&'static Named, u32)> =
        study.policies.iter().flat_map(|policy| (0..runs).map(|run| (*policy, run))).collect();
    let (all, done) = (wanted.len(), AtomicUsize::new(0));
    progress(0, all);
    let mut outcomes: Vec<Outcome> = wanted
        .into_par_iter()
        .map(|(policy, run)| {
            let interference: &dyn Interference =
                if policy.interleaves { &Interleaved } else { setup.interference };
            let seed = setup.seed.wrapping_add(u64::from(run));
            // Drawn anew for each policy: there are never more draws than threads in memory.
            let jobs = draw(setup, study, run);
            let setup = Setup { jobs: &jobs, interference, seed, ..*setup };
            let mut outcome = simulate(&setup, &mut *policy.make(&study.rules));
            if run > 0 {
                // Only sums of them are wanted.
                outcome.jobs = Vec::new();
                outcome.samples = Vec::new();
            }
            progress(done.fetch_add(1, Ordering::Relaxed) + 1, all);
            outcome
        })
        .collect();
    let mut results: Vec<PolicyResult> = Vec::new();
    let runs = runs as usize;
    let saved = |run: &Outcome, which: usize| SAVED[which].of(run);
    let base: Vec<[Option<f64>; 4]> =
        outcomes[..runs].iter().map(|run| [0, 1, 2, 3].map(|which| saved(run, which))).collect();
    for (number, policy) in study.policies.iter().enumerate() {
        let own = &outcomes[..runs];
        let over = |metric: Metric| {
            let each: Option<Vec<f64>> = own.iter().map(|run| metric.of(run)).collect();
            each.map(mean)
        };
        let saving = |which: usize| {
            let each = own.iter().zip(&base).map(|(run, base)| {
                let (new, old) = (saved(run, which)?, base[which]?);
                Some(if old > 0.0 { 1.0 - new / old } else { 0.0 })
            });
            each.collect::<Option<Vec<f64>>>().map(mean)
        };
        let means = Metric::ALL.map(over).to_vec();
        let all = || Some([saving(0)?, saving(1)?, saving(2)?, saving(3)?]);
        let savings = if number > 0 { all() } else { None };
        let table = outcomes.drain(..runs).next();
        if let Some(table) = table {
            results.push(PolicyResult { policy, table, means, savings });
        }
    }
    results
}

/// The jobs of one run.
fn draw<'a>(setup: &Setup<'a>, study: &Study<'_>, run: u32) -> Cow<'a, [Job]> {
    let mut random = Pcg64::seed_from_u64(setup.seed ^ (u64::from(run) << 32));
    let mut jobs = Cow::Borrowed(setup.jobs);
    if run > 0 {
        for job in jobs.to_mut() {
            let other = &setup.jobs[random.random_range(0..setup.jobs.len())];
            *job = Job { submit: job.submit, ..other.clone() };
        }
    }
    if study.duration_error > 0.0 {
        for job in jobs.to_mut() {
            let chance: f64 = random.random();
            let normal = normal_from_uniform(1.0 - chance, random.random());
            job.expected *= (normal * study.duration_error).exp();
        }
    }
    jobs
}

/// The mean of some runs and half of Student's 90 % interval around it.
fn mean(values: Vec<f64>) -> Mean {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    if values.len() < 2 {
        return Mean { mean, half_width: None };
    }
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    Mean { mean, half_width: Some(student(values.len() - 1) * (variance / count).sqrt()) }
}

/// The 95 % quantile of Student's distribution.
fn student(freedom: usize) -> f64 {
    const QUANTILES: [f64; 30] = [
        6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812, 1.796, 1.782, 1.771,
        1.761, 1.753, 1.746, 1.740, 1.734, 1.729, 1.725, 1.721, 1.717, 1.714, 1.711, 1.708, 1.706,
        1.703, 1.701, 1.699, 1.697,
    ];
    QUANTILES.get(freedom.saturating_sub(1)).copied().unwrap_or(1.645)
}

#[cfg(test)]
mod tests {
    use foretrain_core::Nanos;

    use super::super::{Cluster, ConstantSlowdown, GpuKind};
    use super::*;

    #[test]
    fn gains_are_over_the_first_policy() {
        let cluster = Cluster::uniform(1, 4, 1, GpuKind::named("v100")).expect("valid");
        let seconds = |value: i64| Nanos::from_millis(value * 1_000);
        let jobs: Vec<Job> = (0..40)
            .map(|number: i64| {
                let gpus = if number % 3 == 0 { 4 } else { 1 };
                Job::new("job", seconds(number * 10), gpus, seconds(20 + number % 7 * 30))
            })
            .collect();
        let alone = ConstantSlowdown(1.0);
        let setup = Setup::new(&cluster, &jobs, &alone);
        let policies = ["fifo", "srtf"].map(|name| Named::find(name).expect("known"));
        let study =
            Study { policies: &policies, rules: Rules::default(), runs: 5, duration_error: 0.0 };
        let results = compare(&setup, &study, &|_, _| {});
        assert_eq!(results.len(), 2);
        assert!(results[0].savings.is_none());
        let [_, completion, wait, _] = results[1].savings.expect("not the first");
        assert!(completion.mean > 0.2 && wait.mean > 0.2, "{completion:?} {wait:?}");
        assert!(completion.half_width.expect("five runs") > 0.0);
        // The first run is the table as it is.
        assert_eq!(results[0].table.jobs.len(), 40);
        let again = compare(&setup, &study, &|_, _| {});
        assert_eq!(again[1].means, results[1].means);
    }

    #[test]
    fn intervals_are_student_s() {
        let Mean { mean, half_width } = mean(vec![1.0, 2.0, 3.0]);
        assert_eq!(mean, 2.0);
        assert!((half_width.expect("three") - 2.920 * (1.0f64 / 3.0).sqrt()).abs() < 1e-12);
    }
}
