//! The arguments of `calibrate primitives`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use foretrain::core::{Bytes, Nanos};
use foretrain::measure::MeasureOptions;

use super::values;
use crate::commands::Command;
use crate::commands::primitives::{Options, Origin};

#[derive(Debug, Args)]
#[command(after_help = "\
A table is CSV with the columns operation (send, receive, one-way, aggregate, copy, encode SCHEME,
decode SCHEME), bytes and time_us or time_ns.

Examples:
  foretrain calibrate primitives -o primitives.toml
  foretrain calibrate primitives --sizes 4K,64K,1M,16M --budget 30s --raw times.csv
  foretrain calibrate primitives gpu-times.csv -o primitives.toml")]
pub(super) struct Primitives {
    /// Tables of measured times; without any, this machine is measured.
    #[arg(value_name = "TABLE", conflicts_with_all = ["sizes", "budget", "raw"])]
    tables: Vec<PathBuf>,
    /// Sizes to measure, as in 64KiB,1MiB or, by doubling, 1K..64M [default: 1K to 64M by fours].
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = values::size_range)]
    sizes: Vec<Vec<Bytes>>,
    /// About how long to measure.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = values::time)]
    budget: Nanos,
    /// Write every measured time to this table.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    raw: Option<PathBuf>,
    /// Write the primitives to this file. The report goes to standard output.
    #[arg(id = "out", short = 'o', long = "out", value_name = "FILE", help_heading = "Output")]
    keep: Option<PathBuf>,
    /// Replace files if there are such.
    #[arg(long, help_heading = "Output")]
    force: bool,
}

/// 1 KiB to 64 MiB.
fn usual_sizes() -> Vec<Bytes> {
    (10..=26).step_by(2).map(|log| Bytes::new(1 << log)).collect()
}

impl From<Primitives> for Command {
    fn from(args: Primitives) -> Self {
        let sizes = args.sizes.concat();
        let origin = if args.tables.is_empty() {
            Origin::Measured(MeasureOptions {
                sizes: if sizes.is_empty() { usual_sizes() } else { sizes },
                budget: Duration::from_nanos(u64::try_from(args.budget.nanos()).unwrap_or(0)),
            })
        } else {
            Origin::Tables(args.tables)
        };
        Self::CalibratePrimitives(Options {
            origin,
            raw: args.raw,
            keep: args.keep,
            force: args.force,
        })
    }
}
