//! Collectives of CPU processes over TCP or shared memory: Gloo and MPI.

use foretrain_graph::CollectiveKind as Kind;
use foretrain_hardware::collectives::{Constant, Constants};

use super::candidate::{Candidate, Limit, Rate, transfer_ns};
use super::fabric::{Fabric, Library};
use super::time::{CollectiveCall, Method};

const GB: f64 = 1e9;
const BARRIER_BYTES: f64 = 4.0;

/// The least time over the algorithms of a CPU library.
pub(super) fn fastest(call: &CollectiveCall, fabric: &Fabric, values: &Constants) -> Candidate {
    let model = Model { fabric, values, ranks: f64::from(fabric.ranks) };
    let gloo = fabric.library == Library::Gloo;
    let bytes = call.bytes.as_f64();
    match call.kind {
        Kind::AllReduce | Kind::Unknown => model.all_reduce(bytes, gloo),
        Kind::Barrier => model.all_reduce(BARRIER_BYTES, gloo),
        // Gloo's reduce-scatter moves as much as its all-reduce.
        Kind::ReduceScatter if gloo => model.ring(2.0, bytes, true),
        Kind::ReduceScatter => model.ring(1.0, bytes, true),
        Kind::AllGather => model.ring(1.0, bytes, false),
        Kind::Broadcast => model.binomial(bytes, 1.0, false),
        Kind::Reduce => model.binomial(bytes, 1.0, true),
        Kind::AllToAll => model.all_to_all(bytes),
        Kind::Gather | Kind::Scatter => model.one_to_all(bytes),
        Kind::Send | Kind::Recv | Kind::SendRecv => {
            model.messages(Method::PointToPoint, 1.0).moves(&[(bytes, model.rate())])
        }
    }
}

struct Model<'a> {
    fabric: &'a Fabric,
    values: &'a Constants,
    ranks: f64,
}

impl Model<'_> {
    /// A launch and `count` messages one after the other.
    fn messages(&self, method: Method, count: f64) -> Candidate {
        let extra = self.fabric.inter.extra_latency.nanos().max(0) as f64;
        Candidate::new(method, None).starts(self.values, Constant::HostLaunch).hops(
            self.values,
            count,
            Constant::HostMessage,
            extra,
        )
    }

    /// What one rank gets of the narrowest link between neighbours, capped by its own thread.
    fn rate(&self) -> Rate {
        let fabric = self.fabric;
        let by = [Some(Constant::HostStream), None];
        let rate = self.values[Constant::HostStream] * GB;
        let thread = Rate { rate, by, limit: Limit::Thread };
        let share = self.values[Constant::HostShare];
        let by = [Some(Constant::HostShare), None];
        let link = |rate: f64, limit| Rate { rate: rate * share, by, limit };
        let local = fabric.intra.bandwidth.get();
        // Processes of one host without a link of their own meet in shared memory.
        let within = (fabric.ranks_per_node > 1 && local > 0.0).then(|| link(local, Limit::Within));
        let neighbour = fabric.neighbour_bandwidth().get();
        let between = (fabric.nodes > 1).then(|| link(neighbour, Limit::Between));
        let links = within.into_iter().chain(between);
        links.fold(thread, |least, link| if link.rate < least.rate { link } else { least })
    }

    fn reduces(&self, candidate: Candidate, bytes: f64) -> Candidate {
        let ns = transfer_ns(bytes, self.values[Constant::HostReduce] * GB);
        candidate.reduces(ns, Some(Constant::HostReduce))
    }

    /// `rounds` turns of a ring, each of which moves all shards but one.
    fn ring(&self, rounds: f64, bytes: f64, reduces: bool) -> Candidate {
        let shards = (self.ranks - 1.0) / self.ranks * bytes;
        let ring = self.messages(Method::Ring, rounds * (self.ranks - 1.0));
        let ring = ring.moves(&[(rounds * shards, self.rate())]);
        if reduces { self.reduces(ring, shards) } else { ring }
    }

    /// PyTorch does not let Gloo choose: it is always the ring.
    fn all_reduce(&self, bytes: f64, only_ring: bool) -> Candidate {
        let ring = self.ring(2.0, bytes, true);
        if only_ring {
            return ring;
        }
        let tree = self.binomial(bytes, 2.0, true);
        if tree.total() < ring.total() { tree } else { ring }
    }

    fn binomial(&self, bytes: f64, rounds: f64, reduces: bool) -> Candidate {
        let depth = self.ranks.log2().ceil();
        let tree = self.messages(Method::Binomial, rounds * depth);
        let tree = tree.moves(&[(rounds * depth * bytes, self.rate())]);
        if reduces { self.reduces(tree, depth * bytes) } else { tree }
    }

    /// Ranks of a node that send to others share its link.
    fn all_to_all(&self, bytes: f64) -> Candidate {
        let local = f64::from(self.fabric.ranks_per_node.max(1)).min(self.ranks);
        let part = bytes / self.ranks;
        let own = (part * (self.ranks - 1.0), self.rate());
        let leaving = part * (self.ranks - local) * local;
        let rate = self.fabric.bisection_bandwidth().get() * self.values[Constant::HostShare];
        let by = [Some(Constant::HostShare), None];
        let node = (leaving, Rate { rate, by, limit: Limit::Between });
        let exchange = self.messages(Method::Pairwise, self.ranks - 1.0);
        if self.fabric.nodes > 1 { exchange.moves(&[own, node]) } else { exchange.moves(&[own]) }
    }

    fn one_to_all(&self, bytes: f64) -> Candidate {
        let moved = (self.ranks - 1.0) / self.ranks * bytes;
        self.messages(Method::Pairwise, self.ranks - 1.0).moves(&[(moved, self.rate())])
    }
}
