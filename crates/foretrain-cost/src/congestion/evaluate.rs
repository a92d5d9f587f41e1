//! Concurrent collectives on a network.

use foretrain_core::{Bandwidth, InputError, Nanos, Result};
use foretrain_flow::{Flow, Flows, simulate};
use foretrain_hardware::topology::{Degradation, Hop, Network, Router, Routing};
use foretrain_hardware::{Cluster, LinkKind, Topology};

use super::calibrate::{Calibrated, end_points, fabric_of};
use super::group::Group;
use super::transfers::{Way, transfers};
use crate::collective::{CollectiveCall, Method};

/// Precision of simulated ends: far below what is known of links, and it keeps routes by hash,
/// where nearly every flow has a rate of its own, affordable.
const PRECISION: f64 = 1e-3;
/// Where the library's own limit and a link's are equal, the link is named.
const LINKS_FIRST: f64 = 1.0 + 1e-6;
/// Most links of all paths together.
const MOST_HOPS: usize = 1 << 26;

/// A collective, where its ranks are, and when the last of them arrives.
#[derive(Clone, Debug, PartialEq)]
pub struct Concurrent {
    /// Device of each rank, numbered through the cluster node by node.
    pub devices: Vec<u32>,
    /// What they do.
    pub call: CollectiveCall,
    /// When.
    pub start: Nanos,
}

/// How the network is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conditions {
    /// How routes are chosen: by spraying on a dragonfly and deterministically elsewhere if `None`.
    pub routing: Option<Routing>,
    /// What is slow or dead.
    pub degradations: Vec<Degradation>,
}

/// A collective's time among others.
#[derive(Clone, Debug, PartialEq)]
pub struct CongestedTime {
    /// From its start to its end, with all the others.
    pub time: Nanos,
    /// Its part from the first byte to the last.
    pub transfer: Nanos,
    /// The least that part can be: links of its own, healthy, and a fabric that is never the limit.
    pub least_transfer: Nanos,
    /// The same time on the same network without the others.
    pub alone: Nanos,
    /// What the closed form says: links of its own, healthy, and a fabric that is never the limit.
    pub closed_form: Nanos,
    /// Its algorithm.
    pub algorithm: Method,
    /// The link that held its last flow back for the longest stretch.
    pub bottleneck: Option<String>,
}

/// Times `collectives` on `cluster`, each alone and all together.
///
/// # Errors
/// For groups that are empty, name a device twice or do not fit the cluster, what-ifs about parts
/// that do not exist, ranks that dead links cut off, and more flows than can be simulated.
pub fn congestion(
    cluster: &Cluster,
    collectives: &[Concurrent],
    conditions: &Conditions,
) -> Result<Vec<CongestedTime>> {
    let devices = collectives.iter().flat_map(|one| &one.devices).max().copied().unwrap_or(0);
    let nodes = cluster.nodes_for(u64::from(devices) + 1)?;
    let healthy = Network::new(cluster, nodes)?;
    let mut network = healthy.clone();
    for what in &conditions.degradations {
        network.degrade(what)?;
    }
    let routing = conditions.routing.unwrap_or(match cluster.fabric.topology {
        Topology::Dragonfly => Routing::Spray,
        _ => Routing::Deterministic,
    });
    let crosses = cluster.fabric.rail_optimised
        && matches!(cluster.node.intra.kind, LinkKind::Nvswitch | LinkKind::Nvlink);
    let mut router = Router::new(&network, routing);
    let mut all = Vec::with_capacity(collectives.len());
    let mut hops = 0;
    for (at, one) in collectives.iter().enumerate() {
        let named = |error: InputError| match collectives.len() {
            1 => error,
            _ => error.at(format!("collective {at}")),
        };
        let routed = Routed::new(cluster, &healthy, &mut router, one, crosses).map_err(named)?;
        hops += routed.hops;
        if hops > MOST_HOPS {
            return Err(InputError::new(format!(
                "the paths of these flows have more than {MOST_HOPS} links together"
            ))
            .hint("ask about fewer ranks, or route each flow over one path"));
        }
        all.push(routed);
    }
    let together = run(&network, &all);
    let mut times = Vec::with_capacity(all.len());
    for (routed, (transfer, bottleneck)) in all.iter().zip(together) {
        let time = routed.time(transfer);
        let alone = match all.len() {
            1 => time,
            _ => routed.time(run(&network, std::slice::from_ref(routed))[0].0),
        };
        let bottleneck = bottleneck.map(|link| network.link_name(link));
        let closed = &routed.calibrated.closed;
        let (closed_form, algorithm) = (closed.time.value, closed.algorithm);
        let least_transfer = closed.terms.transfer;
        times.push(CongestedTime {
            time,
            transfer,
            least_transfer,
            alone,
            closed_form,
            algorithm,
            bottleneck,
        });
    }
    Ok(times)
}

/// A collective's flows with their routes.
struct Routed {
    calibrated: Calibrated,
    start: Nanos,
    flows: Vec<(f64, Vec<Hop>)>,
    hops: usize,
}

impl Routed {
    fn new(
        cluster: &Cluster,
        healthy: &Network,
        router: &mut Router<'_>,
        one: &Concurrent,
        crosses: bool,
    ) -> Result<Self> {
        let network = router.network();
        let whole = Group::new(&one.devices, healthy)?;
        let fabric = fabric_of(cluster, &whole)?;
        let calibrated = Calibrated::new(&one.call, &whole, healthy, &fabric, crosses)?;
        let group = Group::new(&one.devices, network)?;
        let what = (one.call.kind, calibrated.closed.algorithm, one.call.bytes.as_f64());
        let mut flows = Vec::new();
        let mut hops = 0;
        for (way, bytes) in transfers(&group, network, crosses, what)? {
            let path = match way {
                Way::Between { from, to } => {
                    let cut = || group.cut_off(|rank| rank.0 == to.node);
                    router.route(from, to, 0).ok_or_else(cut)?
                }
                within => {
                    let links = end_points(network, within).into_iter().flatten();
                    let path: Vec<Hop> = links.map(|link| (link, 1.0)).collect();
                    if path.iter().any(|hop| !network.is_alive(hop.0)) {
                        return Err(group.cut_off(|rank| is_on_dead(network, within, *rank)));
                    }
                    path
                }
            };
            hops += path.len();
            flows.push((bytes, path));
        }
        Ok(Self { calibrated, start: one.start, flows, hops })
    }

    /// Launch and hops come before the transfer.
    fn transfer_start(&self) -> Nanos {
        let terms = &self.calibrated.closed.terms;
        self.start.saturating_add(terms.launch).saturating_add(terms.propagation)
    }

    /// The whole time with a transfer of `transfer`.
    fn time(&self, transfer: Nanos) -> Nanos {
        let reduction = self.calibrated.closed.terms.reduction;
        let before = self.transfer_start() - self.start;
        before.saturating_add(transfer).saturating_add(reduction)
    }
}

/// Whether a rank is at an end of a transfer within its node.
fn is_on_dead(network: &Network, way: Way, (node, device): (u32, u32)) -> bool {
    let dead = |links: [Option<u32>; 2]| links.into_iter().flatten().any(|l| !network.is_alive(l));
    match way {
        Way::Within { node: at, from, to } => {
            at == node && (device == from || device == to) && dead(end_points(network, way))
        }
        Way::Switch { node: at, device: own } => at == node && device == own,
        Way::Between { .. } => false,
    }
}

/// Transfer time of each collective, and the link that held it up.
fn run(network: &Network, all: &[Routed]) -> Vec<(Nanos, Option<u32>)> {
    let mut flows = Flows::new();
    for routed in all {
        let Calibrated { weight, least, .. } = routed.calibrated;
        for (bytes, path) in &routed.flows {
            let size = bytes * weight;
            // The library itself needs `least` for its part.
            let rate = if least > 0.0 { size / least * 1e9 } else { f64::INFINITY };
            let cap = Bandwidth::from_bytes_per_sec(rate * LINKS_FIRST);
            flows.push(Flow { start: routed.transfer_start(), cap, ..Flow::new(size) }, path);
        }
    }
    let outcome = simulate(network.capacities(), &flows, PRECISION);
    let mut first = 0;
    let mut times = Vec::with_capacity(all.len());
    for routed in all {
        let range = first..first + routed.flows.len();
        first = range.end;
        let last = range.max_by_key(|&flow| outcome.ends[flow]);
        let transfer = match last.map(|flow| outcome.ends[flow]) {
            None => Nanos::ZERO,
            Some(Nanos::MAX) => Nanos::MAX,
            Some(end) => end - routed.transfer_start(),
        };
        times.push((transfer, last.and_then(|flow| outcome.limits[flow])));
    }
    times
}
