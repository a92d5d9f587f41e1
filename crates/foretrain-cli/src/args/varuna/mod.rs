//! The arguments of `varuna`.

mod job;
mod manager;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use foretrain::core::Nanos;

use self::job::{JobArgs, ProfileArgs};
use self::manager::ManagerArgs;
use super::values;
use crate::commands::varuna::{Action, Configured, Given, Morph, Options, Simulate, Source};

#[derive(Debug, Args)]
#[command(after_help = "docs/varuna.md explains the files, the model and the rules.")]
pub(super) struct Varuna {
    #[command(subcommand)]
    action: VarunaAction,
}

#[derive(Debug, Subcommand)]
enum VarunaAction {
    /// Rank all pipelines of a model on so many GPUs, and say why each loses.
    Plan(Box<PlanArgs>),
    /// Play schedules of one pipeline, of a profile or of given times.
    Simulate(Box<SimulateArgs>),
    /// Follow a trace of how many preemptible GPUs there are, planning anew at each change.
    Morph(Box<MorphArgs>),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  foretrain varuna plan examples/varuna/profile.toml --gpus 16 --batch 256 --gpu-memory 16GB
  foretrain varuna plan layers.csv.gz network.toml --model OPT-350 --gpu V100-16 --tp 1 \\
      --activation 8MB --gpus 64 --batch 1024 --uneven --schedule varuna,1f1b")]
struct PlanArgs {
    /// The profile: TOML or JSON, or a table of layers (.csv) and a profile of the network.
    #[arg(value_name = "PROFILE", required = true)]
    profile: Vec<PathBuf>,
    /// GPUs there are.
    #[arg(long, value_name = "N", value_parser = values::gpus)]
    gpus: u32,
    /// Samples per step over all replicas.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    batch: u64,
    #[command(flatten)]
    job: JobArgs,
    #[command(flatten)]
    choice: ProfileArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  foretrain varuna simulate --forward 10ms --backward 20ms --stages 4 --micro-batches 8 \\
      --send 1ms --long-send 5ms --all-reduce 50ms --schedule varuna,gpipe,1f1b --timeline
  foretrain varuna simulate examples/varuna/profile.toml --gpus 16 --batch 256 --stages 4 \\
      --draws 200 --perfetto pipeline.json")]
struct SimulateArgs {
    /// The profile, as of varuna plan; with --gpus, --batch and one number of --stages [default: times
    /// as given].
    #[arg(value_name = "PROFILE", requires_all = ["gpus", "batch", "stages"])]
    profile: Vec<PathBuf>,
    /// GPUs there are.
    #[arg(long, value_name = "N", value_parser = values::gpus, requires = "profile")]
    gpus: Option<u32>,
    /// Samples per step over all replicas.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), requires = "profile")]
    batch: Option<u64>,
    /// Forward time of a stage: one for all, or one for each.
    #[arg(long, value_name = "TIMES", value_delimiter = ',', value_parser = values::time, help_heading = "Times as given", conflicts_with = "profile", required_unless_present = "profile")]
    forward: Vec<Nanos>,
    /// Backward time of a stage: one for all, or one for each.
    #[arg(long, value_name = "TIMES", value_delimiter = ',', value_parser = values::time, help_heading = "Times as given", conflicts_with = "profile", required_unless_present = "profile")]
    backward: Vec<Nanos>,
    /// Micro-batches of the step.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Times as given", conflicts_with = "profile", required_unless_present = "profile")]
    micro_batches: Option<u32>,
    /// A message within a machine.
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = values::time, help_heading = "Times as given", conflicts_with = "profile")]
    send: Nanos,
    /// A message between machines [default: as --send].
    #[arg(long, value_name = "TIME", value_parser = values::time, help_heading = "Times as given", conflicts_with = "profile")]
    long_send: Option<Nanos>,
    /// The all-reduce after the pipeline.
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = values::time, help_heading = "Times as given", conflicts_with = "profile")]
    all_reduce: Nanos,
    /// Pipelines side by side, where --scattered puts them between neighbours.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = pipelines, help_heading = "Times as given", conflicts_with = "profile")]
    replicas: u32,
    /// Draw each schedule in letters, and list its tasks in --json.
    #[arg(long)]
    timeline: bool,
    /// Write what runs when for ui.perfetto.dev.
    #[arg(long, value_name = "FILE")]
    perfetto: Option<PathBuf>,
    #[command(flatten)]
    job: JobArgs,
    #[command(flatten)]
    choice: ProfileArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  foretrain varuna morph examples/varuna/profile.toml --batch 256 --gpu-memory 16GB \\
      --availability examples/varuna/availability.csv --price 0.9 --dedicated-price 3.06")]
struct MorphArgs {
    /// The profile, as of varuna plan.
    #[arg(value_name = "PROFILE", required = true)]
    profile: Vec<PathBuf>,
    /// Samples per step over all replicas.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    batch: u64,
    /// How many GPUs (or machines) there are when: a table, or a JSON list of [time, kind, count].
    #[arg(long, value_name = "FILE")]
    availability: PathBuf,
    /// The kind of GPU to take from the trace.
    #[arg(long, value_name = "NAME")]
    gpu_kind: Option<String>,
    /// When the trace ends, from its beginning [default: with its last row].
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    until: Option<Nanos>,
    /// Forward times of machines, as a table of machine, stage and forward; slow ones are left out.
    #[arg(long, value_name = "FILE")]
    machines: Option<PathBuf>,
    #[command(flatten)]
    manager: ManagerArgs,
    #[command(flatten)]
    job: JobArgs,
    #[command(flatten)]
    choice: ProfileArgs,
}

fn pipelines(text: &str) -> Result<u32, String> {
    values::count(text, "pipelines")
}

impl From<Varuna> for Options {
    fn from(args: Varuna) -> Self {
        match args.action {
            VarunaAction::Plan(args) => (*args).into(),
            VarunaAction::Simulate(args) => (*args).into(),
            VarunaAction::Morph(args) => (*args).into(),
        }
    }
}

impl From<PlanArgs> for Options {
    fn from(args: PlanArgs) -> Self {
        let source = Source { files: args.profile, choice: args.choice.into() };
        let job = args.job.job(args.gpus, args.batch);
        Self { action: Action::Plan(Configured { source, job }) }
    }
}

impl From<SimulateArgs> for Options {
    fn from(args: SimulateArgs) -> Self {
        // Of given times the parser has made sure that all that matter are there.
        let given = args.profile.is_empty().then_some(Given {
            forward: args.forward,
            backward: args.backward,
            micro_batches: args.micro_batches.unwrap_or_default(),
            send: args.send,
            long_send: args.long_send.unwrap_or(args.send),
            all_reduce: args.all_reduce,
            replicas: args.replicas,
        });
        let source = Source { files: args.profile, choice: args.choice.into() };
        let job = args.job.job(args.gpus.unwrap_or_default(), args.batch.unwrap_or_default());
        let configured = Configured { source, job };
        let (timeline, perfetto) = (args.timeline, args.perfetto);
        Self { action: Action::Simulate(Simulate { given, configured, timeline, perfetto }) }
    }
}

impl From<MorphArgs> for Options {
    fn from(args: MorphArgs) -> Self {
        let source = Source { files: args.profile, choice: args.choice.into() };
        Self {
            action: Action::Morph(Morph {
                configured: Configured { source, job: args.job.job(1, args.batch) },
                availability: args.availability,
                gpu_kind: args.gpu_kind,
                until: args.until,
                machines: args.machines,
                manager: args.manager.into(),
            }),
        }
    }
}
