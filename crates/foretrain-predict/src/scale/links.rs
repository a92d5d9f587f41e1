//! Communication that is in flight at once shares its rank's links.
//!
//! Every simulated rank has two resources of capacity 1: its share of the NICs, and its links to
//! the devices of its node. A collective takes of each what its transfer needs of it on the
//! average of its whole time, launch and hops included, so one alone never slows down.
//!
//! A recorded time of a collective that overlapped with others contains the sharing already.
//! [`alone`] takes it out with the same rule by which the engine puts it back: work at full rate is
//! the integral of the rate over the recorded transfer. So where the same collectives meet again
//! they take as long as recorded, and where they do not, they no longer pay for each other.

use foretrain_core::{Evidence, EvidenceKind, Nanos, Result};
use foretrain_cost::{CollectiveCall, Fabric, bus_factor, collective_time};
use foretrain_flow::{Demand as Wanted, Paths, max_min};
use foretrain_graph::{Job, NodeId};
use foretrain_hardware::Cluster;
use foretrain_rewrite::collectives;
use foretrain_sim::{Demand, Resource, SimOptions, Timeline};
use rustc_hash::FxHashMap;

use super::cost::{Costs, Machines};
use super::ranks::Ranks;
use crate::transfer::Transfers;

/// What a collective takes of its rank's links at full rate, each 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct LinkUse {
    /// Of the rank's share of its node's NICs.
    between: f64,
    /// Of its links to the other devices of the node.
    within: f64,
}

impl LinkUse {
    /// The use by `call` on `fabric`.
    pub(crate) fn of(call: &CollectiveCall, fabric: &Fabric) -> Self {
        let time = collective_time(call, fabric);
        let total = time.time.value.nanos() as f64;
        if total <= 0.0 || time.time.value == Nanos::MAX {
            return Self::default();
        }
        let busy = (time.terms.transfer.nanos() as f64 / total).min(1.0);
        let moved = bus_factor(call.kind, fabric.ranks) * call.bytes.as_f64() * 1e9 / total;
        let over = |rate: f64| if rate > 0.0 { (moved / rate).min(busy) } else { 0.0 };
        let local = f64::from(fabric.ranks_per_node.max(1));
        match (fabric.nodes > 1, fabric.library.is_nccl_like()) {
            (true, true) => Self {
                between: busy,
                within: over(fabric.intra.bandwidth.get()) * (local - 1.0) / local,
            },
            (false, true) => Self { between: 0.0, within: busy },
            // One thread's copying, which limits a CPU library, fills no link.
            (true, false) => {
                Self { between: over(fabric.neighbour_bandwidth().get()), within: 0.0 }
            }
            (false, false) => Self::default(),
        }
    }

    /// The same over a time of which `wait` is spent waiting.
    fn with_wait(self, time: Nanos, wait: Nanos) -> Self {
        let whole = (time + wait).nanos().max(1) as f64;
        let part = (time.nanos() as f64 / whole).clamp(0.0, 1.0);
        Self { between: self.between * part, within: self.within * part }
    }

    fn amounts(self) -> [f64; 2] {
        [self.between, self.within]
    }
}

/// Tells the engine what the communication of a job takes of which links. Ranks whose
/// communication runs in one queue have nothing to share, and are left out.
pub(crate) fn share_links(options: &mut SimOptions, job: &Job, costs: &[Costs]) {
    for (class, costs) in costs.iter().enumerate() {
        let graph = &job.classes[class].graph;
        let mut users = costs.iter().filter(|(_, cost)| cost.links != LinkUse::default());
        let Some((first, _)) = users.next() else { continue };
        if users.all(|(id, _)| graph.node(*id).queue == graph.node(*first).queue) {
            continue;
        }
        let first = options.resources.len();
        for name in ["NICs", "links within the node"] {
            let name = format!("{name} of simulated rank {class}");
            options.resources.push(Resource { name, capacity: 1.0 });
        }
        for &(node, cost) in costs {
            let amounts = cost.links.with_wait(cost.time.value, cost.wait).amounts();
            for (at, amount) in amounts.into_iter().enumerate().filter(|(_, amount)| *amount > 0.0)
            {
                options.demands.push(Demand { class, node, resource: first + at, amount });
            }
        }
    }
}

/// When a collective moved data: from the last arrival to its end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Transfer {
    pub(crate) node: NodeId,
    pub(crate) from: Nanos,
    pub(crate) to: Nanos,
}

impl Transfer {
    /// Less the waiting that was recorded with it, which comes first.
    pub(crate) fn without_wait(self, transfers: &Transfers) -> Self {
        let time = transfers.of(self.node, self.to - self.from);
        Self { from: self.to - time, ..self }
    }
}

/// The transfers of each class in the last iteration of an unchanged replay.
pub(crate) fn replayed_transfers(job: &Job, timeline: &Timeline) -> Vec<Vec<Transfer>> {
    let last = timeline.iterations - 1;
    let of_class =
        |(class, times): (&foretrain_graph::RankClass, &foretrain_sim::ClassTimeline)| {
            let transfer = |node: NodeId| {
                let row = times.row(last, node);
                Transfer { node, from: times.start[row] + times.wait[row], to: times.end[row] }
            };
            collectives(&class.graph).map(|node| transfer(node.id)).collect()
        };
    job.classes.iter().zip(&timeline.classes).map(of_class).collect()
}

/// The part of each recorded transfer that it would have taken alone; those at full rate
/// throughout are left out.
pub(crate) fn alone(
    transfers: &[Transfer],
    uses: &FxHashMap<NodeId, LinkUse>,
) -> FxHashMap<NodeId, f64> {
    let used =
        |transfer: &&Transfer| uses.contains_key(&transfer.node) && transfer.from < transfer.to;
    let transfers: Vec<Transfer> = transfers.iter().filter(used).copied().collect();
    let mut times: Vec<Nanos> = transfers.iter().flat_map(|one| [one.from, one.to]).collect();
    times.sort_unstable();
    times.dedup();
    let mut order: Vec<usize> = (0..transfers.len()).collect();
    order.sort_by_key(|&at| transfers[at].from);
    let mut coming = order.into_iter().peekable();
    let mut running: Vec<usize> = Vec::new();
    let mut work = vec![0.0; transfers.len()];
    for span in times.windows(2) {
        running.retain(|&at| transfers[at].to > span[0]);
        while let Some(at) = coming.next_if(|&at| transfers[at].from <= span[0]) {
            running.push(at);
        }
        let length = (span[1] - span[0]).nanos() as f64;
        let of = |at: &usize| uses[&transfers[*at].node];
        for (at, rate) in running.iter().zip(rates(running.iter().map(of))) {
            work[*at] += rate * length;
        }
    }
    let part = |(transfer, work): (&Transfer, f64)| {
        (transfer.node, work / (transfer.to - transfer.from).nanos() as f64)
    };
    transfers.iter().zip(work).map(part).filter(|(_, part)| *part < 1.0 - 1e-9).collect()
}

/// The engine's rates of transfers that run at once.
fn rates(uses: impl Iterator<Item = LinkUse>) -> Vec<f64> {
    let (mut paths, mut wanted) = (Paths::new(), Vec::new());
    for amounts in uses.map(LinkUse::amounts) {
        paths.push(amounts.into_iter().enumerate().map(|(link, amount)| (link as u32, amount)));
        let largest = amounts[0].max(amounts[1]);
        let weight = if largest > 0.0 { 1.0 / largest } else { 1.0 };
        wanted.push(Wanted { weight, cap: 1.0, count: 1.0 });
    }
    max_min(&[1.0, 1.0], &paths, &wanted).into_iter().map(|fair| fair.rate).collect()
}

/// Notes for every transfer how long it would have taken without others on the same links.
pub(super) fn take_out_sharing(
    ranks: &mut Ranks,
    from: Option<&Cluster>,
    to: &Cluster,
    evidence: &mut Vec<Evidence>,
) -> Result<()> {
    for class in &mut ranks.classes {
        let (layout, transfers) = (&class.layout, &class.transfers);
        let machines = Machines {
            layout,
            transfers,
            alone: &class.alone,
            from,
            to,
            latency: 1.0,
            cores: None,
            costs: None,
        };
        let uses = machines.recorded_uses(&class.graph)?;
        let replayed: Vec<Transfer> =
            class.replayed.iter().map(|one| one.without_wait(&class.transfers)).collect();
        class.alone = alone(&replayed, &uses);
    }
    let lead = ranks.lead();
    if !lead.alone.is_empty() {
        evidence.push(Evidence::new(
            EvidenceKind::Inferred,
            "transfers that overlapped",
            format!(
                "{} of {} recorded transfers shared a link with others: they are simulated at full rate, and share where they meet",
                lead.alone.len(),
                lead.replayed.len()
            ),
            0.1,
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use foretrain_core::Bytes;
    use foretrain_cost::GroupPlacement;
    use foretrain_graph::CollectiveKind;
    use foretrain_hardware::Catalogue;

    use super::*;

    fn transfer(node: usize, from: i64, to: i64) -> Transfer {
        let at = Nanos::from_nanos;
        Transfer { node: NodeId::from_index(node), from: at(from), to: at(to) }
    }

    fn parts(transfers: &[Transfer], between: f64) -> Vec<(usize, f64)> {
        let user = |one: &Transfer| (one.node, LinkUse { between, within: 0.0 });
        let uses = transfers.iter().map(user).collect();
        let parts = alone(transfers, &uses);
        let mut parts: Vec<_> = parts.into_iter().map(|(id, part)| (id.index(), part)).collect();
        parts.sort_by_key(|(id, _)| *id);
        parts
    }

    #[test]
    fn overlapped_time_counts_by_the_share_of_the_link() {
        // The second runs beside the first for half of its own time and a third of the first's.
        let transfers = [transfer(0, 0, 300), transfer(1, 200, 400), transfer(2, 400, 500)];
        assert_eq!(parts(&transfers, 1.0), [(0, 250.0 / 300.0), (1, 0.75)]);
        assert_eq!(parts(&transfers, 0.5), [], "half a link each is no sharing");
        let three = [transfer(0, 0, 90), transfer(1, 0, 90), transfer(2, 0, 90)];
        for (_, part) in parts(&three, 1.0) {
            assert!((part - 1.0 / 3.0).abs() < 1e-12);
        }
    }

    #[test]
    fn a_large_message_needs_its_link_and_a_small_one_does_not() {
        let cluster = Catalogue::builtin().cluster("dgx-a100").unwrap();
        let used = |ranks, kib| {
            let fabric = Fabric::for_group(&cluster, &GroupPlacement::contiguous(ranks)).unwrap();
            let call = CollectiveCall::new(CollectiveKind::AllReduce, Bytes::from_kib(kib));
            LinkUse::of(&call, &fabric)
        };
        let large = used(64, 1 << 20);
        assert!(large.between > 0.95 && large.within > 0.3 && large.within <= 1.0, "{large:?}");
        assert!(used(64, 1).between < 0.1);
        let local = used(8, 1 << 20);
        assert!(local.between == 0.0 && local.within > 0.95, "{local:?}");
    }
}
