//! Where the ranks of a group are, and which NICs they use.

use foretrain_core::{InputError, Result};
use foretrain_hardware::topology::{Network, Nic};

/// The members of a group on one node.
#[derive(Clone, Debug)]
pub(super) struct Host {
    pub(super) node: u32,
    /// Devices of the node, in the order of ranks.
    pub(super) devices: Vec<u32>,
    /// NICs that the members use for what all of them send, one per rail.
    pub(super) rails: Vec<u32>,
}

/// A group placed on a network.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// Node and device of each rank.
    pub(super) ranks: Vec<(u32, u32)>,
    /// Nodes in the order of their first rank.
    pub(super) hosts: Vec<Host>,
}

impl Group {
    /// # Errors
    /// For an empty group, one that names a device twice or one that the network does not have,
    /// and for nodes without a live NIC.
    pub(super) fn new(devices: &[u32], network: &Network) -> Result<Self> {
        let each = network.devices_per_node();
        if devices.is_empty() {
            return Err(InputError::new("a group needs at least one device, found none"));
        }
        let mut sorted = devices.to_vec();
        sorted.sort_unstable();
        if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(InputError::new(format!("a group names device {} twice", twice[0]))
                .hint("give each rank of the group a device of its own"));
        }
        let ranks: Vec<(u32, u32)> = devices.iter().map(|at| (at / each, at % each)).collect();
        let mut place = vec![usize::MAX; network.nodes() as usize];
        let mut hosts: Vec<Host> = Vec::new();
        for &(node, device) in &ranks {
            let at = &mut place[node as usize];
            if *at == usize::MAX {
                *at = hosts.len();
                hosts.push(Host { node, devices: Vec::new(), rails: Vec::new() });
            }
            hosts[*at].devices.push(device);
        }
        let mut group = Self { ranks, hosts };
        if group.hosts.len() > 1 {
            group.choose_rails(network)?;
        }
        Ok(group)
    }

    /// Most ranks on one node.
    pub(super) fn most_local(&self) -> u32 {
        self.hosts.iter().map(|host| host.devices.len()).max().unwrap_or(0) as u32
    }

    /// Each node's live NICs nearest its members, as many as the closed form grants and all nodes
    /// have; the same numbers on all nodes where possible.
    fn choose_rails(&mut self, network: &Network) -> Result<()> {
        let (nics, devices) = (network.nics_per_node(), network.devices_per_node());
        let wanted = self.most_local().saturating_mul((nics / devices).max(1)).min(nics) as usize;
        for at in 0..self.hosts.len() {
            let host = &mut self.hosts[at];
            host.rails = live_nics(network, host.node, &host.devices);
            host.rails.truncate(wanted);
            host.rails.sort_unstable();
            if host.rails.is_empty() {
                let node = host.node;
                return Err(self.cut_off(|rank| rank.0 == node));
            }
        }
        let fewest = self.hosts.iter().map(|host| host.rails.len()).min().unwrap_or(0);
        let first = self.hosts[0].rails.clone();
        let everywhere = |nic: &u32| self.hosts.iter().all(|host| host.rails.contains(nic));
        let common: Vec<u32> = first.into_iter().filter(everywhere).collect();
        for host in &mut self.hosts {
            if common.len() == fewest {
                host.rails.clone_from(&common);
            } else {
                host.rails.truncate(fewest);
            }
        }
        Ok(())
    }

    /// The error for ranks that nothing connects with the others.
    pub(super) fn cut_off(&self, is_cut: impl Fn(&(u32, u32)) -> bool) -> InputError {
        const MOST: usize = 8;
        let cut: Vec<usize> =
            (0..self.ranks.len()).filter(|&rank| is_cut(&self.ranks[rank])).collect();
        let named = cut.iter().take(MOST).map(|&rank| {
            let (node, device) = self.ranks[rank];
            format!("rank {rank} (device {device} of node {node})")
        });
        let named: Vec<String> = named.collect();
        let more = match cut.len().saturating_sub(MOST) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        InputError::new(format!("dead links cut off {}{more}", named.join(", ")))
            .hint("leave one way to every node, or leave these ranks out of the group")
    }
}

/// Live NICs of a node, those next to the given devices first, then by number.
pub(super) fn live_nics(network: &Network, node: u32, near: &[u32]) -> Vec<u32> {
    let (nics, devices) = (network.nics_per_node(), network.devices_per_node());
    let each = (nics / devices.max(1)).max(1);
    let mut order: Vec<u32> = Vec::new();
    for device in near {
        let first = (u64::from(*device) * u64::from(nics) / u64::from(devices)) as u32;
        order.extend(first..(first + each).min(nics));
    }
    let nearest = order.first().copied().unwrap_or(0);
    order.extend((0..nics).map(|at| (nearest + at) % nics));
    let mut seen = vec![false; nics as usize];
    order.retain(|&nic| {
        !std::mem::replace(&mut seen[nic as usize], true) && network.has_nic(Nic { node, nic })
    });
    order
}
