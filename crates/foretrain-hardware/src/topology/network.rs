//! Links, switches and cables of some nodes of a cluster.

use foretrain_core::{Bandwidth, InputError, Result};

use super::{Topology, clos, dragonfly, torus};
use crate::cluster::Cluster;
use crate::node::LinkKind;

/// More links are a slip of the pen, not a cluster.
const MOST_LINKS: u64 = 1 << 23;

/// A network interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nic {
    /// Its node.
    pub node: u32,
    /// Its number within the node.
    pub nic: u32,
}

/// Two links between two switches, one in each direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cable {
    pub(super) ends: [u32; 2],
    pub(super) capacity: Bandwidth,
    /// Which cables deterministic routes prefer: the dimension of a torus.
    pub(super) order: u8,
}

/// What a topology wires up.
#[derive(Clone, Debug, Default)]
pub(super) struct Wiring {
    pub(super) switches: Vec<String>,
    pub(super) cables: Vec<Cable>,
    /// Switch of each NIC, node by node.
    pub(super) leaf: Vec<u32>,
}

impl Wiring {
    pub(super) fn switch(&mut self, name: String) -> u32 {
        self.switches.push(name);
        (self.switches.len() - 1) as u32
    }
    pub(super) fn cable(&mut self, from: u32, to: u32, capacity: Bandwidth) {
        self.cables.push(Cable { ends: [from, to], capacity, order: 0 });
    }
}

/// The way from one switch to a neighbour.
#[derive(Clone, Copy, Debug)]
pub(super) struct Port {
    pub(super) to: u32,
    pub(super) link: u32,
    pub(super) order: u8,
}

/// Every link between the devices of some nodes, one number per direction, with payload rates.
///
/// Links are numbered from 0: those within nodes, NICs up, NICs down, cables.
#[derive(Clone, Debug)]
pub struct Network {
    pub(super) nodes: u32,
    pub(super) devices: u32,
    pub(super) nics: u32,
    /// Every pair of a node's devices has links of its own.
    meshed: bool,
    pub(super) wiring: Wiring,
    /// Of each switch, by `first_port`.
    ports: Vec<Port>,
    first_port: Vec<u32>,
    /// Number of each NIC among those of its switch, and how many those are.
    pub(super) place: Vec<(u32, u32)>,
    capacities: Vec<Bandwidth>,
    healthy: Vec<Bandwidth>,
}

impl Network {
    /// The network of the first `nodes` nodes of `cluster`.
    ///
    /// # Errors
    /// If the cluster has fewer nodes, its fabric or torus connects fewer, or the network would
    /// have more than eight million links.
    pub fn new(cluster: &Cluster, nodes: u32) -> Result<Self> {
        cluster.levels_for(nodes)?;
        let node = &cluster.node;
        let meshed =
            matches!(node.intra.kind, LinkKind::Nvlink | LinkKind::Xgmi) && node.devices > 2;
        let (devices, nics) = (node.devices.max(1), if nodes > 1 { node.nics } else { 0 });
        let within = if meshed { u64::from(devices) } else { 2 };
        let within = u64::from(nodes) * u64::from(devices) * within;
        let budget = within + 2 * u64::from(nodes) * u64::from(nics);
        let spare = MOST_LINKS.checked_sub(budget).ok_or_else(|| too_large(cluster, nodes))?;
        let plan = Plan::new(cluster, nodes, spare / 2);
        let wiring = match &cluster.fabric.topology {
            _ if nodes <= 1 => Some(Wiring::default()),
            Topology::FatTree => clos::wire(&plan),
            Topology::Dragonfly => dragonfly::wire(&plan),
            Topology::Torus { dimensions } => torus::wire(&plan, dimensions)?,
        };
        let wiring = wiring.ok_or_else(|| too_large(cluster, nodes))?;
        let mut capacities = within_nodes(cluster, nodes, meshed);
        let first = cluster.fabric.levels.first().map_or(1.0, |level| level.oversubscription);
        let nic = node.nic_bandwidth * node.nic_efficiency / first;
        capacities.extend(std::iter::repeat_n(nic, 2 * (nodes * nics) as usize));
        capacities.extend(wiring.cables.iter().flat_map(|cable| [cable.capacity; 2]));
        let mut network = Self {
            nodes,
            devices,
            nics,
            meshed,
            wiring,
            ports: Vec::new(),
            first_port: Vec::new(),
            place: Vec::new(),
            healthy: capacities.clone(),
            capacities,
        };
        network.index();
        Ok(network)
    }

    /// Sorts cables by switch, and numbers the NICs of each.
    fn index(&mut self) {
        let switches = self.wiring.switches.len();
        let base = self.cable_base();
        let mut ports: Vec<(u32, Port)> = Vec::with_capacity(2 * self.wiring.cables.len());
        for (at, cable) in self.wiring.cables.iter().enumerate() {
            let ([a, b], order) = (cable.ends, cable.order);
            let link = base + 2 * at as u32;
            ports.push((a, Port { to: b, link, order }));
            ports.push((b, Port { to: a, link: link + 1, order }));
        }
        ports.sort_by_key(|&(switch, port)| (switch, port.order));
        let mut first = vec![0u32; switches + 1];
        for (switch, _) in &ports {
            first[*switch as usize + 1] += 1;
        }
        for switch in 0..switches {
            first[switch + 1] += first[switch];
        }
        (self.ports, self.first_port) = (ports.into_iter().map(|(_, port)| port).collect(), first);
        let mut counts = vec![0u32; switches];
        for &leaf in &self.wiring.leaf {
            self.place.push((counts[leaf as usize], 0));
            counts[leaf as usize] += 1;
        }
        for (place, &leaf) in self.place.iter_mut().zip(&self.wiring.leaf) {
            place.1 = counts[leaf as usize];
        }
    }

    /// Nodes.
    pub fn nodes(&self) -> u32 {
        self.nodes
    }
    /// Devices of a node.
    pub fn devices_per_node(&self) -> u32 {
        self.devices
    }
    /// NICs of a node; none if there is only one node.
    pub fn nics_per_node(&self) -> u32 {
        self.nics
    }
    /// Names of the switches, leaves first.
    pub fn switches(&self) -> &[String] {
        &self.wiring.switches
    }
    /// Payload rate of every link as things stand.
    pub fn capacities(&self) -> &[Bandwidth] {
        &self.capacities
    }
    /// Payload rate of every link as built.
    pub fn healthy(&self) -> &[Bandwidth] {
        &self.healthy
    }
    /// Whether every pair of a node's devices has links of its own, without a switch.
    pub fn is_meshed(&self) -> bool {
        self.meshed
    }
    /// Whether a link lets anything through.
    pub fn is_alive(&self, link: u32) -> bool {
        self.capacities[link as usize].get() > 0.0
    }
    /// Whether both directions of a NIC let anything through.
    pub fn has_nic(&self, nic: Nic) -> bool {
        self.is_alive(self.nic_up(nic)) && self.is_alive(self.nic_down(nic))
    }
    /// Whether a link belongs to an end point, not to the fabric: one within a node, or a NIC.
    pub fn is_end_point(&self, link: u32) -> bool {
        link < self.cable_base()
    }

    /// The links from one device of a node to another, in order.
    pub fn within(&self, node: u32, from: u32, to: u32) -> [Option<u32>; 2] {
        let (first, devices) = (node * self.devices, self.devices);
        match self.meshed {
            _ if from == to => [None, None],
            true => [Some((first + from) * devices + to), None],
            false => [Some(first + from), Some(self.nodes * devices + first + to)],
        }
    }
    /// From a NIC to its switch.
    pub fn nic_up(&self, nic: Nic) -> u32 {
        self.nic_base() + nic.node * self.nics + nic.nic
    }
    /// From its switch to a NIC.
    pub fn nic_down(&self, nic: Nic) -> u32 {
        self.nic_up(nic) + self.nodes * self.nics
    }

    fn nic_base(&self) -> u32 {
        self.nodes * self.devices * if self.meshed { self.devices } else { 2 }
    }
    pub(super) fn cable_base(&self) -> u32 {
        self.nic_base() + 2 * self.nodes * self.nics
    }
    pub(super) fn leaf(&self, nic: Nic) -> u32 {
        self.wiring.leaf[(nic.node * self.nics + nic.nic) as usize]
    }
    pub(super) fn ports(&self, switch: u32) -> &[Port] {
        let at = switch as usize;
        &self.ports[self.first_port[at] as usize..self.first_port[at + 1] as usize]
    }
    /// The same cable the other way.
    pub(super) fn reverse(&self, link: u32) -> u32 {
        let base = self.cable_base();
        base + ((link - base) ^ 1)
    }
    pub(super) fn set_capacity(&mut self, link: u32, share: f64) {
        self.capacities[link as usize] = self.healthy[link as usize] * share;
    }

    /// A link's name: `node3.device2 out`, `node3.nic1 up`, `leaf2-spine0 (up)`.
    pub fn link_name(&self, link: u32) -> String {
        let per_node = |at: u32, each: u32| (at / each, at % each);
        let (nics, cables) = (self.nic_base(), self.cable_base());
        if link >= cables {
            let at = (link - cables) as usize;
            let [a, b] =
                self.wiring.cables[at / 2].ends.map(|end| &self.wiring.switches[end as usize]);
            return if at.is_multiple_of(2) {
                format!("{a}-{b} (from {a})")
            } else {
                format!("{a}-{b} (from {b})")
            };
        }
        if link >= nics {
            let (at, way) = match (link - nics).checked_sub(self.nodes * self.nics) {
                Some(at) => (at, "down"),
                None => (link - nics, "up"),
            };
            let (node, nic) = per_node(at, self.nics);
            return format!("node{node}.nic{nic} {way}");
        }
        if self.meshed {
            let (from, to) = per_node(link, self.devices);
            let (node, from) = per_node(from, self.devices);
            return format!("node{node}.device{from} to device{to}");
        }
        let (at, way) = match link.checked_sub(self.nodes * self.devices) {
            Some(at) => (at, "in"),
            None => (link, "out"),
        };
        let (node, device) = per_node(at, self.devices);
        format!("node{node}.device{device} {way}")
    }
}

/// In a mesh a device's rate is spread over its peers; otherwise it has it both ways.
fn within_nodes(cluster: &Cluster, nodes: u32, meshed: bool) -> Vec<Bandwidth> {
    let node = &cluster.node;
    let devices = node.devices.max(1);
    let rate = node.intra.payload_bandwidth();
    let (rate, each) = if meshed { (rate / f64::from(devices - 1), devices) } else { (rate, 2) };
    vec![rate; nodes as usize * devices as usize * each as usize]
}

fn too_large(cluster: &Cluster, nodes: u32) -> InputError {
    InputError::new(format!(
        "the network of {nodes} nodes of {} has more than {MOST_LINKS} links",
        cluster.name
    ))
    .hint("ask about fewer nodes")
}

/// What a topology needs to know to wire `nodes` nodes.
pub(super) struct Plan<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) nodes: u32,
    pub(super) nics: u32,
    /// Payload rate between a NIC and its switch.
    pub(super) nic: Bandwidth,
    /// Most cables.
    pub(super) cables: u64,
}

impl<'a> Plan<'a> {
    fn new(cluster: &'a Cluster, nodes: u32, cables: u64) -> Self {
        let node = &cluster.node;
        let first = cluster.fabric.levels.first().map_or(1.0, |level| level.oversubscription);
        let nic = node.nic_bandwidth * node.nic_efficiency / first;
        Self { cluster, nodes, nics: node.nics, nic, cables }
    }
}
