//! The verbs and their arguments.

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, Subcommand, ValueEnum};
use foretrain::core::{Bytes, Nanos};
use foretrain::cost::own::OwnCosts;
use foretrain::graph::CollectiveKind;
use foretrain::predict::BucketCopies;
use foretrain::predict::roles::GivenRole;
use foretrain::rewrite::strategy::Strategy;

use super::calibrate::Calibrate;
use super::capture::Capture;
use super::collectives::Collectives;
use super::estimate::Estimate;
use super::fleet::Fleet;
use super::plan::Plan;
use super::read::Traces;
use super::scaling::Scaling;
use super::values;
use super::varuna::Varuna;
use super::whatif::WhatIf;
use crate::commands::capture::RANK_VERB;
use crate::commands::hardware::Listed;
use crate::commands::interference::{Choice, USUAL};
use crate::commands::primitives::PEER_VERB;
use crate::commands::{Command, export, hardware, inspect, predict, validate};

#[derive(Debug, Subcommand)]
pub(super) enum Verb {
    /// Show what is in a trace or graph: steps, breakdown, collectives, coverage, warnings; or what a
    /// collective benchmark (nccl-tests, rccl-tests) measured.
    Inspect(Inspect),
    /// Predict step time, scaling and breakdown on a cluster at other sizes.
    Predict(Box<Predict>),
    /// Show what changes to a job would buy: faster kernels, links, hosts, other sizes, and who owns
    /// the time that remains.
    Whatif(Box<WhatIf>),
    /// Judge measured scaling without a trace: what limits it, what would help, other sizes.
    Scaling(Box<Scaling>),
    /// Plan pipelines on preemptible GPUs from micro-benchmarks, as Varuna does, and follow the GPUs
    /// that there are.
    Varuna(Varuna),
    /// Look at whole clusters: what tables of jobs hold, what jobs spend their time on, where they would
    /// run faster, how schedulers place them, and which layers their models share.
    Fleet(Fleet),
    /// Estimate a parallel layout of a model without a trace: step time, MFU, memory, cost, and where
    /// each millisecond goes.
    Estimate(Box<Estimate>),
    /// Find the layout to run: every legal one, ranked, and why the best wins.
    Plan(Box<Plan>),
    /// Show what collectives cost on a cluster, by size and number of GPUs, beside measurements.
    Collectives(Box<Collectives>),
    /// Turn measurements into files that other verbs take: of a cluster for --on, of a machine's
    /// synchronisation primitives, of how things slow each other down.
    Calibrate(Calibrate),
    /// Measure what a forecast needs where a job is to run: the communication between processes.
    Capture(Box<Capture>),
    /// Show the catalogue of devices, nodes and clusters.
    Hardware(Hardware),
    /// List models known by name, or show one: layers, parameters, work.
    Models {
        /// A model's name, or a file that describes one: a Hugging Face config.json, TOML or ONNX.
        model: Option<String>,
        /// Tokens of a sample [default: as usual for the model].
        #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..=1 << 28))]
        sequence: Option<u64>,
    },
    /// List synchronisation strategies and the passes they are composed of.
    Strategies {
        /// One of them, to see all of it.
        name: Option<String>,
    },
    /// Write traces or graphs in another form: a step graph, a timeline for Perfetto.
    Export(Export),
    /// Score predictions against measured step times.
    Validate(Validate),
    /// Print a completion script for a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print the JSON schema of a verb's --json output.
    Schema {
        /// The verb; inspect-graph is what inspect prints for graphs.
        #[arg(value_parser = foretrain::report::json::ANSWERS)]
        answer: String,
    },
    /// The second process of `calibrate primitives`.
    #[command(name = PEER_VERB, hide = true)]
    Peer {
        /// Of the first process, on this machine.
        port: u16,
        /// That tells the first process who this is.
        token: u64,
    },
    /// A process of `capture comm`.
    #[command(name = RANK_VERB, hide = true)]
    Rank {
        /// Of the process that measures.
        coordinator: std::net::SocketAddr,
        /// That tells it who this is.
        token: u64,
        /// Which machine this is.
        machine: u64,
    },
}

impl Verb {
    /// Whether --out names something else than where the answer goes.
    pub(super) fn keeps_a_file(&self) -> bool {
        match self {
            Self::Calibrate(_) | Self::Capture(_) => true,
            Self::Fleet(fleet) => fleet.keeps_a_file(),
            _ => false,
        }
    }
}

#[derive(Debug, Args)]
pub(super) struct Inspect {
    #[command(flatten)]
    traces: Traces,
    /// The operation of benchmark logs that do not name theirs, as in all-reduce.
    #[arg(long, value_name = "KIND", value_parser = values::collective)]
    collective: Option<CollectiveKind>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  foretrain predict rank0.json.gz --on dgx-a100 --gpus 8,16,64,512
  foretrain predict traces/ --on our-cluster --hardware our.toml --gpus 64 --explain")]
pub(super) struct Predict {
    #[command(flatten)]
    traces: Traces,
    /// Cluster or node type to predict for (see `foretrain hardware list`), or a catalogue file that
    /// defines it.
    #[arg(long, value_name = "CLUSTER")]
    on: String,
    /// Job sizes in GPUs, as in 8,16,64,512.
    #[arg(long, value_name = "SIZES", required = true, value_delimiter = ',', value_parser = values::gpus)]
    gpus: Vec<u32>,
    /// Cluster, node type or file of the recording [default: deduced from its device name].
    #[arg(long, value_name = "CLUSTER")]
    recorded_on: Option<String>,
    /// Step time of the recorded job without the profiler, as in 47.1ms: what profiling cost on the
    /// host is taken out.
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    step_time: Option<Nanos>,
    /// Relative standard deviation of a rank's own steps without the profiler, as in 3%: ranks wait
    /// for the latest [default: as the few recorded steps show, 5% at most].
    #[arg(long, value_name = "PERCENT", value_parser = values::percent)]
    step_spread: Option<f64>,
    /// Samples (or tokens) that one model replica processes per step; gives throughput in them.
    #[arg(long, value_name = "N", value_parser = values::positive)]
    replica_batch: Option<f64>,
    /// How replicas are synchronised, as in 'zero-1' or 'fuse(50MiB) | compress(half)' (see
    /// `foretrain strategies`); takes the place of recorded synchronisation [default: as recorded, or
    /// PyTorch's DDP where nothing was].
    #[arg(long, value_name = "PASSES", value_parser = values::strategy)]
    strategy: Option<Arc<Strategy>>,
    /// What summing, copying and encoding cost, as `foretrain calibrate primitives -o` writes it
    /// [default: assumed].
    #[arg(long, value_name = "FILE")]
    primitives: Option<PathBuf>,
    /// DDP's bucket_cap_mb, where gradient buckets have to be built [default: as PyTorch: first
    /// bucket 1, others 25].
    #[arg(long, value_name = "MIB", value_parser = values::positive, conflicts_with = "strategy")]
    bucket_cap_mb: Option<f64>,
    /// Gradient bytes of one rank, where the trace does not show them, as in 1.5GiB.
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    gradient_bytes: Option<Bytes>,
    /// Rate at which DDP copies gradients into built buckets and back, both copies together, as in
    /// 4GB/s, or none under gradient_as_bucket_view=True [default: a quarter of the memory's].
    #[arg(long, value_name = "RATE", value_parser = values::bucket_copies)]
    bucket_copies: Option<BucketCopies>,
    /// Buffers (statistics of batch normalisation and the like) that DDP broadcasts before every
    /// forward pass, as in 9KB; where gradient buckets are built [default: none].
    #[arg(long, value_name = "SIZE", value_parser = values::size, conflicts_with = "strategy")]
    buffer_bytes: Option<Bytes>,
    /// Cores, or a part of one, that all threads of a rank share: communication by a CPU library
    /// (Gloo, MPI) then takes time from computing [default: it has cores of its own].
    #[arg(long, value_name = "N", value_parser = values::positive)]
    cores: Option<f64>,
    /// What groups are for, as in 'dp_*=dp': dp, tp, pp or ep; may be given several times [default:
    /// deduced from names and use].
    #[arg(long = "role", value_name = "GROUPS=ROLE", value_parser = values::role)]
    roles: Vec<GivenRole>,
    /// Catalogue file with further devices, nodes and clusters; may be given several times.
    #[arg(long, value_name = "FILE")]
    hardware: Vec<PathBuf>,
    /// How computation and communication on one device slow each other down: none, analytic,
    /// fixed:1.3,1.1 (computation, communication), pretrained, or a file that calibrate interference
    /// wrote.
    #[arg(long, value_name = "MODEL", default_value = USUAL, value_parser = values::interference)]
    interference: Choice,
    /// A cost function that this program installed (see docs/python.md).
    #[arg(long, value_name = "NAME", hide = true, value_parser = values::own_costs)]
    costs: Option<Arc<dyn OwnCosts>>,
    /// Show the critical path and the collectives too.
    #[arg(long)]
    explain: bool,
}

#[derive(Debug, Args)]
pub(super) struct Hardware {
    #[command(subcommand)]
    action: HardwareAction,
    /// Catalogue file with further devices, nodes and clusters; may be given several times.
    #[arg(long, value_name = "FILE", global = true)]
    hardware: Vec<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum HardwareAction {
    /// List devices, node types or clusters.
    List {
        /// What to list [default: everything].
        what: Option<What>,
    },
    /// Show one entry with the source of every figure.
    Show {
        /// A device, node type or cluster, or a catalogue file that defines a cluster.
        name: String,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum What {
    Devices,
    Nodes,
    Clusters,
}

#[derive(Debug, Args)]
#[group(id = "forms", required = true, multiple = true, args = ["graph", "perfetto"])]
pub(super) struct Export {
    #[command(flatten)]
    traces: Traces,
    /// Write the graph of the lowest rank (of a trace: its steady step) as a Parquet file.
    #[arg(long, value_name = "FILE")]
    graph: Option<PathBuf>,
    /// Write each rank's last step, recorded and simulated side by side, for ui.perfetto.dev. Of
    /// a graph, what has durations.
    #[arg(long, value_name = "FILE")]
    perfetto: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct Validate {
    /// Directory with traces/, lab/ and measured/ [default: $FORETRAIN_DATA, else ../shared/data].
    #[arg(long, value_name = "DIR", env = "FORETRAIN_DATA", hide_env = true)]
    data: Option<PathBuf>,
    /// Run this set only; may be given several times.
    #[arg(long, value_name = "NAME")]
    set: Vec<String>,
    /// Further recordings to score, each directory on its own.
    #[arg(long, value_name = "DIR")]
    extra: Vec<PathBuf>,
    /// List every prediction beside its measurement.
    #[arg(long)]
    rows: bool,
    /// Write the report as Markdown too.
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
}

impl From<Verb> for Command {
    fn from(verb: Verb) -> Self {
        match verb {
            Verb::Inspect(args) => Self::Inspect(inspect::Options {
                source: args.traces.into(),
                collective: args.collective,
            }),
            Verb::Predict(args) => Self::Predict(Box::new((*args).into())),
            Verb::Whatif(args) => Self::WhatIf(Box::new((*args).into())),
            Verb::Scaling(args) => Self::Scaling(Box::new((*args).into())),
            Verb::Varuna(args) => Self::Varuna(Box::new(args.into())),
            Verb::Estimate(args) => Self::Estimate(Box::new((*args).into())),
            Verb::Plan(args) => Self::Plan((*args).into()),
            Verb::Fleet(args) => Self::Fleet(Box::new(args.into())),
            Verb::Collectives(args) => Self::Collectives(Box::new((*args).into())),
            Verb::Calibrate(args) => args.into(),
            Verb::Capture(args) => (*args).into(),
            Verb::Hardware(args) => Self::Hardware(args.into()),
            Verb::Export(args) => Self::Export(export::Options {
                source: args.traces.into(),
                graph: args.graph,
                perfetto: args.perfetto,
            }),
            Verb::Validate(args) => Self::Validate(validate::Options {
                data: args.data,
                sets: (!args.set.is_empty()).then_some(args.set),
                extra: args.extra,
                rows: args.rows,
                write: args.write,
            }),
            Verb::Completions { shell } => Self::Print(super::completions(shell)),
            Verb::Models { model, sequence } => Self::Models { model, sequence },
            Verb::Strategies { name } => Self::Strategies(name),
            Verb::Schema { answer } => Self::Schema(answer),
            Verb::Peer { port, token } => Self::Peer { port, token },
            Verb::Rank { coordinator, token, machine } => {
                Self::Rank { coordinator, token, machine }
            }
        }
    }
}

impl From<Predict> for predict::Options {
    fn from(args: Predict) -> Self {
        Self {
            source: args.traces.into(),
            on: args.on,
            recorded_on: args.recorded_on,
            unprofiled_step: args.step_time,
            gpus: args.gpus,
            step_spread: args.step_spread,
            replica_batch: args.replica_batch,
            strategy: args.strategy,
            primitives: args.primitives,
            bucket_cap: args.bucket_cap_mb.map(|mib| Bytes::from_f64(mib * 1024.0 * 1024.0)),
            gradient_bytes: args.gradient_bytes,
            bucket_copies: args.bucket_copies.unwrap_or_default(),
            buffer_bytes: args.buffer_bytes,
            cores: args.cores,
            roles: args.roles,
            hardware: args.hardware,
            interference: args.interference,
            costs: args.costs,
            explain: args.explain,
        }
    }
}

impl From<Hardware> for hardware::Options {
    fn from(args: Hardware) -> Self {
        let action = match args.action {
            HardwareAction::Show { name } => hardware::Action::Show(name),
            HardwareAction::List { what: None } => hardware::Action::List(Listed::All),
            HardwareAction::List { what: Some(What::Devices) } => {
                hardware::Action::List(Listed::Devices)
            }
            HardwareAction::List { what: Some(What::Nodes) } => {
                hardware::Action::List(Listed::Nodes)
            }
            HardwareAction::List { what: Some(What::Clusters) } => {
                hardware::Action::List(Listed::Clusters)
            }
        };
        Self { action, files: args.hardware }
    }
}
