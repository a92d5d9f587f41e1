//! The arguments of `calibrate`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use foretrain::graph::CollectiveKind;
use foretrain::predict::collectives::Layout;
use foretrain::predict::collectives::calibrate::CalibrateOptions;

use super::primitives::Primitives;
use super::values;
use crate::commands::Command;
use crate::commands::calibrate::Options;
use crate::commands::{interference, kernels};

#[derive(Debug, Args)]
pub(super) struct Calibrate {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Fit the collective model to logs of nccl-tests or rccl-tests from a cluster.
    Collectives(Box<Collectives>),
    /// Measure on this machine what sending, receiving, summing, copying and compressing gradients
    /// costs, or take measured times from tables.
    Primitives(Primitives),
    /// Fit how computation and communication, or jobs on one device, slow each other down.
    Interference(Interference),
    /// Bring the shipped kernel times in line with a sweep of matrix products or a recording.
    Kernels(Kernels),
}

#[derive(Debug, Args)]
#[command(after_help = "\
A sweep is a table with titles or one JSON object per line: m, n, k, dtype and a time (time_us,
latency_ms, ...) or a rate (tflops).

Examples:
  foretrain calibrate kernels sweep.csv --device h100-sxm5-80gb -o kernels.toml
  foretrain calibrate kernels rank0.pt.trace.json.gz -o kernels.toml")]
struct Kernels {
    /// A sweep (.csv, .tsv, .txt, .jsonl, .ndjson), or a profiler trace with recorded shapes.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The device that was measured, if the file does not tell (see `foretrain hardware list`).
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// Take only rows of a sweep whose device, GPU or system is called so.
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Write the corrections to this file. The report goes to standard output.
    #[arg(id = "out", short = 'o', long = "out", value_name = "FILE", help_heading = "Output")]
    keep: Option<PathBuf>,
    /// Replace the file if there is one.
    #[arg(long, requires = "out", help_heading = "Output")]
    force: bool,
    /// Catalogue file with further devices, nodes and clusters; may be given several times.
    #[arg(long, value_name = "FILE")]
    hardware: Vec<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  foretrain calibrate interference runs/*.json.gz -o ours.json
  foretrain calibrate interference bundle/interference.csv -o ours.json
  foretrain predict rank0.json.gz --on dgx-a100 --gpus 8,64 --interference ours.json
  foretrain calibrate interference --pairs pairs.csv --alone steps.csv -o jobs.json")]
struct Interference {
    /// Profiler traces of at least three steps each, in which kernels run both alone and beside
    /// communication, or tables of `python -m foretrain.capture.comm`. Each file is a recording of
    /// its own.
    #[arg(value_name = "TRACE", required_unless_present = "pairs", conflicts_with = "pairs")]
    traces: Vec<PathBuf>,
    /// A table of pairs of jobs that shared a device instead (see docs/interference.md).
    #[arg(long, value_name = "FILE", requires = "alone")]
    pairs: Option<PathBuf>,
    /// Step times of those jobs alone: a table, or Gavel's throughputs as JSON.
    #[arg(long, value_name = "FILE", requires = "pairs")]
    alone: Option<PathBuf>,
    /// Take only rows of pairs whose source begins with this.
    #[arg(
        long,
        value_name = "NAME",
        requires = "pairs",
        default_value = "",
        hide_default_value = true
    )]
    source: String,
    /// Licence of what is fitted to, kept in the file.
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    licence: String,
    /// Write the model to this file. The report goes to standard output.
    #[arg(id = "out", short = 'o', long = "out", value_name = "FILE", help_heading = "Output")]
    keep: Option<PathBuf>,
    /// Replace the file if there is one.
    #[arg(long, requires = "out", help_heading = "Output")]
    force: bool,
    /// Catalogue file with further devices, nodes and clusters; may be given several times.
    #[arg(long, value_name = "FILE")]
    hardware: Vec<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  foretrain calibrate collectives one-node.log two-nodes.log --on dgx-h100 -o my-cluster.toml
  foretrain calibrate collectives logs/ --on our.toml --name our-room -o our-room.toml
  foretrain predict traces/ --on my-cluster.toml --gpus 16,64,256")]
struct Collectives {
    /// Logs of one cluster: files, directories or patterns. One node is enough, two tell of the
    /// network, more of how it scales.
    #[arg(value_name = "LOG", required = true)]
    logs: Vec<PathBuf>,
    /// Cluster or node type that the logs are from (see `foretrain hardware list`), or a catalogue
    /// file that defines it.
    #[arg(long, value_name = "CLUSTER")]
    on: String,
    /// Write the calibrated cluster to this file, for --on of other verbs. The report goes to
    /// standard output.
    #[arg(id = "out", short = 'o', long = "out", value_name = "FILE", help_heading = "Output")]
    keep: Option<PathBuf>,
    /// Replace the file if there is one.
    #[arg(long, requires = "out", help_heading = "Output")]
    force: bool,
    /// Name of the calibrated cluster [default: my-BASE].
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The operation of logs that do not name theirs, as in all-reduce.
    #[arg(long, value_name = "KIND", value_parser = values::collective)]
    collective: Option<CollectiveKind>,
    /// Ranks on each node in logs that do not name their hosts [default: as many as it has GPUs].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    ranks_per_node: Option<u32>,
    /// Catalogue file with further devices, nodes and clusters; may be given several times.
    #[arg(long, value_name = "FILE")]
    hardware: Vec<PathBuf>,
}

impl From<Calibrate> for Command {
    fn from(args: Calibrate) -> Self {
        match args.what {
            What::Collectives(args) => (*args).into(),
            What::Primitives(args) => args.into(),
            What::Interference(args) => Self::CalibrateInterference(Box::new(args.into())),
            What::Kernels(args) => Self::CalibrateKernels(args.into()),
        }
    }
}

impl From<Collectives> for Command {
    fn from(args: Collectives) -> Self {
        Self::CalibrateCollectives(Box::new(Options {
            on: args.on,
            logs: args.logs,
            kind: args.collective,
            asked: CalibrateOptions {
                name: args.name,
                layout: args.ranks_per_node.map_or(Layout::Packed, Layout::PerNode),
            },
            keep: args.keep,
            force: args.force,
            hardware: args.hardware,
        }))
    }
}

impl From<Interference> for interference::Options {
    fn from(args: Interference) -> Self {
        let from = match (args.pairs, args.alone) {
            (Some(pairs), Some(alone)) => {
                interference::From::Pairs { pairs, alone, source: args.source }
            }
            _ => interference::From::Traces(args.traces),
        };
        Self {
            from,
            licence: args.licence,
            keep: args.keep,
            force: args.force,
            hardware: args.hardware,
        }
    }
}

impl From<Kernels> for kernels::Options {
    fn from(args: Kernels) -> Self {
        Self {
            file: args.file,
            device: args.device,
            only: args.only,
            keep: args.keep,
            force: args.force,
            hardware: args.hardware,
        }
    }
}
