//! Collectives with NCCL's (and RCCL's) algorithms and protocols.

use foretrain_graph::CollectiveKind as Kind;

use super::fabric::{Fabric, Library};
use super::priors::{self, InterPrior, IntraPrior};
use super::time::{Candidate, CollectiveCall, Method, transfer_ns};
use crate::nccl_tuner::{Protocol, Version};

const US: f64 = 1e3;
const GB: f64 = 1e9;

/// PyTorch's barrier is an all-reduce of one element.
const BARRIER_BYTES: f64 = 4.0;

/// The least time over algorithms and protocols.
pub(super) fn fastest(call: &CollectiveCall, fabric: &Fabric) -> Candidate {
    let model = Model::new(fabric);
    let bytes = call.bytes.as_f64();
    let mut best: Option<Candidate> = None;
    let mut offer = |candidate: Candidate| {
        if best.is_none_or(|b| candidate.total() < b.total()) {
            best = Some(candidate);
        }
    };
    match call.kind {
        Kind::AllReduce | Kind::Unknown => model.all_reduce(bytes, &mut offer),
        Kind::Barrier => model.all_reduce(BARRIER_BYTES, &mut offer),
        Kind::AllGather => model.sharded(bytes, false, &mut offer),
        Kind::ReduceScatter => model.sharded(bytes, true, &mut offer),
        Kind::Broadcast => model.rooted(bytes, false, &mut offer),
        Kind::Reduce => model.rooted(bytes, true, &mut offer),
        Kind::AllToAll => offer(model.all_to_all(bytes)),
        Kind::Gather | Kind::Scatter => offer(model.one_to_all(bytes)),
        Kind::Send | Kind::Recv | Kind::SendRecv => offer(model.point_to_point(bytes)),
    }
    // Every arm offers at least Simple; the fallback only satisfies the type.
    best.unwrap_or_else(|| model.point_to_point(bytes))
}

struct Model<'a> {
    fabric: &'a Fabric,
    intra: &'static IntraPrior,
    inter: &'static InterPrior,
    ranks: f64,
    nodes: f64,
    local: f64,
    /// Rates in bytes per second that a large message reaches.
    intra_rate: f64,
    neighbour_rate: f64,
    bisection_rate: f64,
}

impl<'a> Model<'a> {
    fn new(fabric: &'a Fabric) -> Self {
        let intra = priors::intra(fabric.intra.kind, fabric.intra.generation);
        let inter = priors::inter(fabric.inter.kind);
        let nodes = fabric.nodes.clamp(1, fabric.ranks);
        // At least one node is this full, whatever the caller says.
        let local = fabric.ranks_per_node.clamp(fabric.ranks.div_ceil(nodes), fabric.ranks);
        Self {
            fabric,
            intra,
            inter,
            ranks: f64::from(fabric.ranks),
            nodes: f64::from(nodes),
            local: f64::from(local),
            intra_rate: fabric.intra.bandwidth.get() * intra.reach,
            neighbour_rate: fabric.neighbour_bandwidth().get() * inter.reach,
            bisection_rate: fabric.bisection_bandwidth().get() * inter.reach,
        }
    }

    fn multi_node(&self) -> bool {
        self.nodes > 1.0
    }

    /// Depth of a binary tree over the nodes.
    fn depth(&self) -> f64 {
        self.nodes.log2().ceil()
    }

    /// The narrowest of the rates that a flow from neighbour to neighbour sees.
    fn ring_rate(&self) -> f64 {
        match (self.local > 1.0, self.multi_node()) {
            (true, true) => self.intra_rate.min(self.neighbour_rate),
            (false, true) => self.neighbour_rate,
            (_, false) => self.intra_rate,
        }
    }

    fn protocol_rate(&self, protocol: Protocol, rate: f64) -> f64 {
        let p = protocol as usize;
        (rate * priors::PROTOCOL_SHARE[p]).min(priors::protocol_cap(self.fabric, p) * GB)
    }

    fn protocols(&self) -> impl Iterator<Item = Protocol> {
        let ll128 = self.intra.ll128 || self.local <= 1.0;
        Protocol::ALL.into_iter().filter(move |&p| p != Protocol::Ll128 || ll128)
    }

    fn net_hop(&self, protocol: Protocol) -> f64 {
        self.inter.hop[protocol as usize] * US
            + self.fabric.inter.extra_latency.nanos().max(0) as f64
    }

    fn ring_hop(&self, protocol: Protocol) -> f64 {
        self.intra.ring[protocol as usize] * US
    }

    fn candidate(&self, method: Method, protocol: Protocol) -> Candidate {
        let base = priors::PROTOCOL_BASE_US[protocol as usize];
        Candidate {
            method,
            protocol: Some(protocol),
            launch: (priors::LAUNCH_US + base) * US,
            propagation: 0.0,
            transfer: 0.0,
            reduction: 0.0,
            spread: if self.multi_node() {
                self.inter.spread.max(self.intra.spread)
            } else {
                self.intra.spread
            },
            source: if self.multi_node() { self.inter.source } else { self.intra.source },
        }
    }

    /// `steps` hops round the ring of which the share of node boundaries cross the network.
    fn ring_propagation(&self, rounds: f64, protocol: Protocol) -> f64 {
        let crossings = rounds * (self.nodes - 1.0);
        let within = rounds * (self.ranks - 1.0) - crossings;
        within * self.ring_hop(protocol) + crossings * self.net_hop(protocol)
    }

    /// What reducing `bytes` takes beyond moving them.
    fn exposed_reduction(&self, bytes: f64, rate: f64) -> f64 {
        match self.fabric.reduce_bandwidth {
            Some(reduce) if reduce.get() < rate => {
                transfer_ns(bytes, reduce.get()) - transfer_ns(bytes, rate)
            }
            _ => 0.0,
        }
    }

    fn all_reduce(&self, bytes: f64, offer: &mut impl FnMut(Candidate)) {
        let shard = (self.ranks - 1.0) / self.ranks * bytes;
        for protocol in self.protocols() {
            let rate = self.protocol_rate(protocol, self.ring_rate());
            offer(Candidate {
                propagation: self.ring_propagation(2.0, protocol),
                transfer: transfer_ns(2.0 * shard, rate),
                reduction: self.exposed_reduction(shard, rate),
                ..self.candidate(Method::Ring, protocol)
            });
            // On one node NCCL's tuner never ranks the tree first.
            if self.multi_node() {
                let chain = (self.local - 1.0) * self.intra.chain[protocol as usize] * US;
                offer(Candidate {
                    propagation: 2.0 * (chain + self.depth() * self.net_hop(protocol)),
                    transfer: transfer_ns(2.0 * bytes, rate),
                    reduction: self.exposed_reduction(bytes, rate),
                    ..self.candidate(Method::Tree, protocol)
                });
            }
        }
        self.switch_reduction(bytes, offer);
    }

    /// NVLink SHARP: the switch reduces, so a rank sends and receives the buffer once.
    fn switch_reduction(&self, bytes: f64, offer: &mut impl FnMut(Candidate)) {
        if !self.fabric.has_nvls() || self.local <= 2.0 {
            return;
        }
        let share = priors::nvls_share(self.fabric);
        let within = transfer_ns(bytes, self.fabric.intra.bandwidth.get() * share);
        let base = priors::NVLS_BASE_US * US;
        if !self.multi_node() {
            let candidate = self.candidate(Method::Nvls, Protocol::Simple);
            let launch = priors::LAUNCH_US * US;
            offer(Candidate { launch, propagation: base, transfer: within, ..candidate });
            return;
        }
        // Two nodes only swap their sums; a tree's inner nodes pass the sum up and the result down.
        let crossings = if self.nodes <= 2.0 { 1.0 } else { 2.0 };
        let between = transfer_ns(crossings * bytes, self.neighbour_rate);
        offer(Candidate {
            propagation: base + 2.0 * self.depth() * self.net_hop(Protocol::Simple),
            transfer: within.max(between),
            ..self.candidate(Method::NvlsTree, Protocol::Simple)
        });
    }

    /// All-gather and reduce-scatter.
    fn sharded(&self, bytes: f64, reduces: bool, offer: &mut impl FnMut(Candidate)) {
        let moved = (self.ranks - 1.0) / self.ranks * bytes;
        for protocol in self.protocols() {
            let rate = self.protocol_rate(protocol, self.ring_rate());
            let work = Candidate {
                transfer: transfer_ns(moved, rate),
                reduction: if reduces { self.exposed_reduction(moved, rate) } else { 0.0 },
                ..self.candidate(Method::Ring, protocol)
            };
            let propagation = self.ring_propagation(1.0, protocol);
            offer(Candidate { propagation, ..work });
            if protocol == Protocol::Simple && self.has_pat() {
                let propagation = self.depth() * self.net_hop(protocol);
                offer(Candidate { method: Method::Pat, propagation, ..work });
            }
        }
    }

    fn has_pat(&self) -> bool {
        let known = matches!(self.fabric.library, Library::Nccl(v) if v >= Version(2, 23));
        known && self.multi_node() && self.local <= 1.0
    }

    /// Broadcast and reduce: the buffer streams once round the ring.
    fn rooted(&self, bytes: f64, reduces: bool, offer: &mut impl FnMut(Candidate)) {
        for protocol in self.protocols() {
            let rate = self.protocol_rate(protocol, self.ring_rate());
            offer(Candidate {
                propagation: self.ring_propagation(1.0, protocol),
                transfer: transfer_ns(bytes, rate),
                reduction: if reduces { self.exposed_reduction(bytes, rate) } else { 0.0 },
                ..self.candidate(Method::Ring, protocol)
            });
        }
    }

    /// Each rank sends an equal part to each other; parts for other nodes share the node's NICs.
    fn all_to_all(&self, bytes: f64) -> Candidate {
        let part = bytes / self.ranks;
        let within = transfer_ns(part * (self.local - 1.0), self.intra_rate);
        let leaving = part * (self.ranks - self.local) * self.local;
        let between = transfer_ns(leaving, self.bisection_rate);
        let rounds = ((self.ranks - 1.0) / priors::PEERS_AT_ONCE).ceil();
        Candidate {
            propagation: rounds * self.far_hop(),
            transfer: within.max(between),
            ..self.candidate(Method::Pairwise, Protocol::Simple)
        }
    }

    /// Gather and scatter: everything passes the root's link.
    fn one_to_all(&self, bytes: f64) -> Candidate {
        let part = bytes / self.ranks;
        let within = transfer_ns(part * (self.local - 1.0), self.intra_rate);
        let between = transfer_ns(part * (self.ranks - self.local), self.rank_rate());
        let rounds = ((self.ranks - 1.0) / priors::PEERS_AT_ONCE).ceil();
        Candidate {
            propagation: rounds * self.far_hop(),
            transfer: within.max(between),
            ..self.candidate(Method::Pairwise, Protocol::Simple)
        }
    }

    fn point_to_point(&self, bytes: f64) -> Candidate {
        let rate = if self.multi_node() { self.rank_rate() } else { self.intra_rate };
        Candidate {
            propagation: self.far_hop(),
            transfer: transfer_ns(bytes, rate),
            ..self.candidate(Method::PointToPoint, Protocol::Simple)
        }
    }

    /// One rank's share of its node's rate between nodes.
    fn rank_rate(&self) -> f64 {
        self.bisection_rate / self.local
    }

    /// The hop to the farthest rank.
    fn far_hop(&self) -> f64 {
        let protocol = Protocol::Simple;
        if self.multi_node() { self.net_hop(protocol) } else { self.ring_hop(protocol) }
    }
}
