//! Collectives of CPU processes over TCP or shared memory: Gloo and MPI.

use foretrain_graph::CollectiveKind as Kind;

use super::fabric::{Fabric, Library};
use super::priors::{self, HostPrior};
use super::time::{Candidate, CollectiveCall, Method, transfer_ns};

const US: f64 = 1e3;
const GB: f64 = 1e9;
const BARRIER_BYTES: f64 = 4.0;
/// Schedulers and TCP move host transfers more than devices'.
const SPREAD: f64 = 0.25;

/// The least time over the algorithms of a CPU library.
pub(super) fn fastest(call: &CollectiveCall, fabric: &Fabric) -> Candidate {
    let prior = if fabric.library == Library::Mpi { &priors::MPI } else { &priors::GLOO };
    let model = Model { fabric, prior, ranks: f64::from(fabric.ranks) };
    let bytes = call.bytes.as_f64();
    match call.kind {
        Kind::AllReduce | Kind::Unknown => model.all_reduce(bytes),
        Kind::Barrier => model.all_reduce(BARRIER_BYTES),
        Kind::ReduceScatter if prior.full_reduce_scatter => model.ring_all_reduce(bytes),
        Kind::ReduceScatter => model.ring(1.0, bytes, true),
        Kind::AllGather => model.ring(1.0, bytes, false),
        Kind::Broadcast => model.binomial(bytes, false),
        Kind::Reduce => model.binomial(bytes, true),
        Kind::AllToAll => model.all_to_all(bytes),
        Kind::Gather | Kind::Scatter => model.one_to_all(bytes),
        Kind::Send | Kind::Recv | Kind::SendRecv => Candidate {
            propagation: model.message(),
            transfer: transfer_ns(bytes, model.rate()),
            ..model.candidate(Method::PointToPoint)
        },
    }
}

struct Model<'a> {
    fabric: &'a Fabric,
    prior: &'static HostPrior,
    ranks: f64,
}

impl Model<'_> {
    fn candidate(&self, method: Method) -> Candidate {
        Candidate {
            method,
            protocol: None,
            launch: self.prior.launch * US,
            propagation: 0.0,
            transfer: 0.0,
            reduction: 0.0,
            spread: SPREAD,
            source: self.prior.source,
        }
    }

    fn message(&self) -> f64 {
        self.prior.message * US + self.fabric.inter.extra_latency.nanos().max(0) as f64
    }

    /// What one rank gets of the narrowest link between neighbours, capped by its own thread.
    fn rate(&self) -> f64 {
        let fabric = self.fabric;
        let stream = self.prior.stream * GB;
        let local = fabric.intra.bandwidth.get();
        match (fabric.nodes > 1, fabric.ranks_per_node > 1 && local > 0.0) {
            (true, true) => stream.min(local).min(fabric.neighbour_bandwidth().get()),
            (true, false) => stream.min(fabric.neighbour_bandwidth().get()),
            (false, true) => stream.min(local),
            // Processes of one host without a link of their own meet in shared memory.
            (false, false) => stream,
        }
    }

    fn reduction(&self, bytes: f64) -> f64 {
        transfer_ns(bytes, self.prior.reduce * GB)
    }

    /// `rounds` turns of a ring, each of which moves all shards but one.
    fn ring(&self, rounds: f64, bytes: f64, reduces: bool) -> Candidate {
        let shards = (self.ranks - 1.0) / self.ranks * bytes;
        Candidate {
            propagation: rounds * (self.ranks - 1.0) * self.message(),
            transfer: transfer_ns(rounds * shards, self.rate()),
            reduction: if reduces { self.reduction(shards) } else { 0.0 },
            ..self.candidate(Method::Ring)
        }
    }

    fn ring_all_reduce(&self, bytes: f64) -> Candidate {
        self.ring(2.0, bytes, true)
    }

    fn all_reduce(&self, bytes: f64) -> Candidate {
        let ring = self.ring_all_reduce(bytes);
        if self.fabric.library == Library::Gloo {
            // PyTorch does not let Gloo choose: it is always the ring.
            return ring;
        }
        let depth = self.ranks.log2().ceil();
        let tree = Candidate {
            propagation: 2.0 * depth * self.message(),
            transfer: transfer_ns(2.0 * depth * bytes, self.rate()),
            reduction: self.reduction(depth * bytes),
            ..self.candidate(Method::Binomial)
        };
        if tree.total() < ring.total() { tree } else { ring }
    }

    fn binomial(&self, bytes: f64, reduces: bool) -> Candidate {
        let depth = self.ranks.log2().ceil();
        Candidate {
            propagation: depth * self.message(),
            transfer: transfer_ns(depth * bytes, self.rate()),
            reduction: if reduces { self.reduction(depth * bytes) } else { 0.0 },
            ..self.candidate(Method::Binomial)
        }
    }

    /// Ranks of a node that send to others share its link.
    fn all_to_all(&self, bytes: f64) -> Candidate {
        let local = f64::from(self.fabric.ranks_per_node.max(1)).min(self.ranks);
        let part = bytes / self.ranks;
        let own = transfer_ns(part * (self.ranks - 1.0), self.rate());
        let leaving = part * (self.ranks - local) * local;
        let node = transfer_ns(leaving, self.fabric.bisection_bandwidth().get());
        Candidate {
            propagation: (self.ranks - 1.0) * self.message(),
            transfer: if self.fabric.nodes > 1 { own.max(node) } else { own },
            ..self.candidate(Method::Pairwise)
        }
    }

    fn one_to_all(&self, bytes: f64) -> Candidate {
        let moved = (self.ranks - 1.0) / self.ranks * bytes;
        Candidate {
            propagation: (self.ranks - 1.0) * self.message(),
            transfer: transfer_ns(moved, self.rate()),
            ..self.candidate(Method::Pairwise)
        }
    }
}
