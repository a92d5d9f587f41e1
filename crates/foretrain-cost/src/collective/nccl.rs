//! Collectives with NCCL's (and RCCL's) algorithms and protocols.

use foretrain_graph::CollectiveKind as Kind;
use foretrain_hardware::collectives::{Choice, Constant, Constants};

use super::candidate::{Candidate, Limit, Rate, transfer_ns};
use super::choice;
use super::fabric::{Fabric, Library};
use super::knowledge::Known;
use super::time::{CollectiveCall, Method};
use crate::nccl_tuner::{Algorithm, Protocol, Version, tree_correction};

const GB: f64 = 1e9;

/// PyTorch's barrier is an all-reduce of one element.
const BARRIER_BYTES: f64 = 4.0;
/// Peers that a rank's sends and receives are in flight with at once.
const PEERS_AT_ONCE: f64 = 8.0;
/// An all-reduce only sums its own shard, an all-gather copies it.
const OWN_STEP_OF_ALL_REDUCE: f64 = 0.6;
/// An exchange copies its own part beside the others.
const OWN_STEP_OF_EXCHANGE: f64 = 0.5;

/// Every way that the library has for a call; the caller takes one.
pub(super) fn offers(call: &CollectiveCall, fabric: &Fabric, known: Known<'_>) -> Offers {
    let model = Model::new(fabric, known.values);
    let bytes = call.bytes.as_f64();
    let mut offers = Offers::default();
    match call.kind {
        Kind::AllReduce | Kind::Unknown => model.all_reduce(bytes, &mut offers),
        Kind::Barrier => model.all_reduce(BARRIER_BYTES, &mut offers),
        Kind::AllGather => model.sharded(bytes, false, &mut offers),
        Kind::ReduceScatter => model.sharded(bytes, true, &mut offers),
        Kind::Broadcast => model.rooted(bytes, false, &mut offers),
        Kind::Reduce => model.rooted(bytes, true, &mut offers),
        Kind::AllToAll => model.all_to_all(bytes, &mut offers),
        Kind::Gather | Kind::Scatter => model.one_to_all(bytes, &mut offers),
        Kind::Send | Kind::Recv | Kind::SendRecv => model.point_to_point(bytes, &mut offers),
    }
    if let Some(method) = fabric.forced
        && offers.iter().any(|candidate| candidate.method == method)
    {
        offers.only(method);
    } else if known.pick.choice == Choice::Tuner {
        offers.keep(choice::choose(fabric, call, known.pick.nccl));
    }
    offers
}

/// Candidates, without the heap.
#[derive(Default)]
pub(crate) struct Offers {
    list: [Option<Candidate>; 8],
}

impl Offers {
    /// Of a library that leaves no choice.
    pub(super) fn one(candidate: Candidate) -> Self {
        let mut offers = Self::default();
        offers.push(candidate);
        offers
    }

    fn push(&mut self, candidate: Candidate) {
        if let Some(free) = self.list.iter_mut().find(|place| place.is_none()) {
            *free = Some(candidate);
        }
    }

    fn change_last(&mut self, change: impl FnOnce(Candidate) -> Candidate) {
        if let Some(last) = self.list.iter_mut().rev().flatten().next() {
            *last = change(*last);
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Candidate> {
        self.list.iter().flatten()
    }

    /// Nothing but a method's.
    fn only(&mut self, method: Method) {
        for place in &mut self.list {
            if place.is_some_and(|candidate| candidate.method != method) {
                *place = None;
            }
        }
    }

    /// The fastest.
    pub(super) fn best(&self) -> Option<&Candidate> {
        self.iter().min_by(|a, b| a.total().total_cmp(&b.total()))
    }

    /// Of the rings and trees only the one that NCCL picks.
    fn keep(&mut self, picked: Option<(Algorithm, Protocol)>) {
        let Some((algorithm, protocol)) = picked else { return };
        let method = match algorithm {
            Algorithm::Ring => Method::Ring,
            Algorithm::Tree => Method::Tree,
            // What else it picks has one candidate anyway.
            _ => return,
        };
        let picked = |c: &Candidate| c.method == method && c.protocol == Some(protocol);
        if !self.iter().any(picked) {
            return;
        }
        for place in &mut self.list {
            let ranked = |c: &Candidate| matches!(c.method, Method::Ring | Method::Tree);
            if place.is_some_and(|c| ranked(&c) && !picked(&c)) {
                *place = None;
            }
        }
    }
}

const HOP: [Constant; 3] = [Constant::LlHop, Constant::Ll128Hop, Constant::SimpleHop];
const CHAIN: [Constant; 3] = [Constant::LlChain, Constant::Ll128Chain, Constant::SimpleChain];
const NET: [Constant; 3] = [Constant::LlNet, Constant::Ll128Net, Constant::SimpleNet];
const SHARE: [Constant; 3] = [Constant::LlShare, Constant::Ll128Share, Constant::SimpleShare];
const NET_SHARE: [Constant; 3] =
    [Constant::LlNetShare, Constant::Ll128NetShare, Constant::SimpleNetShare];
const NET_BASE: [Constant; 3] =
    [Constant::LlNetBase, Constant::Ll128NetBase, Constant::SimpleNetBase];

struct Model<'a> {
    fabric: &'a Fabric,
    values: &'a Constants,
    ranks: f64,
    nodes: f64,
    local: f64,
    /// Payload rates, bytes per second.
    intra: f64,
    neighbour: f64,
    bisection: f64,
}

impl<'a> Model<'a> {
    fn new(fabric: &'a Fabric, values: &'a Constants) -> Self {
        let nodes = fabric.nodes.clamp(1, fabric.ranks);
        // At least one node is this full, whatever the caller says.
        let local = fabric.ranks_per_node.clamp(fabric.ranks.div_ceil(nodes), fabric.ranks);
        Self {
            fabric,
            values,
            ranks: f64::from(fabric.ranks),
            nodes: f64::from(nodes),
            local: f64::from(local),
            intra: fabric.intra.bandwidth.get(),
            neighbour: fabric.neighbour_bandwidth().get(),
            bisection: fabric.bisection_bandwidth().get(),
        }
    }

    fn multi_node(&self) -> bool {
        self.nodes > 1.0
    }

    /// Depth of a binary tree over the nodes.
    fn depth(&self) -> f64 {
        self.nodes.log2().ceil()
    }

    /// A launch with a protocol.
    fn launch(&self, method: Method, protocol: Protocol) -> Candidate {
        let v = self.values;
        let candidate = Candidate::new(method, Some(protocol)).starts(v, Constant::Launch);
        let candidate = match protocol {
            Protocol::Ll => candidate,
            Protocol::Ll128 => candidate.starts(v, Constant::Ll128Base),
            Protocol::Simple => candidate.starts(v, Constant::SimpleBase),
        };
        if self.multi_node() { candidate.starts(v, NET_BASE[protocol as usize]) } else { candidate }
    }

    /// Added to every hop between nodes, ns.
    fn extra(&self) -> f64 {
        self.fabric.inter.extra_latency.nanos().max(0) as f64
    }

    /// What `crossings` turns past the late links cost, ns.
    fn lateness(&self, crossings: f64) -> f64 {
        self.fabric.inter.late.map_or(0.0, |late| {
            crossings * f64::from(late.links) * late.latency.nanos().max(0) as f64
        })
    }

    /// A share of a rank's link.
    fn of_link(&self, share: Constant) -> Rate {
        let by = [Some(share), None];
        Rate { rate: self.intra * self.values[share], by, limit: Limit::Within }
    }

    /// What a rank reaches of its link with a protocol.
    fn within(&self, protocol: Protocol) -> Rate {
        self.of_link(SHARE[protocol as usize])
    }

    /// What a flow from neighbour to neighbour reaches between nodes.
    fn between(&self, protocol: Protocol, tree: Option<f64>) -> Rate {
        let share = NET_SHARE[protocol as usize];
        let rate = self.neighbour * self.values[share];
        match tree {
            Some(correction) => Rate {
                rate: rate * self.values[Constant::TreeNet] * correction,
                by: [Some(share), Some(Constant::TreeNet)],
                limit: Limit::Between,
            },
            None => Rate { rate, by: [Some(share), None], limit: Limit::Between },
        }
    }

    fn protocols(&self) -> impl Iterator<Item = Protocol> {
        let ll128 = self.local <= 1.0 || self.fabric.stores_128();
        Protocol::ALL.into_iter().filter(move |&p| p != Protocol::Ll128 || ll128)
    }

    /// `rounds` turns round the ring, of which the share of node boundaries cross the network.
    fn round(&self, candidate: Candidate, rounds: f64, protocol: Protocol) -> Candidate {
        let (v, p) = (self.values, protocol as usize);
        let crossings = rounds * (self.nodes - 1.0);
        let within = rounds * (self.ranks - 1.0) - crossings;
        let candidate = candidate.hops(v, within, HOP[p], 0.0);
        if crossings > 0.0 {
            let hop = (NET[p], Constant::RingNet);
            candidate.scaled_hops(v, crossings, hop, self.extra()).late(self.lateness(rounds))
        } else {
            candidate
        }
    }

    /// A flow of `bytes` from neighbour to neighbour.
    fn ring_moves(&self, candidate: Candidate, bytes: f64, protocol: Protocol) -> Candidate {
        let within = (bytes, self.within(protocol));
        let between = (bytes, self.between(protocol, None));
        match (self.local > 1.0, self.multi_node()) {
            (true, true) => candidate.moves(&[within, between]),
            (false, true) => candidate.moves(&[between]),
            (_, false) => candidate.moves(&[within]),
        }
    }

    /// What reducing `bytes` takes beyond moving as many in `moving` ns.
    fn exposed_reduction(&self, bytes: f64, moving: f64) -> f64 {
        match self.fabric.reduce_bandwidth {
            Some(reduce) => (transfer_ns(bytes, reduce.get()) - moving).max(0.0),
            None => 0.0,
        }
    }

    /// Handling a rank's own shard beside those of the others, with Simple.
    fn own_shard(
        &self,
        candidate: Candidate,
        bytes: f64,
        protocol: Protocol,
        part: f64,
    ) -> Candidate {
        if protocol != Protocol::Simple {
            return candidate;
        }
        let step = transfer_ns(bytes / self.ranks, self.within(protocol).rate) * part;
        let step = if self.local > 1.0 && step.is_finite() { step } else { 0.0 };
        candidate.part_of_step(self.values, Constant::OwnStep, step)
    }

    fn all_reduce(&self, bytes: f64, offers: &mut Offers) {
        let shard = (self.ranks - 1.0) / self.ranks * bytes;
        for protocol in self.protocols() {
            let ring = self.round(self.launch(Method::Ring, protocol), 2.0, protocol);
            let ring = self.ring_moves(ring, 2.0 * shard, protocol);
            let exposed = self.exposed_reduction(shard, ring.transfer / 2.0);
            let ring = self.own_shard(ring, bytes, protocol, OWN_STEP_OF_ALL_REDUCE);
            offers.push(ring.reduces(exposed, None));
            // On one node NCCL's tuner never ranks the tree first.
            if self.multi_node() {
                offers.push(self.tree(bytes, protocol));
            }
        }
        self.switch_reduction(bytes, offers);
        self.network_reduction(bytes, offers);
    }

    /// A chain within nodes, a double binary tree between them. Two nodes only swap their sums;
    /// with more, a node passes one half of the data up and down as an inner node, the other as a
    /// leaf.
    fn tree(&self, bytes: f64, protocol: Protocol) -> Candidate {
        let (v, p) = (self.values, protocol as usize);
        let depth = self.depth();
        let tree = self
            .launch(Method::Tree, protocol)
            .hops(v, 2.0 * (self.local - 1.0), CHAIN[p], 0.0)
            .hops(v, 2.0 * depth, NET[p], self.extra())
            .late(self.lateness(2.0));
        let between = self.between(protocol, Some(tree_correction(protocol, bytes)));
        let between = (self.crossings() * bytes, between);
        let tree = if self.local > 1.0 {
            tree.moves(&[(2.0 * bytes, self.within(protocol)), between])
        } else {
            tree.moves(&[between])
        };
        let exposed = self.exposed_reduction(bytes, tree.transfer / 2.0);
        tree.reduces(exposed, None)
    }

    fn crossings(&self) -> f64 {
        if self.nodes <= 2.0 { 1.0 } else { 2.0 }
    }

    /// NVLink SHARP: the switch reduces, so a rank sends and receives the buffer once. That beats
    /// a ring of five ranks and more; for four NCCL takes the ring (measured on H200 and B200
    /// nodes).
    fn switch_reduction(&self, bytes: f64, offers: &mut Offers) {
        if !self.fabric.has_nvls() || self.local <= 4.0 {
            return;
        }
        let v = self.values;
        let within = |share: Constant| (bytes, self.of_link(share));
        if !self.multi_node() {
            let nvls = Candidate::new(Method::Nvls, Some(Protocol::Simple));
            let nvls = nvls.starts(v, Constant::Launch).hops(v, 1.0, Constant::NvlsBase, 0.0);
            offers.push(nvls.moves(&[within(Constant::NvlsSmallShare)]));
            let ramped = nvls.hops(v, 1.0, Constant::NvlsRamp, 0.0);
            offers.push(ramped.moves(&[within(Constant::NvlsShare)]));
            return;
        }
        let between = (self.crossings() * bytes, self.between(Protocol::Simple, Some(1.0)));
        let tree = Candidate::new(Method::NvlsTree, Some(Protocol::Simple))
            .starts(v, Constant::Launch)
            .starts(v, Constant::SimpleNetBase)
            .hops(v, 1.0, Constant::NvlsBase, 0.0)
            .hops(v, 2.0 * self.depth(), Constant::SimpleNet, self.extra())
            .late(self.lateness(2.0));
        offers.push(tree.moves(&[within(Constant::NvlsShare), between]));
    }

    /// SHARP: the switches between nodes reduce, so a node sends and receives the buffer once,
    /// however many nodes there are. Within a node NVLink SHARP or a chain sums first.
    fn network_reduction(&self, bytes: f64, offers: &mut Offers) {
        let nccl_like = matches!(self.fabric.library, Library::Nccl(_) | Library::Rccl);
        if !self.fabric.in_network_reduction || !self.multi_node() || !nccl_like {
            return;
        }
        let v = self.values;
        let net = Candidate::new(Method::CollNet, Some(Protocol::Simple))
            .starts(v, Constant::Launch)
            .starts(v, Constant::SimpleNetBase)
            .hops(v, 2.0, Constant::SimpleNet, self.extra())
            .late(self.lateness(2.0));
        let between = (bytes, self.between(Protocol::Simple, None));
        let net = if self.fabric.has_nvls() && self.local > 2.0 {
            let within = (bytes, self.of_link(Constant::NvlsShare));
            net.hops(v, 1.0, Constant::NvlsBase, 0.0).moves(&[within, between])
        } else if self.local > 1.0 {
            let within = (2.0 * bytes, self.within(Protocol::Simple));
            net.hops(v, 2.0 * (self.local - 1.0), Constant::SimpleChain, 0.0)
                .moves(&[within, between])
        } else {
            net.moves(&[between])
        };
        let exposed = self.exposed_reduction(bytes, net.transfer / 2.0);
        offers.push(net.reduces(exposed, None));
    }

    /// All-gather and reduce-scatter.
    fn sharded(&self, bytes: f64, reduces: bool, offers: &mut Offers) {
        let moved = (self.ranks - 1.0) / self.ranks * bytes;
        for protocol in self.protocols() {
            let finish = |candidate: Candidate| {
                let candidate = self.ring_moves(candidate, moved, protocol);
                let exposed =
                    if reduces { self.exposed_reduction(moved, candidate.transfer) } else { 0.0 };
                self.own_shard(candidate, bytes, protocol, 1.0).reduces(exposed, None)
            };
            let ring = self.launch(Method::Ring, protocol);
            offers.push(finish(self.round(ring, 1.0, protocol)));
            if protocol == Protocol::Simple && self.has_pat() {
                let (v, net) = (self.values, NET[protocol as usize]);
                let pat = self.launch(Method::Pat, protocol);
                offers.push(finish(pat.hops(v, self.depth(), net, self.extra())));
            }
        }
    }

    fn has_pat(&self) -> bool {
        let known = matches!(self.fabric.library, Library::Nccl(v) if v >= Version(2, 23));
        known && self.multi_node() && self.local <= 1.0
    }

    /// Broadcast and reduce: the buffer streams once round the ring.
    fn rooted(&self, bytes: f64, reduces: bool, offers: &mut Offers) {
        for protocol in self.protocols() {
            let ring = self.round(self.launch(Method::Ring, protocol), 1.0, protocol);
            let ring = self.ring_moves(ring, bytes, protocol);
            let exposed = if reduces { self.exposed_reduction(bytes, ring.transfer) } else { 0.0 };
            offers.push(ring.reduces(exposed, None));
        }
    }

    /// An exchange whose largest part between two ranks is `part`: with LL while parts are small,
    /// with Simple otherwise.
    fn exchange(
        &self,
        method: Method,
        part: f64,
        peers: f64,
        ways: &[(f64, Rate)],
        offers: &mut Offers,
    ) {
        let v = self.values;
        let far = (peers - (self.local - 1.0)).max(0.0);
        let near = (peers - far - 1.0).max(0.0);
        let reach = |candidate: Candidate, net: Constant| {
            let rounds = (peers / PEERS_AT_ONCE).ceil().max(1.0);
            let candidate = candidate.hops(v, near, Constant::PairPeer, 0.0);
            match self.multi_node() {
                true => candidate
                    .hops(v, rounds, net, self.extra())
                    .hops(v, far, Constant::PairNet, 0.0)
                    .late(self.lateness(1.0)),
                false => candidate,
            }
        };
        let rate = Rate {
            rate: v[Constant::PairLl] * GB,
            by: [Some(Constant::PairLl), None],
            limit: Limit::Within,
        };
        let small = Candidate::new(method, Some(Protocol::Ll)).starts(v, Constant::Launch);
        let small = reach(small.hops(v, 1.0, Constant::PairHop, 0.0), Constant::LlNet);
        let longest = ways.iter().copied().chain([(part, rate)]);
        let mut both = [(0.0, rate); 3];
        for (place, way) in both.iter_mut().zip(longest) {
            *place = way;
        }
        offers.push(small.moves(&both));
        let large = Candidate::new(method, Some(Protocol::Simple)).starts(v, Constant::Launch);
        let large = large.starts(v, Constant::PairBase);
        offers.push(reach(large, Constant::SimpleNet).moves(ways));
    }

    fn pair_within(&self) -> Rate {
        self.of_link(Constant::PairShare)
    }

    /// `ranks` ranks' part of a node's rate when everyone sends to everyone.
    fn pair_between(&self, part: f64) -> Rate {
        let by = [Some(Constant::PairNetShare), None];
        let rate = self.bisection * part * self.values[Constant::PairNetShare];
        Rate { rate, by, limit: Limit::Between }
    }

    /// Each rank sends an equal part to each other; parts for other nodes share the node's NICs.
    fn all_to_all(&self, bytes: f64, offers: &mut Offers) {
        let part = bytes / self.ranks;
        let within = (part * (self.local - 1.0), self.pair_within());
        let leaving = part * (self.ranks - self.local) * self.local;
        let ways = [within, (leaving, self.pair_between(1.0))];
        self.exchange(Method::Pairwise, part, self.ranks - 1.0, self.some(&ways), offers);
        let step = transfer_ns(part, self.pair_within().rate) * OWN_STEP_OF_EXCHANGE;
        if step.is_finite() && self.local > 1.0 {
            offers.change_last(|large| large.part_of_step(self.values, Constant::OwnStep, step));
        }
    }

    /// Gather and scatter: everything passes the root's link.
    fn one_to_all(&self, bytes: f64, offers: &mut Offers) {
        let part = bytes / self.ranks;
        let within = (part * (self.local - 1.0), self.pair_within());
        let between = (part * (self.ranks - self.local), self.pair_between(1.0 / self.local));
        let ways = [within, between];
        self.exchange(Method::Pairwise, part, self.ranks - 1.0, self.some(&ways), offers);
    }

    fn point_to_point(&self, bytes: f64, offers: &mut Offers) {
        let rate = if self.multi_node() {
            self.pair_between(1.0 / self.local)
        } else {
            self.pair_within()
        };
        self.exchange(Method::PointToPoint, bytes, 1.0, &[(bytes, rate)], offers);
    }

    /// Only the ways that there are: within a node, and between nodes if there are several.
    fn some<'w>(&self, ways: &'w [(f64, Rate); 2]) -> &'w [(f64, Rate)] {
        if self.multi_node() { ways } else { &ways[..1] }
    }
}
