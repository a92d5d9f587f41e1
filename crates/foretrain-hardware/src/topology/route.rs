//! Which links a flow takes from one NIC to another.
//!
//! All routings but Valiant's follow shortest paths over links that are alive, so a dead link is
//! avoided wherever another way exists.

use serde::Serialize;

use super::network::{Network, Nic, Port};

/// A link and the share of the flow that takes it.
pub type Hop = (u32, f64);

/// Distances are kept for as many switches as fit into this many bytes.
const MOST_DISTANCE_BYTES: usize = 1 << 28;
/// Distance of what cannot be reached.
const FAR: u16 = u16::MAX;
/// Detours that a flow is spread over.
const DETOURS: usize = 16;

/// How a flow chooses among equally short paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Routing {
    /// By destination, in turn: what a subnet manager sets up. On a torus dimension by dimension.
    Deterministic,
    /// Each flow by a hash, as switches do without more knowledge.
    Ecmp {
        /// Other seeds give other choices.
        seed: u64,
    },
    /// Every flow over all of them, by what each link can carry: packet spraying, and what
    /// adaptive routing strives for.
    Spray,
    /// Every flow by detours over switches chosen by a hash, spraying on both halves.
    Valiant {
        /// Other seeds give other choices.
        seed: u64,
    },
}

/// Finds routes over a network, and remembers distances between its switches.
pub struct Router<'a> {
    network: &'a Network,
    routing: Routing,
    /// Hops from every switch to one, for those that were asked for.
    distances: Vec<Option<Box<[u16]>>>,
    known: usize,
}

impl<'a> Router<'a> {
    /// A router for a network as it stands.
    pub fn new(network: &'a Network, routing: Routing) -> Self {
        let distances = vec![None; network.switches().len()];
        Self { network, routing, distances, known: 0 }
    }

    /// The network it routes over.
    pub fn network(&self) -> &'a Network {
        self.network
    }

    /// The links from one NIC to another, NICs included. `flow` tells flows between the same NICs
    /// apart where routes go by a hash. `None` if dead links cut the two off.
    ///
    /// # Panics
    /// If the network does not have these NICs.
    pub fn route(&mut self, from: Nic, to: Nic, flow: u64) -> Option<Vec<Hop>> {
        let network = self.network;
        let (up, down) = (network.nic_up(from), network.nic_down(to));
        if !network.is_alive(up) || !network.is_alive(down) {
            return None;
        }
        let mut hops = vec![(up, 1.0)];
        let (start, end) = (network.leaf(from), network.leaf(to));
        let (port, ports) = network.place[(to.node * network.nics + to.nic) as usize];
        let key = u64::from(end) * u64::from(ports) + u64::from(port);
        let salt = mix(mix(u64::from(up), u64::from(down)), flow);
        match self.routing {
            Routing::Deterministic => self.walk(start, end, &mut hops, by_destination(key)),
            Routing::Ecmp { seed } => self.walk(start, end, &mut hops, by_hash(mix(seed, salt))),
            Routing::Spray => self.spray(start, end, 1.0, &mut hops),
            Routing::Valiant { seed } => self.detour(start, end, mix(seed, salt), &mut hops),
        }?;
        hops.push((down, 1.0));
        Some(hops)
    }

    /// One shortest path; `choose` picks among equal ports.
    fn walk(
        &mut self,
        start: u32,
        end: u32,
        hops: &mut Vec<Hop>,
        mut choose: impl FnMut(u32, &[Port]) -> Port,
    ) -> Option<()> {
        let network = self.network;
        let distance = self.distances_to(end);
        let mut ports = Vec::new();
        let mut at = start;
        while at != end {
            nearer(network, distance, at, &mut ports)?;
            let port = choose(at, &ports);
            hops.push((port.link, 1.0));
            at = port.to;
        }
        Some(())
    }

    /// All shortest paths, each switch spreading what it has over its ports by their rates.
    fn spray(&mut self, start: u32, end: u32, share: f64, hops: &mut Vec<Hop>) -> Option<()> {
        let network = self.network;
        let distance = self.distances_to(end);
        let mut ports = Vec::new();
        let mut front = vec![(start, share)];
        // All of `front` are equally far from the end.
        while front.iter().any(|&(at, _)| at != end) {
            let mut next: Vec<(u32, f64)> = Vec::new();
            for &(at, share) in &front {
                nearer(network, distance, at, &mut ports)?;
                let rate = |port: &Port| network.capacities()[port.link as usize].get();
                let total: f64 = ports.iter().map(rate).sum();
                for port in &ports {
                    let part = share * rate(port) / total;
                    hops.push((port.link, part));
                    next.push((port.to, part));
                }
            }
            next.sort_by_key(|&(at, _)| at);
            next.dedup_by(|other, kept| {
                let same = other.0 == kept.0;
                if same {
                    kept.1 += other.1;
                }
                same
            });
            front = next;
        }
        Some(())
    }

    /// Equal parts over several switches in between; those cut off are left out.
    fn detour(&mut self, start: u32, end: u32, salt: u64, hops: &mut Vec<Hop>) -> Option<()> {
        let leaves = &self.network.wiring.leaf;
        let mut via: Vec<u32> = (0..DETOURS as u64)
            .map(|way| leaves[(mix(salt, way) % leaves.len() as u64) as usize])
            .collect();
        via.retain(|&by| {
            self.distances_to(by)[start as usize] != FAR
                && self.distances_to(end)[by as usize] != FAR
        });
        if start == end || via.is_empty() {
            return self.spray(start, end, 1.0, hops);
        }
        let share = 1.0 / via.len() as f64;
        for by in via {
            self.spray(start, by, share, hops)?;
            self.spray(by, end, share, hops)?;
        }
        Some(())
    }

    /// Hops from every switch to `end`, by breadth-first search backwards.
    fn distances_to(&mut self, end: u32) -> &[u16] {
        let switches = self.distances.len();
        if self.distances[end as usize].is_none() {
            if (self.known + 1) * switches * 2 > MOST_DISTANCE_BYTES {
                self.distances.fill(None);
                self.known = 0;
            }
            self.known += 1;
        }
        let network = self.network;
        self.distances[end as usize].get_or_insert_with(|| {
            let mut distance = vec![FAR; switches];
            distance[end as usize] = 0;
            let mut queue = vec![end];
            let mut at = 0;
            while let Some(&switch) = queue.get(at) {
                at += 1;
                for port in network.ports(switch) {
                    if distance[port.to as usize] == FAR
                        && network.is_alive(network.reverse(port.link))
                    {
                        distance[port.to as usize] = distance[switch as usize] + 1;
                        queue.push(port.to);
                    }
                }
            }
            distance.into_boxed_slice()
        })
    }
}

/// The live ports of a switch that lead one hop nearer; `None` if there are none.
fn nearer(network: &Network, distance: &[u16], at: u32, ports: &mut Vec<Port>) -> Option<()> {
    let here = distance[at as usize];
    let leads = |port: &&Port| {
        let there = distance[port.to as usize];
        here != FAR && there.checked_add(1) == Some(here) && network.is_alive(port.link)
    };
    ports.clear();
    ports.extend(network.ports(at).iter().filter(leads));
    if ports.is_empty() { None } else { Some(()) }
}

/// Destinations in turn: those of one leaf over the first choice, leaves over the next.
fn by_destination(mut key: u64) -> impl FnMut(u32, &[Port]) -> Port {
    move |_, ports| {
        let first = ports.iter().filter(|port| port.order == ports[0].order).count() as u64;
        let port = ports[(key % first) as usize];
        key /= first;
        port
    }
}

fn by_hash(salt: u64) -> impl FnMut(u32, &[Port]) -> Port {
    move |at, ports| ports[(mix(salt, u64::from(at)) % ports.len() as u64) as usize]
}

/// A good hash of two numbers (the finaliser of splitmix64).
fn mix(a: u64, b: u64) -> u64 {
    let mut z = a.rotate_left(32) ^ b.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
