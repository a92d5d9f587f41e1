//! The arguments of `fleet schedule`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use foretrain::core::Nanos;
use foretrain::fleet::schedule::policy::{Named, Rules};
use foretrain::fleet::schedule::{Costs, Failures, Placer};

use super::table::Tables;
use crate::args::values;
use crate::commands::fleet::schedule::{Beside, Machines, Options};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  foretrain fleet schedule examples/fleet/training.csv --on dgx-1-v100 --nodes 4
  foretrain fleet schedule jobs.csv --machines nodes.csv --policy fifo,best-fit,srtf --runs 1
  foretrain fleet schedule jobs.csv --on dgx-a100 --nodes 16 --policy fifo,horus,horus+ \\
      --utilisation 45% --plot schedule.svg

Policies: fifo, fifo+backfill, best-fit, sjf, ssf, smallest, srtf, srsf, tiresias, themis, gandiva,
horus, horus+, pollux, optimus, muri-s, muri-l; docs/scheduling.md says what each does.")]
pub(super) struct ScheduleArgs {
    #[command(flatten)]
    tables: Tables,
    /// Policies to compare; savings are over the first.
    #[arg(
        long = "policy",
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "fifo,fifo+backfill,sjf,srtf,tiresias,horus",
        value_parser = policy
    )]
    policies: Vec<&'static Named>,
    #[command(flatten)]
    cluster: ClusterArgs,
    #[command(flatten)]
    behaviour: Behaviour,
    #[command(flatten)]
    study: StudyArgs,
    /// Draw the cluster over time under each policy.
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    /// Write what became of each job under each policy, as CSV.
    #[arg(long, value_name = "FILE.csv")]
    jobs: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Cluster")]
struct ClusterArgs {
    /// A node type or cluster of the catalogue: GPUs per node, memory, power, links.
    #[arg(long, value_name = "CLUSTER", conflicts_with_all = ["machines", "gpus_per_node"])]
    on: Option<String>,
    /// A catalogue file that defines it, or more devices.
    #[arg(long, value_name = "FILE")]
    hardware: Vec<PathBuf>,
    /// Nodes.
    #[arg(long, value_name = "N", value_parser = values::nodes, required_unless_present = "machines")]
    nodes: Option<u32>,
    /// GPUs of a node, without --on [default: 8].
    #[arg(long, value_name = "N", value_parser = values::gpus, conflicts_with = "machines")]
    gpus_per_node: Option<u32>,
    /// A table of machines, in place of equal nodes.
    #[arg(long, value_name = "TABLE", conflicts_with = "nodes")]
    machines: Option<PathBuf>,
    /// Nodes of a rack.
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = values::nodes)]
    rack: u32,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "What things cost")]
struct Behaviour {
    /// What it takes a job to get going, each time that it gets GPUs.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = values::time)]
    restart: Nanos,
    /// How often those policies decide that decide at intervals; at least 1s.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = rhythm)]
    interval: Nanos,
    /// How jobs on one GPU share it: time-sliced, mps, none (they cost each other nothing), or by how
    /// much each takes longer, as in 1.2.
    #[arg(long, value_name = "HOW", default_value = "time-sliced", value_parser = beside)]
    sharing: Beside,
    /// Utilisation of jobs of which the table gives none, as in 45% [default: all of the GPU].
    #[arg(long, value_name = "PERCENT", value_parser = values::percent)]
    utilisation: Option<f64>,
    /// A predictor of fleet utilisation train, for jobs of which the table gives a model and samples
    /// per GPU, but no utilisation.
    #[arg(long, value_name = "FILE")]
    utilisation_with: Option<PathBuf>,
    /// How GPUs are chosen.
    #[arg(long, value_name = "HOW", default_value = "consolidated")]
    place: Place,
    /// Let pollux and optimus change the size of jobs whose model and step time are known.
    #[arg(long, requires = "on")]
    elastic: bool,
    /// Mean time between failures of a node, as in 400h [default: nodes do not fail].
    #[arg(long, value_name = "TIME", value_parser = interval)]
    mtbf: Option<Nanos>,
    /// Mean time until a failed node is back.
    #[arg(long, value_name = "TIME", default_value = "2h", value_parser = interval, requires = "mtbf")]
    repair: Nanos,
    /// How often jobs save what they did.
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = interval, requires = "mtbf")]
    checkpoint: Nanos,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Runs")]
struct StudyArgs {
    /// Runs per policy: the table, then jobs drawn from it at the same times of submission.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    runs: u32,
    /// Of everything random.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// How far off expected durations are: standard deviation of their logarithm, as in 50%; at most
    /// 1000%.
    #[arg(long, value_name = "PERCENT", default_value = "0%", value_parser = duration_error)]
    duration_error: f64,
    /// When to end, from the first submission [default: when all jobs have].
    #[arg(long, value_name = "TIME", value_parser = interval)]
    until: Option<Nanos>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Place {
    /// On as few nodes as possible, the fullest that fit, in one rack; or wait.
    Consolidated,
    /// The same, on the first nodes that fit.
    FirstFit,
    /// On whatever is idle.
    Anywhere,
    /// Consolidated, where the fewest idle GPUs become useless.
    LeastFragments,
}

fn policy(name: &str) -> Result<&'static Named, String> {
    Named::find(name).map_err(values::advised)
}

fn duration_error(text: &str) -> Result<f64, String> {
    values::percent_up_to(text, 1_000)
}

fn interval(text: &str) -> Result<Nanos, String> {
    let time = values::time(text)?;
    if time > Nanos::ZERO { Ok(time) } else { Err("expected a time above zero".into()) }
}

/// A run of days has to have an end.
fn rhythm(text: &str) -> Result<Nanos, String> {
    let time = values::time(text)?;
    if time >= Nanos::from_millis(1_000) { Ok(time) } else { Err("expected 1s or more".into()) }
}

fn beside(text: &str) -> Result<Beside, String> {
    match text {
        "time-sliced" => Ok(Beside::TimeSliced),
        "mps" => Ok(Beside::Mps),
        "none" => Ok(Beside::Constant(1.0)),
        number => match number.parse::<f64>() {
            Ok(factor) if (1.0..=100.0).contains(&factor) => Ok(Beside::Constant(factor)),
            _ => Err("expected time-sliced, mps, none, or a factor from 1 to 100".into()),
        },
    }
}

impl From<ScheduleArgs> for Options {
    fn from(args: ScheduleArgs) -> Self {
        let ScheduleArgs { tables, policies, cluster, behaviour, study, plot, jobs } = args;
        let placer = match behaviour.place {
            Place::Consolidated => Placer::Consolidated,
            Place::FirstFit => Placer::FirstFit,
            Place::Anywhere => Placer::Anywhere,
            Place::LeastFragments => Placer::LeastFragments,
        };
        let Behaviour { restart, interval, .. } = behaviour;
        Self {
            source: tables.into(),
            policies: once(policies),
            machines: Machines {
                on: cluster.on,
                hardware: cluster.hardware,
                nodes: cluster.nodes,
                gpus_per_node: cluster.gpus_per_node.unwrap_or(8),
                table: cluster.machines,
                per_rack: cluster.rack,
            },
            rules: Rules { interval, restart, placer, ..Rules::default() },
            costs: Costs { start: restart, restart, relaunch_all: false },
            beside: behaviour.sharing,
            utilisation: behaviour.utilisation,
            predictor: behaviour.utilisation_with,
            elastic: behaviour.elastic,
            failures: behaviour.mtbf.map(|every| Failures {
                every,
                repair: behaviour.repair,
                checkpoint_every: behaviour.checkpoint,
            }),
            runs: study.runs,
            seed: study.seed,
            duration_error: study.duration_error,
            until: study.until,
            plot,
            jobs,
        }
    }
}

/// Each policy once.
fn once(policies: Vec<&'static Named>) -> Vec<&'static Named> {
    let mut found: Vec<&'static Named> = Vec::new();
    for policy in policies {
        if !found.iter().any(|known| known.name == policy.name) {
            found.push(policy);
        }
    }
    found
}
