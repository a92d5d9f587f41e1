//! The arguments of `fleet edge`.

use std::path::PathBuf;

use clap::Args;
use foretrain::core::Bytes;

use crate::args::values;
use crate::commands::fleet::edge::Options;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  foretrain fleet edge examples/fleet/edge.toml
  foretrain fleet edge examples/fleet/edge.toml --memory 2GiB --memory 4GiB")]
pub(super) struct Edge {
    /// Models with what they take to load and to run, their streams, and which share layers, in TOML
    /// (see docs/layer-sharing.md).
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Memory of the device, as in 2GiB; may be given several times [default: the least that any
    /// batch fits in, half way and three quarters of the way to what keeps all models in memory,
    /// and that].
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    memory: Vec<Bytes>,
}

impl From<Edge> for Options {
    fn from(args: Edge) -> Self {
        Self { file: args.file, memory: args.memory }
    }
}
