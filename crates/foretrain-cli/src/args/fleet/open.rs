//! The arguments of `fleet open`.

use std::path::PathBuf;

use clap::Args;
use foretrain::plan::{Optimiser, Precision};
use foretrain::predict::jobs::open::Terms;

use super::machine::Machine;
use super::table::Said;
use crate::args::planning;
use crate::commands::fleet::Source;
use crate::commands::fleet::open::Options;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  foretrain fleet open examples/fleet/features.csv --row ads-small --out ads.graph
  foretrain predict ads.graph --on dgx-1-v100 --gpus 8,64")]
pub(super) struct OpenArgs {
    /// Table of jobs: CSV, JSON, JSON lines (also .gz or .zst), Parquet.
    #[arg(value_name = "TABLE")]
    table: PathBuf,
    /// The job: what its table calls it, or the number of its row.
    #[arg(long, value_name = "ID")]
    row: String,
    /// Write the graph of its step, which predict, whatif and inspect read. What it holds goes to
    /// standard output.
    #[arg(id = "out", short = 'o', long = "out", value_name = "FILE", help_heading = "Output")]
    graph: Option<PathBuf>,
    /// What updates the parameters: adam, momentum or sgd; gradients of jobs that exchange nothing
    /// follow from weights with its state.
    #[arg(long, value_name = "NAME", default_value = "adam", value_parser = planning::optimiser)]
    optimizer: Optimiser,
    /// Number formats of a model that takes the place of missing features.
    #[arg(long, value_name = "TYPE", default_value = "bf16", value_parser = planning::precision)]
    precision: Precision,
    #[command(flatten)]
    said: Said,
    #[command(flatten)]
    machine: Machine,
}

impl From<OpenArgs> for Options {
    fn from(args: OpenArgs) -> Self {
        let method = args.machine.method(None);
        Self {
            source: Source { files: vec![args.table], said: args.said.into() },
            row: args.row,
            graph: args.graph,
            terms: Terms {
                hardware: method.hardware,
                traffic_counts: method.traffic,
                optimiser: args.optimizer,
                precision: args.precision,
            },
        }
    }
}
