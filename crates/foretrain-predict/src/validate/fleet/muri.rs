//! A cluster of 64 V100 under six schedulers (Muri).

use std::collections::BTreeMap;

use foretrain_core::{InputError, Nanos, Result};
use foretrain_fleet::schedule::policy::{Interleave, LeastAttained, Moving, Rank, Ranked};
use foretrain_fleet::schedule::{
    Cluster, ConstantSlowdown, Costs, GpuKind, Interference, Interleaved, Job, Outcome, Placer,
    Policy, Setup, Stages, Times, simulate,
};
use rayon::prelude::*;

use crate::validate::ValidationSet;
use crate::validate::columns::{Line, table};
use crate::validate::corpus::Corpus;
use crate::validate::report::{Row, SetOutcome};
use crate::validate::roots::Root;

/// Completion times of a trace.
pub(super) struct Muri;

const TRACE: &str = "fleet/Rivendile__Muri/cluster_exp/trace-data/cluster_trace.csv";
const RESULTS: &str = "fleet/Rivendile__Muri/cluster_exp/results";
/// The testbed's scheduler looks every six minutes.
const INTERVAL: Nanos = Nanos::from_millis(360_000);
/// Processes start, read their data and make their first steps; in no table, so a usual value.
const RESTART: Nanos = Nanos::from_millis(30_000);
/// GPU-seconds between the queues of the testbed's Tiresias, as its code sets them.
const QUEUES: [f64; 2] = [3_250.0, 7_200.0];

impl ValidationSet for Muri {
    fn name(&self) -> &'static str {
        "scheduler-muri"
    }
    fn about(&self) -> &'static str {
        "Mean and 99th percentile of job completion times and the makespan of 400 jobs on 8 nodes of 8 V100 \
         under six schedulers, against what Muri's authors measured on their testbed (which plays a few steps \
         of each job per interval and skips the rest). Given: submission, GPUs, steps and the profiled step \
         time and stage times of each job; the interval of 6 minutes and the queues' limits of the testbed. \
         Assumed: 30 s to restart a job, at every decision, as the testbed launches all trainers anew. \
         Nothing is fitted to the results."
    }
    fn unit(&self) -> &'static str {
        "s"
    }
    fn score(&self, corpus: &Corpus<'_>) -> SetOutcome {
        SetOutcome::of(TRACE, read(corpus.root()), |(jobs, measured)| score(&jobs, &measured))
    }
}

/// A policy and the name of the directory with its results.
type Case = (&'static str, fn() -> Box<dyn Policy>, &'static (dyn Interference + Sync));

const ALONE: &ConstantSlowdown = &ConstantSlowdown(1.0);

fn cases() -> [Case; 6] {
    [
        ("SRTF", || rank(Rank::ShortestRemaining), ALONE),
        ("SRSF", || rank(Rank::LeastRemainingService), ALONE),
        ("tiresias", tiresias, ALONE),
        ("themis", || rank(Rank::FinishTimeFairness), ALONE),
        ("Muri-S", || interleave(true), &Interleaved),
        ("Muri-L", || interleave(false), &Interleaved),
    ]
}

fn rank(rank: Rank) -> Box<dyn Policy> {
    Box::new(Ranked::new(rank, Placer::FirstFit).every(INTERVAL))
}

/// The testbed groups at most four jobs.
fn interleave(knows_durations: bool) -> Box<dyn Policy> {
    Box::new(Interleave::new(knows_durations, 4, Placer::FirstFit).every(INTERVAL))
}

fn tiresias() -> Box<dyn Policy> {
    let moving = Moving::Replan(Placer::FirstFit);
    Box::new(LeastAttained::new(QUEUES.to_vec(), moving).every(INTERVAL))
}

/// Submission and end of each job under each policy.
type Measured = BTreeMap<&'static str, Vec<(Nanos, Nanos)>>;

fn read(root: &Root) -> Result<Option<(Vec<Job>, Measured)>> {
    let Some(trace) = table(root, TRACE)? else { return Ok(None) };
    let jobs = trace.lines().map(job).collect::<Result<Vec<Job>>>()?;
    let mut measured = Measured::new();
    for (name, ..) in cases() {
        let Some(results) = table(root, &format!("{RESULTS}/{name}/job.csv"))? else { continue };
        let ends = results.lines().map(|line| {
            let submit = seconds(line, "submit_time").unwrap_or(Nanos::ZERO);
            Some((submit, seconds(line, "end_time")?))
        });
        measured.insert(name, ends.collect::<Option<_>>().unwrap_or_default());
    }
    Ok(Some((jobs, measured)))
}

fn seconds(line: Line<'_>, column: &str) -> Option<Nanos> {
    line.number(column).map(Nanos::from_secs_f64)
}

fn job(line: Line<'_>) -> Result<Job> {
    let missing = || InputError::new("a job without its GPUs, steps or step time");
    let gpus = line.degree("num_gpu").ok_or_else(missing)?;
    let steps = line.number("iterations").ok_or_else(missing)?;
    let step = line.number("iteration_time").ok_or_else(missing)?;
    // Zero is no positive number, and the first job is submitted at zero.
    let submit = Nanos::from_secs_f64(line.number("submit_time").unwrap_or(0.0) / 1e3);
    let part = |column: &str| Nanos::from_secs_f64(line.number(column).unwrap_or(0.0) / 1e3);
    let stages = Stages {
        input: part("resource_time_0"),
        compute: part("resource_time_1"),
        network: part("resource_time_2"),
        step: Nanos::from_secs_f64(step / 1e3),
    };
    let duration = Nanos::from_secs_f64(steps * step / 1e3);
    Ok(Job { stages: Some(stages), ..Job::new(line.text("job_id"), submit, gpus, duration) })
}

fn score(jobs: &[Job], measured: &Measured) -> SetOutcome {
    let Ok(cluster) = Cluster::uniform(8, 8, 8, GpuKind::named("v100")) else {
        return SetOutcome::default();
    };
    let runs: Vec<(Case, Outcome)> = cases()
        .into_par_iter()
        .map(|case| {
            let costs = Costs { start: RESTART, restart: RESTART, relaunch_all: true };
            let setup = Setup { costs, ..Setup::new(&cluster, jobs, case.2) };
            (case, simulate(&setup, &mut *case.1()))
        })
        .collect();
    let mut outcome = SetOutcome::default();
    for ((name, ..), run) in runs {
        let Some(ends) = measured.get(name) else { continue };
        let times = Times::of(ends.iter().map(|(submit, end)| *end - *submit));
        let last = ends.iter().map(|(_, end)| *end).max().unwrap_or(Nanos::ZERO);
        let mut row = |what: &str, predicted: Nanos, measured: Nanos| {
            outcome.rows.push(Row {
                group: name.into(),
                what: what.into(),
                predicted: predicted.secs_f64(),
                measured: measured.secs_f64(),
                ..Row::default()
            });
        };
        row("mean completion", run.completion.mean, times.mean);
        row("p99 completion", run.completion.p99, times.p99);
        row("makespan", run.makespan, last);
    }
    outcome
}
