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
