//! The call, the answer, and the way from one to the other.

use foretrain_core::{Bandwidth, Bytes, DType, Estimate, Evidence, EvidenceKind, Nanos};
use foretrain_graph::CollectiveKind;
use serde::Serialize;

use super::conventions::{algorithm_bandwidth, bus_factor};
use super::fabric::{Fabric, Library};
use super::{host, nccl};
use crate::nccl_tuner::Protocol;

/// A collective to be timed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CollectiveCall {
    /// Which.
    pub kind: CollectiveKind,
    /// The larger of a rank's input and output buffer: an all-gather's output, a reduce-scatter's
    /// input, all that a rank sends in an all-to-all.
    pub bytes: Bytes,
    /// Element type.
    pub dtype: Option<DType>,
}

impl CollectiveCall {
    /// A call whose element type does not matter.
    pub const fn new(kind: CollectiveKind, bytes: Bytes) -> Self {
        Self { kind, bytes, dtype: None }
    }
}

/// How the data goes round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// One rank: nothing to do.
    Nothing,
    /// A ring over all ranks.
    Ring,
    /// A tree between nodes, a chain within.
    Tree,
    /// NVLink SHARP in the switch of one node.
    Nvls,
    /// NVLink SHARP within nodes, a tree between them.
    NvlsTree,
    /// Parallel trees of shards, one rank per node.
    Pat,
    /// Every rank with every other.
    Pairwise,
    /// One sender, one receiver.
    PointToPoint,
    /// A binomial tree over all ranks.
    Binomial,
}

impl Method {
    /// For tables.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Nothing => "-",
            Self::Ring => "Ring",
            Self::Tree => "Tree",
            Self::Nvls => "NVLS",
            Self::NvlsTree => "NVLSTree",
            Self::Pat => "PAT",
            Self::Pairwise => "pairwise",
            Self::PointToPoint => "p2p",
            Self::Binomial => "binomial",
        }
    }
}

/// The parts of a collective's time; they add up to it, give or take a rounding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Terms {
    /// From the call to the first byte.
    pub launch: Nanos,
    /// Latency of the hops.
    pub propagation: Nanos,
    /// Bytes over the narrowest link.
    pub transfer: Nanos,
    /// Arithmetic that the transfer does not hide.
    pub reduction: Nanos,
}

/// A collective's time and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CollectiveTime {
    /// From when the last rank arrives until the last rank has its result.
    pub time: Estimate<Nanos>,
    /// The fastest method.
    pub algorithm: Method,
    /// Its protocol, with NCCL and RCCL.
    pub protocol: Option<Protocol>,
    /// The parts.
    pub terms: Terms,
    /// As nccl-tests defines it.
    pub bus_bandwidth: Bandwidth,
    /// Size over time.
    pub algorithm_bandwidth: Bandwidth,
    /// What the time rests on.
    pub evidence: Vec<Evidence>,
}

/// One way to run a call, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) method: Method,
    pub(super) protocol: Option<Protocol>,
    pub(super) launch: f64,
    pub(super) propagation: f64,
    pub(super) transfer: f64,
    pub(super) reduction: f64,
    /// Relative spread of the transfer.
    pub(super) spread: f64,
    pub(super) source: &'static str,
}

impl Candidate {
    pub(super) fn total(&self) -> f64 {
        self.launch + self.propagation + self.transfer + self.reduction
    }
}

/// Bytes over a rate in ns; infinite for a rate of zero.
pub(super) fn transfer_ns(bytes: f64, rate: f64) -> f64 {
    match rate {
        _ if bytes <= 0.0 => 0.0,
        rate if rate > 0.0 => bytes / rate * 1e9,
        _ => f64::INFINITY,
    }
}

/// Relative spread of launch and hops: drivers, clocks and placement move them by a third.
const LATENCY_SPREAD: f64 = 0.35;
/// Relative spread for a collective whose kind the recording does not tell.
const UNKNOWN_SPREAD: f64 = 0.7;

/// How long `call` takes on `fabric`.
///
/// The time is that of the fastest algorithm and protocol the library has for it, on links of
/// which the ranks' neighbours get their full share. One rank needs no time; zero bytes still pay
/// launch and hops. A fabric without bandwidth between its ranks gives [`Nanos::MAX`].
pub fn collective_time(call: &CollectiveCall, fabric: &Fabric) -> CollectiveTime {
    if fabric.ranks <= 1 {
        return nothing();
    }
    let best = match fabric.library {
        Library::Nccl(_) | Library::Rccl | Library::Vendor => nccl::fastest(call, fabric),
        Library::Gloo | Library::Mpi => host::fastest(call, fabric),
    };
    let time = clamp(best.total());
    let spread = if call.kind == CollectiveKind::Unknown { UNKNOWN_SPREAD } else { spread(&best) };
    let algorithm_bandwidth = algorithm_bandwidth(call.bytes, time);
    let known = call.kind != CollectiveKind::Unknown;
    let kind = if known { EvidenceKind::Inferred } else { EvidenceKind::Assumed };
    let what = if known { "collective time" } else { "collective of unknown kind, as all-reduce" };
    CollectiveTime {
        time: Estimate::with_relative_spread(time, spread),
        algorithm: best.method,
        protocol: best.protocol,
        terms: Terms {
            launch: clamp(best.launch),
            propagation: clamp(best.propagation),
            transfer: clamp(best.transfer),
            reduction: clamp(best.reduction),
        },
        bus_bandwidth: algorithm_bandwidth * bus_factor(call.kind, fabric.ranks),
        algorithm_bandwidth,
        evidence: vec![Evidence::new(kind, what, best.source, spread)],
    }
}

/// Latency-bound times are less sure than bandwidth-bound ones: each part brings its own spread.
fn spread(best: &Candidate) -> f64 {
    let total = best.total();
    if !total.is_finite() || total <= 0.0 {
        return LATENCY_SPREAD;
    }
    let latency = ((best.launch + best.propagation) / total).clamp(0.0, 1.0);
    latency * LATENCY_SPREAD + (1.0 - latency) * best.spread
}

fn nothing() -> CollectiveTime {
    CollectiveTime {
        time: Estimate::exact(Nanos::ZERO),
        algorithm: Method::Nothing,
        protocol: None,
        terms: Terms::default(),
        bus_bandwidth: Bandwidth::ZERO,
        algorithm_bandwidth: Bandwidth::ZERO,
        evidence: Vec::new(),
    }
}

fn clamp(nanos: f64) -> Nanos {
    if nanos.is_finite() { Nanos::from_nanos_f64(nanos) } else { Nanos::MAX }
}
