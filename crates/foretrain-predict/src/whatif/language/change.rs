//! What a what-if may change.

use std::fmt;

use foretrain_core::{Bytes, DType, Nanos};
use foretrain_graph::{Glob, Query};

/// One change to a job. [`parse`](Change::parse) reads it from text; its text form reads back.
///
/// What each does, and by which rule, is in `docs/whatif.md`.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// `kernel("*gemm*") x0.5`: the work of the nodes, times a factor.
    Scale(Query, f64),
    /// `kernel("*softmax*") = 20us`: the work of each of the nodes.
    Set(Query, Nanos),
    /// `remove kernel("*copy*")`: the nodes take no time, and communication meets nobody.
    Remove(Query),
    /// `bandwidth x2`: of all links, between and within nodes.
    Bandwidth(f64),
    /// `nic x4`: bandwidth of the NICs.
    Nic(f64),
    /// `latency x0.5`: of communication, launch and hops.
    Latency(f64),
    /// `cluster=NAME`: another machine, by name or by the file that defines it.
    Cluster(String),
    /// `device=h100-sxm`: another device in the same nodes.
    Device(String),
    /// `buckets=50MiB`: cap of all gradient buckets.
    Buckets(Bytes),
    /// `strategy=fsdp`: how replicas are synchronised, as text of the pipeline builder.
    Strategy(String),
    /// `batch x2`: samples per replica and step.
    Batch(f64),
    /// `precision=bf16`: element type of computation and gradients that ran in a wider one.
    Precision(DType),
    /// `loader-workers=0->8`: worker processes of the data loader, recorded (if said) and asked
    /// for.
    LoaderWorkers(Option<u32>, u32),
    /// `input x0`: waiting for input data.
    Input(f64),
    /// `gpus=64`: job size.
    Gpus(u32),
    /// `slow rank 3 x1.3`: device work of one rank.
    SlowRank(u32, f64),
    /// `no sync(*Synchronize*)`: waits of the host, or (`event-wait`) of streams for each other.
    NoSync(Glob),
    /// `fuse`: chains of kernels that the memory limits become one kernel each.
    Fuse,
    /// `perfect overlap`: computation never waits for communication of its own step.
    PerfectOverlap,
    /// `no communication`: none at all.
    NoCommunication,
    /// `no launch overhead`: host work between launches takes no time, as under CUDA graphs.
    NoLaunchOverhead,
    /// `faster host x2`: host work runs that many times as fast.
    FasterHost(f64),
    /// `fastest rank everywhere`: ranks that do the same work do it in the time of the fastest.
    FastestRank,
}

/// The changes without a value, by their words.
pub(super) const PLAIN: [(&str, Change); 6] = [
    ("fuse", Change::Fuse),
    ("perfect overlap", Change::PerfectOverlap),
    ("no communication", Change::NoCommunication),
    ("no launch overhead", Change::NoLaunchOverhead),
    ("no input wait", Change::Input(0.0)),
    ("fastest rank everywhere", Change::FastestRank),
];

/// Makes a change of a factor.
type ByFactor = fn(f64) -> Change;

/// The changes by a factor.
pub(super) const FACTORS: [(&str, ByFactor); 6] = [
    ("bandwidth", Change::Bandwidth),
    ("nic", Change::Nic),
    ("latency", Change::Latency),
    ("batch", Change::Batch),
    ("input", Change::Input),
    ("faster host", Change::FasterHost),
];

/// The changes by a value behind an equals sign.
pub(super) const KEYS: [&str; 7] =
    ["cluster", "device", "buckets", "strategy", "precision", "loader-workers", "gpus"];

const TIMES: [(u64, &str); 4] = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")];
const SIZES: [(u64, &str); 4] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B")];

/// A quantity in the largest unit of which it is a whole number.
fn whole(quantity: u64, units: &[(u64, &str)]) -> String {
    let fits = |(size, _): &&(u64, &str)| quantity.is_multiple_of(*size);
    let (size, unit) = units.iter().find(fits).copied().unwrap_or((1, ""));
    format!("{}{unit}", quantity / size)
}

impl Change {
    /// Whether it says how something is, so that twice is as good as once.
    pub(super) const fn is_state(&self) -> bool {
        matches!(
            self,
            Self::Precision(_)
                | Self::LoaderWorkers(..)
                | Self::Fuse
                | Self::PerfectOverlap
                | Self::NoCommunication
                | Self::NoLaunchOverhead
                | Self::FastestRank
        )
    }

    /// What changes by a factor, and the factor, of a change that is no query.
    pub(super) const fn factor(&self) -> Option<(&'static str, f64)> {
        Some(match *self {
            Self::Bandwidth(factor) => ("bandwidth", factor),
            Self::Nic(factor) => ("nic", factor),
            Self::Latency(factor) => ("latency", factor),
            Self::Batch(factor) => ("batch", factor),
            Self::Input(factor) => ("input", factor),
            Self::FasterHost(factor) => ("faster host", factor),
            _ => return None,
        })
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scale(nodes, factor) => write!(f, "{nodes} x{factor}"),
            Self::Set(nodes, time) => write!(f, "{nodes} = {}", whole(time.nanos() as u64, &TIMES)),
            Self::Remove(nodes) => write!(f, "remove {nodes}"),
            Self::Bandwidth(factor) => write!(f, "bandwidth x{factor}"),
            Self::Nic(factor) => write!(f, "nic x{factor}"),
            Self::Latency(factor) => write!(f, "latency x{factor}"),
            Self::Cluster(name) => write!(f, "cluster={name}"),
            Self::Device(name) => write!(f, "device={name}"),
            Self::Buckets(cap) => write!(f, "buckets={}", whole(cap.get(), &SIZES)),
            Self::Strategy(passes) => write!(f, "strategy={passes}"),
            Self::Batch(factor) => write!(f, "batch x{factor}"),
            Self::Precision(dtype) => write!(f, "precision={dtype}"),
            Self::LoaderWorkers(None, to) => write!(f, "loader-workers={to}"),
            Self::LoaderWorkers(Some(from), to) => write!(f, "loader-workers={from}->{to}"),
            Self::Input(factor) => write!(f, "input x{factor}"),
            Self::Gpus(count) => write!(f, "gpus={count}"),
            Self::SlowRank(rank, factor) => write!(f, "slow rank {rank} x{factor}"),
            Self::NoSync(glob) => write!(f, "no sync({})", glob.as_str()),
            Self::Fuse => f.write_str("fuse"),
            Self::PerfectOverlap => f.write_str("perfect overlap"),
            Self::NoCommunication => f.write_str("no communication"),
            Self::NoLaunchOverhead => f.write_str("no launch overhead"),
            Self::FasterHost(factor) => write!(f, "faster host x{factor}"),
            Self::FastestRank => f.write_str("fastest rank everywhere"),
        }
    }
}
