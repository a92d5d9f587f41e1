//! How much of a link a collective's bytes take.

use foretrain_core::{Bytes, Nanos, Result};
use foretrain_hardware::topology::Network;
use foretrain_hardware::{Cluster, Fabric as Switches};

use super::group::Group;
use super::transfers::{Transfer, Way, transfers};
use crate::collective::{CollectiveCall, CollectiveTime, Fabric, GroupPlacement, collective_time};

/// A message whose launch and protocol no longer matter.
const LARGE: Bytes = Bytes::from_gib(16);

/// A collective as the closed form sees it, and how its bytes turn into flows.
pub(super) struct Calibrated {
    pub(super) closed: CollectiveTime,
    /// Bytes that a flow's byte counts for.
    pub(super) weight: f64,
    /// Time that the flows take if nothing but the library limits them.
    pub(super) least: f64,
}

impl Calibrated {
    pub(super) fn new(
        call: &CollectiveCall,
        group: &Group,
        network: &Network,
        fabric: &Fabric,
        crosses: bool,
    ) -> Result<Self> {
        let closed = collective_time(call, fabric);
        let bound = |call: &CollectiveCall, time: &CollectiveTime| {
            let what = (call.kind, time.algorithm, call.bytes.as_f64());
            transfers(group, network, crosses, what).map(|list| busiest(network, &list))
        };
        let large = CollectiveCall { bytes: LARGE, ..*call };
        let of_large = collective_time(&large, fabric);
        // A CPU library's own limit, one thread's copying, does not fill a link.
        let weight = match (fabric.library.is_nccl_like(), of_large.terms.transfer) {
            (false, _) | (_, Nanos::ZERO | Nanos::MAX) => 1.0,
            (true, transfer) => transfer.nanos() as f64 / bound(&large, &of_large)?,
        };
        let least = closed.terms.transfer.nanos() as f64;
        let weight = if weight.is_finite() { weight } else { 1.0 };
        Ok(Self { closed, weight, least })
    }
}

/// Nanoseconds that the busiest end point of these transfers needs on healthy links.
fn busiest(network: &Network, list: &[Transfer]) -> f64 {
    let mut load = vec![0.0; network.healthy().len()];
    for &(way, bytes) in list {
        end_points(network, way)
            .into_iter()
            .flatten()
            .for_each(|link| load[link as usize] += bytes);
    }
    let times = load.iter().zip(network.healthy()).filter(|(load, _)| **load > 0.0);
    times.map(|(load, rate)| load / rate.get() * 1e9).fold(0.0, f64::max)
}

/// The links that a transfer certainly takes: all within a node, and the NICs between nodes.
pub(super) fn end_points(network: &Network, way: Way) -> [Option<u32>; 2] {
    match way {
        Way::Within { node, from, to } => network.within(node, from, to),
        Way::Switch { node, device } => {
            let peer = u32::from(device == 0);
            let ([out, _], [_, into]) =
                (network.within(node, device, peer), network.within(node, peer, device));
            [out, into]
        }
        Way::Between { from, to } => [Some(network.nic_up(from)), Some(network.nic_down(to))],
    }
}

/// The closed form's view of a group of any placement: as many ranks on as many nodes, alone, on a
/// fabric that is never the limit.
pub(super) fn fabric_of(cluster: &Cluster, group: &Group) -> Result<Fabric> {
    let mut ample = cluster.clone();
    ample.nodes = None;
    let levels = &cluster.fabric.levels;
    if let Some(last) = levels.last() {
        let nodes = foretrain_hardware::Level::UNBOUNDED;
        let level = foretrain_hardware::Level { nodes, oversubscription: 1.0, ..last.clone() };
        ample.fabric = Switches { levels: vec![level], ..cluster.fabric.clone() };
    }
    let (ranks, local) = (group.ranks.len() as u32, group.most_local());
    let devices = cluster.devices_per_node().max(1);
    let stride = (devices / local.max(1)).max(1);
    let placement = GroupPlacement::strided(ranks, stride).concurrent_groups(1);
    let mut fabric = if group.hosts.len() == 1 {
        Fabric::for_group(&ample, &GroupPlacement::contiguous(ranks))?
    } else {
        Fabric::for_group(&ample, &placement)?
    };
    fabric.nodes = group.hosts.len() as u32;
    fabric.ranks_per_node = local;
    let farthest = group.hosts.iter().map(|host| host.node + 1).max().unwrap_or(1);
    let nearest = levels.first().map_or(Nanos::ZERO, |level| level.latency);
    let beyond = cluster.latency_among(farthest)? - nearest;
    fabric.inter.extra_latency = beyond.clamp_positive();
    Ok(fabric)
}
