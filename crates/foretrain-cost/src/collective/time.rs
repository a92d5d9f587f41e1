//! The call, the answer, and the way from one to the other.

use foretrain_core::{Bandwidth, Bytes, DType, Estimate, Evidence, EvidenceKind, Nanos};
use foretrain_graph::CollectiveKind;
use foretrain_hardware::collectives::Prior;
use serde::Serialize;

use super::bound::lower_bound;
use super::candidate::{Candidate, Limit};
use super::conventions::{algorithm_bandwidth, bus_factor};
use super::fabric::{Fabric, Library};
use super::field::Asked;
use super::knowledge::{Calibrated, Known};
use super::nccl::Offers;
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
    /// Reduction in the switches between nodes (SHARP).
    CollNet,
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
    /// Those that `NCCL_ALGO` can name, as NCCL spells them.
    pub const NAMED: [Self; 6] =
        [Self::Ring, Self::Tree, Self::Nvls, Self::NvlsTree, Self::CollNet, Self::Pat];

    /// For tables.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Nothing => "-",
            Self::Ring => "Ring",
            Self::Tree => "Tree",
            Self::Nvls => "NVLS",
            Self::NvlsTree => "NVLSTree",
            Self::CollNet => "CollNet",
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
    /// The method that the library takes.
    pub algorithm: Method,
    /// Its protocol, with NCCL and RCCL.
    pub protocol: Option<Protocol>,
    /// The parts.
    pub terms: Terms,
    /// What limits the transfer.
    pub limit: Limit,
    /// As nccl-tests defines it.
    pub bus_bandwidth: Bandwidth,
    /// Size over time.
    pub algorithm_bandwidth: Bandwidth,
    /// What the time rests on.
    pub evidence: Vec<Evidence>,
}

/// Relative spread for a collective whose kind the recording does not tell.
const UNKNOWN_SPREAD: f64 = 0.7;
/// What the first doubling of ranks beyond those measured adds to the relative spread; it grows
/// with the root of the doublings, as independent errors do.
const SPREAD_PER_DOUBLED_RANKS: f64 = 0.08;
/// What each doubling of size beyond those measured adds.
const SPREAD_PER_DOUBLED_SIZE: f64 = 0.02;

/// How long `call` takes on `fabric`.
///
/// The time is that of the algorithm and protocol that the library picks for it, on links of
/// which the ranks' neighbours get their full share; on a calibrated fabric times how far the
/// measurements nearby lie from the model. One rank needs no time; zero bytes still pay launch and
/// hops. A fabric without bandwidth between its ranks gives [`Nanos::MAX`].
pub fn collective_time(call: &CollectiveCall, fabric: &Fabric) -> CollectiveTime {
    if fabric.ranks <= 1 {
        return nothing();
    }
    let (prior, own) = (fabric.prior(), fabric.calibrated.as_deref());
    let best = best(call, fabric, fabric.known());
    let found = Found::new(call, fabric, (prior, own), &best);
    let part = |ns: f64| clamp(ns * found.factor);
    let time = part(best.total());
    let algorithm_bandwidth = algorithm_bandwidth(call.bytes, time);
    CollectiveTime {
        time: above(Estimate::with_relative_spread(time, found.spread), lower_bound(call, fabric)),
        algorithm: best.method,
        protocol: best.protocol,
        terms: Terms {
            launch: part(best.launch),
            propagation: part(best.propagation),
            transfer: part(best.transfer),
            reduction: part(best.reduction),
        },
        limit: best.limit,
        bus_bandwidth: algorithm_bandwidth * bus_factor(call.kind, fabric.ranks),
        algorithm_bandwidth,
        evidence: vec![found.evidence],
    }
}

/// Payload rates of the catalogue over what wires carry at most.
const PAYLOAD_OF_WIRE: f64 = 0.85;

/// No end of an interval promises what the wires cannot carry; `bound` is for payload rates.
fn above(time: Estimate<Nanos>, bound: Nanos) -> Estimate<Nanos> {
    let wires = bound.scale(PAYLOAD_OF_WIRE);
    Estimate { low: time.low.max(wires.min(time.value)), ..time }
}

/// The candidate that the library takes.
pub(crate) fn best(call: &CollectiveCall, fabric: &Fabric, known: Known<'_>) -> Candidate {
    let offers = candidates(call, fabric, known);
    // Every kind has at least one candidate.
    offers.best().copied().unwrap_or_else(|| Candidate::new(Method::Nothing, None))
}

/// What the library takes one of.
pub(crate) fn candidates(call: &CollectiveCall, fabric: &Fabric, known: Known<'_>) -> Offers {
    match fabric.library {
        Library::Nccl(_) | Library::Rccl | Library::Vendor => nccl::offers(call, fabric, known),
        Library::Gloo | Library::Mpi => Offers::one(host::fastest(call, fabric, known.values)),
    }
}

/// What the measurements say of a candidate's time.
struct Found {
    factor: f64,
    spread: f64,
    evidence: Evidence,
}

impl Found {
    fn new(
        call: &CollectiveCall,
        fabric: &Fabric,
        (prior, own): (&'static Prior, Option<&Calibrated>),
        best: &Candidate,
    ) -> Self {
        const WHAT: &str = "collective time";
        let modelled = best.spread(own.map_or(&prior.spreads, |own| &own.spreads));
        if call.kind == CollectiveKind::Unknown {
            let what = "collective of unknown kind, as all-reduce";
            let source = source(fabric, prior);
            let evidence = Evidence::new(EvidenceKind::Assumed, what, source, UNKNOWN_SPREAD);
            return Self { factor: 1.0, spread: UNKNOWN_SPREAD, evidence };
        }
        let several = fabric.nodes > 1;
        let near = own.and_then(|own| {
            own.field.at(Asked {
                kind: call.kind,
                bytes: call.bytes.as_f64(),
                ranks: fabric.ranks,
                many_nodes: several,
                way: best.way(),
            })
        });
        let (factor, spread) = match (own, near) {
            (Some(own), Some(near)) => {
                let away = SPREAD_PER_DOUBLED_RANKS * near.ranks_away.sqrt()
                    + SPREAD_PER_DOUBLED_SIZE * near.sizes_away;
                let unseen = modelled * (1.0 - near.alike);
                (near.log.exp(), own.noise.hypot(away).hypot(unseen))
            }
            _ => (1.0, modelled),
        };
        let evidence = match own {
            Some(own) => Evidence::new(EvidenceKind::Calibrated, WHAT, own.source.clone(), spread),
            None => Evidence::new(EvidenceKind::Inferred, WHAT, source(fabric, prior), spread),
        };
        Self { factor, spread, evidence }
    }
}

fn source(fabric: &Fabric, prior: &Prior) -> &'static str {
    match fabric.library {
        Library::Gloo | Library::Mpi => prior.host,
        _ if fabric.nodes > 1 => prior.between,
        _ => prior.within,
    }
}

fn nothing() -> CollectiveTime {
    CollectiveTime {
        time: Estimate::exact(Nanos::ZERO),
        algorithm: Method::Nothing,
        protocol: None,
        terms: Terms::default(),
        limit: Limit::None,
        bus_bandwidth: Bandwidth::ZERO,
        algorithm_bandwidth: Bandwidth::ZERO,
        evidence: Vec::new(),
    }
}

fn clamp(nanos: f64) -> Nanos {
    if nanos.is_finite() { Nanos::from_nanos_f64(nanos) } else { Nanos::MAX }
}
