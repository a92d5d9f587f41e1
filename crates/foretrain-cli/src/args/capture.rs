//! The arguments of `capture`.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use foretrain::core::{Bytes, Nanos};
use foretrain::measure::RingOperation;

use super::values;
use crate::commands::Command;
use crate::commands::capture::{Comm as Asked, How, Wanted};

#[derive(Debug, Args)]
pub(super) struct Capture {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Measure collectives on this machine, or between several, for `calibrate collectives`.
    Comm(Comm),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Without --backend the processes are this program's own, in rings over TCP: no Python is needed. With
it, the library that trains is measured by `python3 -m foretrain.capture.comm`, which does more: see
docs/capture-comm.md.

Examples:
  foretrain capture comm --procs 2,4 -o bundle
  foretrain calibrate collectives bundle/comm.csv --on CLUSTER -o my-cluster.toml
  foretrain capture comm --backend gloo --procs 2 --sizes 4K,64K,1M,16M -o bundle
  foretrain capture comm --listen 10.0.0.1:7000 --machines 2 --procs 2,4 -o bundle
  foretrain capture comm --connect 10.0.0.1:7000")]
struct Comm {
    /// Numbers of processes, as in 2,4; the largest is spread evenly over the machines.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "2", value_parser = processes)]
    procs: Vec<u32>,
    /// Sizes to measure, as in 64KiB,1MiB or, by doubling, 1K..64M [default: 1K to 64M by fours].
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = values::size_range)]
    sizes: Vec<Vec<Bytes>>,
    /// Operations: all_reduce, reduce_scatter, all_gather, broadcast, sendrecv [default: all].
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = operation)]
    ops: Vec<RingOperation>,
    /// About how long to measure.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = values::time)]
    budget: Nanos,
    /// Measure this library of PyTorch (or of mpi4py) instead of plain processes.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["listen", "connect"])]
    backend: Option<Backend>,
    /// The Python to do so with [default: python3 on the path].
    #[arg(long, value_name = "PATH", requires = "backend")]
    python: Option<PathBuf>,
    /// Let other machines take part, which connect to this address of this one. Use it among
    /// machines that you trust: whoever reaches the port first takes part.
    #[arg(long, value_name = "HOST:PORT", value_parser = address, requires = "machines")]
    listen: Option<SocketAddr>,
    /// Machines with this one.
    #[arg(long, value_name = "N", requires = "listen", value_parser = values::nodes)]
    machines: Option<u32>,
    /// Take part in what is measured at this address of another machine.
    #[arg(long, value_name = "HOST:PORT", value_parser = address, conflicts_with_all = ["listen", "sizes", "ops", "out"])]
    connect: Option<SocketAddr>,
    /// Write comm.csv to this directory.
    #[arg(
        id = "out",
        short = 'o',
        long = "out",
        value_name = "DIR",
        default_value = ".",
        help_heading = "Output"
    )]
    directory: PathBuf,
    /// Replace the file if there is one.
    #[arg(long, help_heading = "Output")]
    force: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Backend {
    /// NVIDIA's library, or AMD's RCCL.
    Nccl,
    /// The usual one on CPUs.
    Gloo,
    /// Of a PyTorch that was built with it, or by mpi4py.
    Mpi,
}

fn processes(text: &str) -> Result<u32, String> {
    let count = values::count(text, "processes")?;
    if count < 2 { Err("one process has nobody to communicate with".into()) } else { Ok(count) }
}

fn operation(text: &str) -> Result<RingOperation, String> {
    RingOperation::parse(text).ok_or_else(|| {
        let names = RingOperation::ALL.map(RingOperation::as_str);
        format!("expected one of {}", names.join(", "))
    })
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let found = text.to_socket_addrs().map_err(|error| format!("{error}; as in 10.0.0.1:7000"))?;
    let mut found: Vec<SocketAddr> = found.collect();
    found.sort_by_key(SocketAddr::is_ipv6);
    found.into_iter().next().ok_or_else(|| "it names no address, as in 10.0.0.1:7000".into())
}

impl From<Capture> for Command {
    fn from(args: Capture) -> Self {
        let What::Comm(args) = args.what;
        if let Some(address) = args.connect {
            return Self::CaptureComm(Asked::Help(address));
        }
        let how = match args.backend {
            Some(backend) => {
                let value = backend.to_possible_value();
                let backend = value.map_or_else(String::new, |value| value.get_name().to_owned());
                How::Library { backend, python: args.python }
            }
            None => How::Rings { machines: args.listen.zip(args.machines) },
        };
        let wanted = Wanted {
            procs: super::once(vec![args.procs]),
            sizes: super::once(args.sizes),
            operations: args.ops,
            budget: Duration::from_nanos(u64::try_from(args.budget.nanos()).unwrap_or(0)),
            directory: args.directory,
            force: args.force,
        };
        Self::CaptureComm(Asked::Measure { how, wanted })
    }
}
