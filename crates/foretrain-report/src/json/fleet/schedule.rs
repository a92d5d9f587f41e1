//! `fleet schedule` as JSON.

use std::collections::BTreeMap;

use foretrain_core::Ledger;
use foretrain_fleet::schedule::compare::{Mean, Metric, PolicyResult};
use foretrain_fleet::schedule::{Answer, Ending, KNOWN, Outcome, Times};
use schemars::JsonSchema;
use serde::Serialize;

use crate::json::common::LedgerReport;

/// How policies would have placed the jobs of a table.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FleetScheduleReport {
    /// `foretrain/fleet-schedule/1`.
    pub schema: &'static str,
    /// Where the jobs are from.
    pub source: String,
    /// What the cluster is, in words.
    pub machines: String,
    /// Nodes of the cluster.
    pub nodes: usize,
    /// GPUs of the cluster.
    pub gpus: u32,
    /// Rows of the table.
    pub rows: u64,
    /// Whether a table of jobs could not be read to its end.
    pub cut_short: bool,
    /// Jobs that were played.
    pub jobs: usize,
    /// Rows left out, by the reason.
    pub left_out: BTreeMap<String, u64>,
    /// Of how many jobs each thing is known.
    pub known: BTreeMap<String, u64>,
    /// Runs per policy: the table, then draws from it.
    pub runs: u32,
    /// Policies; savings are over the first.
    pub policies: Vec<FleetPolicyReport>,
    /// Why some jobs were never started, with an example.
    pub impossible: Option<String>,
    /// What a reader has to know.
    pub notes: Vec<String>,
    /// What was wrong with the table.
    pub ledger: LedgerReport,
}

/// One policy.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FleetPolicyReport {
    /// Its name.
    pub name: String,
    /// One line.
    pub about: String,
    /// The run of the table as it is.
    pub table: FleetRunReport,
    /// Means over all runs.
    pub means: BTreeMap<String, FleetMeanReport>,
    /// Savings over the first policy, as shares; `null` for the first.
    pub savings: Option<FleetSavingsReport>,
}

/// One run.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FleetRunReport {
    /// From the first submission to the last end, or to the end of a run in which not all jobs
    /// finished.
    pub makespan_ns: i64,
    /// Why the run ended: `done`, all jobs are that could ever be; `cut`, it was to end then;
    /// `failures`, nodes fail so often that no job gets on; `stuck`, the policy never starts what is
    /// left.
    pub ending: &'static str,
    /// From submission to end; `null` where jobs had not finished.
    pub completion: Option<FleetJobTimesReport>,
    /// From submission to the first GPUs; `null` where jobs had not finished.
    pub wait: Option<FleetJobTimesReport>,
    /// All time without GPUs from submission to end, that after pre-emptions and failures too; `null`
    /// where jobs had not finished.
    pub waited: Option<FleetJobTimesReport>,
    /// Jobs that finished.
    pub finished: usize,
    /// Jobs that no GPUs of the cluster would ever do for.
    pub impossible: usize,
    /// Jobs that had not finished when the run ended.
    pub unfinished: usize,
    /// Share of GPU-time with a job.
    pub allocated: f64,
    /// Share of GPU-time that jobs computed: the utilisation of each alone, scaled by the rate at which
    /// it gets on.
    pub utilisation: f64,
    /// Of the idle GPU-time, the share that no usual job could use.
    pub fragmentation: f64,
    /// Share of GPU memory that jobs held.
    pub memory: Option<f64>,
    /// Energy of the GPUs.
    pub energy_kwh: f64,
    /// How often jobs lost GPUs to others.
    pub preemptions: u64,
    /// How often jobs were moved or resized.
    pub moves: u64,
    /// How often a machine failed under a job.
    pub failures: u64,
    /// The cluster over time.
    pub samples: Vec<FleetSampleReport>,
}

/// Times of all jobs.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FleetJobTimesReport {
    /// Mean.
    pub mean_ns: i64,
    /// Median.
    pub median_ns: i64,
    /// 99th percentile.
    pub p99_ns: i64,
}

/// The cluster from a time on.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FleetSampleReport {
    /// From when, since the first submission.
    pub from_ns: i64,
    /// GPUs with a job.
    pub busy: f64,
    /// GPUs by how much jobs compute on them.
    pub computing: f64,
    /// Jobs without GPUs.
    pub waiting: f64,
    /// Jobs on GPUs.
    pub running: f64,
}

/// A mean over runs.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FleetMeanReport {
    /// The mean; times in seconds.
    pub mean: f64,
    /// Half of the 90 % interval of the mean; `null` for one run.
    pub half_width: Option<f64>,
}

/// What a policy saves over another.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FleetSavingsReport {
    /// Of the makespan.
    pub makespan: FleetMeanReport,
    /// Of the mean completion time.
    pub completion: FleetMeanReport,
    /// Of the mean wait for the first GPUs.
    pub wait: FleetMeanReport,
    /// Of the mean of all time without GPUs.
    pub waited: FleetMeanReport,
}

impl FleetScheduleReport {
    /// The JSON form of an answer.
    pub fn new(answer: &Answer, ledger: &Ledger) -> Self {
        let named = |(what, count): (&&str, u64)| ((*what).to_owned(), count);
        Self {
            schema: "foretrain/fleet-schedule/1",
            source: answer.source.clone(),
            machines: answer.machines.clone(),
            nodes: answer.nodes,
            gpus: answer.gpus,
            rows: answer.used.rows,
            cut_short: answer.cut_short,
            jobs: answer.jobs,
            left_out: answer.used.left_out.iter().map(|(why, n)| ((*why).to_owned(), *n)).collect(),
            known: KNOWN.iter().zip(answer.used.known).map(named).collect(),
            runs: answer.runs,
            policies: answer.results.iter().map(policy).collect(),
            impossible: answer.impossible.clone(),
            notes: answer.notes.clone(),
            ledger: LedgerReport::from(ledger),
        }
    }
}

fn policy(result: &PolicyResult) -> FleetPolicyReport {
    let run = &result.table;
    let [preemptions, moves, failures] = run.disturbed;
    let samples = run.samples.iter().map(|sample| FleetSampleReport {
        from_ns: (sample.from - run.begin).nanos(),
        busy: sample.busy,
        computing: sample.utilised,
        waiting: sample.waiting,
        running: sample.running,
    });
    let means = Metric::ALL.iter().zip(&result.means);
    FleetPolicyReport {
        name: result.policy.name.into(),
        about: result.policy.about.into(),
        table: FleetRunReport {
            makespan_ns: run.makespan.nanos(),
            ending: match run.ending {
                Ending::Done => "done",
                Ending::Cut => "cut",
                Ending::Failures => "failures",
                Ending::Stuck => "stuck",
            },
            completion: times(run, run.completion),
            wait: times(run, run.wait),
            waited: times(run, run.waited),
            finished: run.finished,
            impossible: run.impossible,
            unfinished: run.unfinished,
            allocated: run.allocated(),
            utilisation: run.utilisation(),
            fragmentation: run.fragmentation(),
            memory: run.memory_share(),
            energy_kwh: run.kilowatt_hours(),
            preemptions,
            moves,
            failures,
            samples: samples.collect(),
        },
        means: means
            .filter_map(|(m, value)| Some((m.name().to_owned(), mean((*value)?))))
            .collect(),
        savings: result.savings.map(|[makespan, completion, wait, waited]| FleetSavingsReport {
            makespan: mean(makespan),
            completion: mean(completion),
            wait: mean(wait),
            waited: mean(waited),
        }),
    }
}

/// Those of the jobs that finished only would be compared with those of others.
fn times(run: &Outcome, times: Times) -> Option<FleetJobTimesReport> {
    (run.unfinished == 0 && run.finished > 0).then(|| FleetJobTimesReport {
        mean_ns: times.mean.nanos(),
        median_ns: times.median.nanos(),
        p99_ns: times.p99.nanos(),
    })
}

fn mean(mean: Mean) -> FleetMeanReport {
    FleetMeanReport { mean: mean.mean, half_width: mean.half_width }
}
