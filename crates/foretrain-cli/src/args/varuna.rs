//! The arguments of `varuna`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use foretrain::core::{Bytes, Nanos};
use foretrain::plan::varuna::layout::{Machines, Placement};
use foretrain::plan::varuna::morph::Prices;
use foretrain::plan::varuna::plan::MicroBatches;
use foretrain::plan::varuna::profile::{Gaps, LayerChoice};
use foretrain::plan::varuna::schedule::Schedule;

use super::values;
use crate::commands::varuna::{
    Action, Configured, Given, Job, Manager, Morph, Options, Simulate, Source, Variation,
};

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
struct ProfileArgs {
    /// Table of layers: the model whose rows to take.
    #[arg(long, value_name = "NAME", help_heading = "Tables of layers (.csv)")]
    model: Option<String>,
    /// Table of layers: the kind of GPU whose rows to take.
    #[arg(long, value_name = "NAME", help_heading = "Tables of layers (.csv)")]
    gpu: Option<String>,
    /// Table of layers: the degree of tensor parallelism whose rows to take.
    #[arg(long, value_name = "N", value_parser = values::gpus, help_heading = "Tables of layers (.csv)")]
    tp: Option<u32>,
    /// Table of layers: what a layer hands on per sample, as in 10MB.
    #[arg(long, value_name = "SIZE", value_parser = values::size, help_heading = "Tables of layers (.csv)")]
    activation: Option<Bytes>,
}

impl From<ProfileArgs> for LayerChoice {
    fn from(args: ProfileArgs) -> Self {
        let ProfileArgs { model, gpu, tp, activation } = args;
        Self { model, gpu, tensor_parallel: tp, activation }
    }
}

#[derive(Debug, Args)]
struct MachineArgs {
    /// GPUs of one machine.
    #[arg(long, value_name = "N", default_value_t = Machines::VARUNA_GPUS, value_parser = values::gpus)]
    gpus_per_vm: u32,
    /// The replicas of a stage fill one machine after the other, not the stages of a pipeline.
    #[arg(long)]
    scattered: bool,
}

impl From<MachineArgs> for Machines {
    fn from(args: MachineArgs) -> Self {
        let placement = if args.scattered { Placement::Scattered } else { Placement::Packed };
        Self { gpus_each: args.gpus_per_vm, placement }
    }
}

#[derive(Debug, Args)]
struct JobArgs {
    /// Memory of one GPU, as in 16GB [default: no check].
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    gpu_memory: Option<Bytes>,
    #[command(flatten)]
    machines: MachineArgs,
    /// Schedules to try: varuna, gpipe, 1f1b, 1f1b-recompute.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "varuna", value_parser = values::hinted::<Schedule>)]
    schedule: Vec<Schedule>,
    /// Samples per micro-batch: sizes, all that were measured, or the largest that fits.
    #[arg(long, value_name = "SIZES", default_value = "largest", value_parser = micro_batches)]
    micro_batch: MicroBatches,
    /// Numbers of stages to try [default: all].
    #[arg(long, value_name = "COUNTS", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..))]
    stages: Vec<u32>,
    /// Deal cut-points to stages by cost too, so that any number of stages is possible.
    #[arg(long)]
    uneven: bool,
    /// Leave samples out that do not divide by the replicas, as Varuna does.
    #[arg(long)]
    drop_remainder: bool,
    /// What the profile lacks: refuse, interpolate between measured sizes, or fill all-reduces as
    /// varuna does.
    #[arg(long, value_name = "HOW", default_value = "refuse", value_parser = values::hinted::<Gaps>)]
    gaps: Gaps,
    #[command(flatten)]
    variation: VariationArgs,
}

#[derive(Debug, Args)]
struct VariationArgs {
    /// Draw jitter so many times and show percentiles; the median counts.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Jitter")]
    draws: Option<u32>,
    /// Standard deviation of a task's offset before truncation; the default is Varuna's.
    #[arg(long, value_name = "TIME", default_value = "2ms", value_parser = values::time, help_heading = "Jitter")]
    compute_sigma: Nanos,
    /// Standard deviation of a message's offset before truncation; the default is Varuna's.
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = values::time, help_heading = "Jitter")]
    network_sigma: Nanos,
    /// Seed of all draws.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Jitter")]
    seed: u64,
}

impl From<VariationArgs> for Variation {
    fn from(args: VariationArgs) -> Self {
        let VariationArgs { draws, compute_sigma, network_sigma, seed } = args;
        Self { draws, compute: compute_sigma, network: network_sigma, seed }
    }
}

impl JobArgs {
    fn job(self, gpus: u32, batch: u64) -> Job {
        Job {
            gpus,
            batch,
            gpu_memory: self.gpu_memory,
            drop_remainder: self.drop_remainder,
            machines: self.machines.into(),
            schedules: self.schedule,
            micro_batches: self.micro_batch,
            stages: self.stages,
            uneven: self.uneven,
            gaps: self.gaps,
            variation: self.variation.into(),
        }
    }
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
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = values::gpus, help_heading = "Times as given", conflicts_with = "profile")]
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

#[derive(Debug, Args)]
#[command(next_help_heading = "Rules")]
struct ManagerArgs {
    /// Training time between checkpoints; the default is assumed.
    #[arg(long, value_name = "TIME", default_value = "600s", value_parser = values::time)]
    checkpoint_every: Nanos,
    /// How long training stands still for a checkpoint; the default is assumed.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = values::time)]
    checkpoint: Nanos,
    /// Starting processes and loading a checkpoint; the default is assumed.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = values::time)]
    restart: Nanos,
    /// From a loss until the job is planned anew; the default is Varuna's.
    #[arg(long, value_name = "TIME", default_value = "120s", value_parser = values::time)]
    preempted_wait: Nanos,
    /// The same where as many GPUs are there again by then; the default is Varuna's.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = values::time)]
    transient_wait: Nanos,
    /// How long before it a loss is known; the default is Varuna's.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = values::time)]
    notice: Nanos,
    /// How long after a change further GPUs are left aside; the default is Varuna's.
    #[arg(long, value_name = "TIME", default_value = "100s", value_parser = values::time)]
    quiet: Nanos,
    /// By how much of its stage's median a machine may be slower; the default is Varuna's.
    #[arg(long, value_name = "PERCENT", default_value = "15%", value_parser = values::percent)]
    slow: f64,
    /// Price of a preemptible GPU for an hour.
    #[arg(long, value_name = "PRICE", value_parser = values::positive)]
    price: Option<f64>,
    /// Price of a GPU for an hour that is always there.
    #[arg(long, value_name = "PRICE", value_parser = values::positive)]
    dedicated_price: Option<f64>,
    /// GPUs that are always there, to compare with [default: the most of the trace].
    #[arg(long, value_name = "N", value_parser = values::gpus)]
    dedicated_gpus: Option<u32>,
}

impl From<ManagerArgs> for Manager {
    fn from(args: ManagerArgs) -> Self {
        Self {
            checkpoint_every: args.checkpoint_every,
            checkpoint: args.checkpoint,
            restart: args.restart,
            preempted_wait: args.preempted_wait,
            transient_wait: args.transient_wait,
            notice: args.notice,
            quiet: args.quiet,
            slow: args.slow,
            prices: Prices { preemptible: args.price, dedicated: args.dedicated_price },
            dedicated_gpus: args.dedicated_gpus,
        }
    }
}

/// `largest`, `all`, or sizes as in `1,2,4`.
fn micro_batches(text: &str) -> Result<MicroBatches, String> {
    match text.trim() {
        "largest" => Ok(MicroBatches::Largest),
        "all" => Ok(MicroBatches::All),
        sizes => {
            let size = |text: &str| text.trim().parse().ok().filter(|size| *size > 0);
            let sizes: Option<Vec<u32>> = sizes.split(',').map(size).collect();
            sizes
                .map(MicroBatches::Only)
                .ok_or_else(|| "expected largest, all, or sizes as in 1,2,4".into())
        }
    }
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
