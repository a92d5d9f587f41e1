//! Elastic jobs on 64 T4 under three schedulers (Pollux).

use std::collections::BTreeMap;
use std::sync::Arc;

use foretrain_core::{InputError, Nanos, Result};
use foretrain_fleet::schedule::elastic::{
    Application, Batch, BatchLimits, Efficiency, Elastic, Measured, Phase, StepTimes,
};
use foretrain_fleet::schedule::policy::{Goodput, LeastAttained, MarginalGain, Moving};
use foretrain_fleet::schedule::{
    Cluster, ConstantSlowdown, Costs, GpuKind, Job, Policy, Setup, simulate,
};
use rayon::prelude::*;
use serde_json::Value;

use crate::validate::ValidationSet;
use crate::validate::columns::{Line, Table, table};
use crate::validate::corpus::Corpus;
use crate::validate::report::{Row, SetOutcome};
use crate::validate::roots::Root;

/// Mean completion times of workloads.
pub(super) struct Pollux;

const FOLDER: &str = "fleet/petuum__adaptdl/simulator";
/// Applications with the epochs they train for, and most samples per GPU where memory has less than
/// was measured. As the published simulator sets them.
const APPLICATIONS: [(&str, usize, Option<u64>); 6] = [
    ("bert", 2, None),
    ("cifar10", 100, None),
    ("ncf", 10, None),
    ("imagenet", 90, None),
    ("deepspeech2", 80, None),
    ("yolov3", 50, Some(8)),
];
/// Runs on one GPU at this batch wherever a scheduler may choose.
const ONE_GPU: (&str, u64) = ("ncf", 32_768);
/// The published simulator decides every minute and lets a job lose half a minute on a restart.
const INTERVAL: Nanos = Nanos::from_millis(60_000);
const RESTART: Nanos = Nanos::from_millis(30_000);
/// It has no step times beyond.
const MOST_GPUS: u32 = 64;
/// GPU-seconds after which its Tiresias moves a job to the second queue.
const QUEUE: f64 = 16.0 * 3_600.0;
const LOADS: [(&str, &str); 4] = [
    ("workloads", "1.0"),
    ("workloads-0.5", "0.5"),
    ("workloads-1.5", "1.5"),
    ("workloads-2.0", "2.0"),
];
const POLICIES: [&str; 3] = ["tiresias", "optimus", "pollux"];

impl ValidationSet for Pollux {
    fn name(&self) -> &'static str {
        "scheduler-pollux"
    }
    fn about(&self) -> &'static str {
        "Mean job completion time of 32 workloads (8 at each of four loads) of elastic jobs on 16 nodes of 4 T4 \
         under Tiresias, Optimus and Pollux, against the published results of Pollux's own simulator. Given are \
         the applications' measured step times and gradient noise, the tuned sizes of jobs, the interval of 60 s \
         and 30 s per restart. Sizes that were not measured go by a curve through those that were; our elastic \
         policy solves a knapsack where theirs searches by a genetic algorithm, and knows each job's curve from \
         the beginning where theirs fits it online. Nothing is fitted to the results."
    }
    fn unit(&self) -> &'static str {
        "s"
    }
    fn score(&self, corpus: &Corpus<'_>) -> SetOutcome {
        SetOutcome::of(FOLDER, read(corpus.root()), |data| score(&data))
    }
}

/// What the folder holds.
struct Data {
    applications: BTreeMap<&'static str, Trained>,
    /// Load, number of the workload, its jobs.
    workloads: Vec<(&'static str, String, Table)>,
    /// Mean completion by policy, load and workload, seconds.
    published: BTreeMap<(&'static str, &'static str, String), f64>,
}

/// An application and what there is to do.
struct Trained {
    application: Arc<Application>,
    work: f64,
}

fn read(root: &Root) -> Result<Option<Data>> {
    let mut applications = BTreeMap::new();
    for (name, epochs, most_local) in APPLICATIONS {
        let Some(application) = application(root, name, epochs, most_local)? else {
            return Ok(None);
        };
        applications.insert(name, application);
    }
    let (mut workloads, mut published) = (Vec::new(), BTreeMap::new());
    for (folder, load) in LOADS {
        for number in 1..=8 {
            let name = format!("workload-{number}");
            if let Some(jobs) = table(root, &format!("{FOLDER}/{folder}/{name}.csv"))? {
                workloads.push((load, name, jobs));
            }
        }
        for policy in POLICIES {
            let file = format!("{FOLDER}/results-jobload/{policy}-{load}/summary.json");
            let packed = format!("{file}.gz");
            let Some(path) = root.file(&[&file, &packed]) else { continue };
            let text = crate::interference::pairs::read_text(&path)?;
            let results: Value = serde_json::from_str(&text)
                .map_err(|error| InputError::new(format!("not JSON: {error}")).in_file(&path))?;
            for (name, mean) in results["avgs"].as_object().into_iter().flatten() {
                if let Some(mean) = mean.as_f64() {
                    published.insert((policy, load, name.clone()), mean);
                }
            }
        }
    }
    Ok(Some(Data { applications, workloads, published }))
}

fn application(
    root: &Root,
    name: &str,
    epochs: usize,
    most_local: Option<u64>,
) -> Result<Option<Trained>> {
    let folder = format!("{FOLDER}/traces/{name}");
    let file = |what: &str| table(root, &format!("{folder}/{what}.csv"));
    let (Some(placements), Some(scalability)) = (file("placements")?, file("scalability")?) else {
        return Ok(None);
    };
    let mut steps: Vec<Measured> = placements.lines().filter_map(placed).collect();
    let locals = |steps: &[Measured]| {
        let all = || steps.iter().map(|step| step.local);
        (all().min().unwrap_or(1), all().max().unwrap_or(1))
    };
    let (least_local, most) = locals(&steps);
    steps.extend(scalability.lines().filter_map(spread));
    let mut noise: BTreeMap<u64, Table> = BTreeMap::new();
    // Batches are powers of two times the smallest one that is there, or of odd small ones.
    for batch in BATCHES {
        if let Some(run) = file(&format!("validation-{batch}"))? {
            noise.insert(batch, run);
        }
    }
    let (Some((&initial, _)), Some((&most_batch, _))) =
        (noise.first_key_value(), noise.last_key_value())
    else {
        return Ok(None);
    };
    let column = |run: &Table, name: &str| -> Vec<f64> {
        run.lines().map(|line| line.text(name).parse().unwrap_or(f64::NAN)).collect()
    };
    let progress: Vec<Vec<f64>> = noise.values().map(|run| column(run, "progress")).collect();
    let squares: Vec<Vec<f64>> = noise.values().map(|run| column(run, "grad_sqr")).collect();
    let variances: Vec<Vec<f64>> = noise.values().map(|run| column(run, "grad_var")).collect();
    let phase = |epoch: usize| {
        let until =
            progress.iter().filter_map(|run| run.get(epoch)).copied().fold(f64::NAN, f64::min);
        let at = |runs: &[Vec<f64>], run: usize| runs[run].get(epoch).copied().unwrap_or(f64::NAN);
        let batches = noise.keys().enumerate();
        let noise = batches.map(|(run, batch)| (*batch, at(&squares, run), at(&variances, run)));
        Phase { until, noise: noise.collect() }
    };
    let phases: Vec<Phase> = (0..epochs).map(phase).collect();
    let work = phases.last().map_or(0.0, |phase| phase.until);
    let most_local = most_local.unwrap_or(most);
    let limits = BatchLimits { initial, most: most_batch, least_local, most_local };
    let times = StepTimes::new(&steps)?;
    let application = Application::new(times, Efficiency::new(phases), limits);
    Ok(Some(Trained { application: Arc::new(application), work }))
}

/// Batches with a measured run in some application.
const BATCHES: [u64; 33] = [
    8, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128, 160, 192, 200, 256, 320, 384, 400, 512, 640,
    800, 1_024, 1_600, 2_048, 3_200, 4_096, 6_400, 8_192, 12_800, 16_384, 25_600, 32_768,
];

/// A placement is written as one digit per node.
fn placed(line: Line<'_>) -> Option<Measured> {
    let digits = line.text("placement").chars();
    let per_node = digits.map(|digit| digit.to_digit(10)).collect::<Option<Vec<u32>>>()?;
    measured(line, per_node)
}

/// As many GPUs as evenly as possible on as many nodes.
fn spread(line: Line<'_>) -> Option<Measured> {
    let (nodes, gpus) = (line.degree("num_nodes")?, line.degree("num_replicas")?);
    let per_node = (0..nodes).map(|node| gpus / nodes + u32::from(node < gpus % nodes));
    measured(line, per_node.collect())
}

fn measured(line: Line<'_>, per_node: Vec<u32>) -> Option<Measured> {
    let (step, sync) = (line.number("step_time")?, line.number("sync_time").unwrap_or(0.0));
    Some(Measured { per_node, local: line.whole("local_bsz")?, step, sync })
}

impl Data {
    fn jobs(&self, workload: &Table, policy: &str) -> Vec<Job> {
        workload.lines().filter_map(|line| self.job(line, policy)).collect()
    }

    fn job(&self, line: Line<'_>, policy: &str) -> Option<Job> {
        let (name, Trained { application, work }) =
            self.applications.get_key_value(line.text("application"))?;
        let (gpus, batch) = (line.degree("num_replicas")?, line.whole("batch_size")?);
        let most = |batch: u64| (batch / application.limits().least_local.max(1)) as u32;
        let (batch, most_gpus) = match (policy, *name == ONE_GPU.0) {
            ("tiresias", _) => (Batch::Fixed(batch), gpus),
            ("optimus", true) => (Batch::Fixed(batch), 1),
            ("optimus", false) => (Batch::Fixed(batch), most(batch).min(MOST_GPUS)),
            (_, true) => (Batch::Fixed(ONE_GPU.1), 1),
            (_, false) => (Batch::Adaptive, application.most_gpus().min(MOST_GPUS)),
        };
        let elastic = Elastic::new(application.clone(), batch, most_gpus);
        let submit = Nanos::from_secs_f64(line.number("time")?);
        Some(Job {
            work: *work,
            scaling: Some(Arc::new(elastic)),
            ..Job::new(line.text("name"), submit, gpus, Nanos::ZERO)
        })
    }
}

fn policy(name: &str) -> Box<dyn Policy> {
    match name {
        "tiresias" => Box::new(LeastAttained::new(vec![QUEUE], Moving::Stay).every(INTERVAL)),
        "optimus" => Box::new(MarginalGain::new(INTERVAL)),
        _ => Box::new(Goodput::new(INTERVAL, RESTART)),
    }
}

fn score(data: &Data) -> SetOutcome {
    let Ok(cluster) = Cluster::uniform(16, 4, 16, GpuKind::named("t4")) else {
        return SetOutcome::default();
    };
    let wanted: Vec<(&str, &(&'static str, String, Table))> = POLICIES
        .iter()
        .flat_map(|policy| data.workloads.iter().map(move |workload| (*policy, workload)))
        .collect();
    let rows = wanted.par_iter().filter_map(|(name, (load, workload, table))| {
        let measured = *data.published.get(&(*name, *load, workload.clone()))?;
        let jobs = data.jobs(table, name);
        let costs = Costs { start: RESTART, restart: RESTART, relaunch_all: false };
        let alone = ConstantSlowdown(1.0);
        let setup = Setup { costs, ..Setup::new(&cluster, &jobs, &alone) };
        let run = simulate(&setup, &mut *policy(name));
        Some(Row {
            group: format!("{name} at load {load}"),
            what: workload.clone(),
            predicted: run.completion.mean.secs_f64(),
            measured,
            ..Row::default()
        })
    });
    SetOutcome { rows: rows.collect(), ..SetOutcome::default() }
}
