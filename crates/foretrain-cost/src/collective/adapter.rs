//! From a cluster of the catalogue to the fabric under one group of ranks.

use foretrain_core::{Bandwidth, InputError, Nanos, Result};
use foretrain_hardware::{Cluster, DeviceKind, NicKind, Node};

use super::fabric::{Fabric, InterLink, IntraLink, Library, SwitchLevel};
use crate::nccl_tuner::Version;

/// Where the ranks of a group sit: rank `i` of the group on device `i * stride` of the cluster,
/// devices counted node by node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupPlacement {
    ranks: u32,
    stride: u32,
    concurrent: Option<u32>,
}

impl GroupPlacement {
    /// Neighbouring devices: a tensor-parallel group, or data parallelism over the whole job.
    pub const fn contiguous(ranks: u32) -> Self {
        Self { ranks, stride: 1, concurrent: None }
    }

    /// Every `stride`-th device: a data-parallel group beside tensor-parallel ones of `stride`
    /// ranks. A stride of 0 counts as 1.
    ///
    /// The groups that start on the devices in between are taken to communicate at the same time
    /// and to share the NICs; see [`concurrent_groups`](Self::concurrent_groups).
    pub const fn strided(ranks: u32, stride: u32) -> Self {
        Self { ranks, stride: if stride == 0 { 1 } else { stride }, concurrent: None }
    }

    /// How many such groups use a node's NICs at once, this one included; at least 1.
    #[must_use]
    pub const fn concurrent_groups(mut self, groups: u32) -> Self {
        self.concurrent = Some(if groups == 0 { 1 } else { groups });
        self
    }

    /// Ranks of the group.
    pub const fn ranks(&self) -> u32 {
        self.ranks
    }
    /// Devices from one rank to the next.
    pub const fn stride(&self) -> u32 {
        self.stride
    }

    /// Most of the group's ranks on a node of `devices`.
    fn ranks_per_node(&self, devices: u32) -> u32 {
        devices.div_ceil(self.stride).clamp(1, self.ranks.max(1))
    }
}

impl Fabric {
    /// The fabric under `group` on `cluster`.
    ///
    /// # Errors
    /// For a group without ranks, and for one that the cluster cannot hold: too few nodes, nodes
    /// without NICs, or a fabric that ends too soon; for a calibration of no known collective.
    pub fn for_group(cluster: &Cluster, group: &GroupPlacement) -> Result<Self> {
        if group.ranks == 0 {
            return Err(InputError::new("a group needs at least one rank, found 0"));
        }
        let node = &cluster.node;
        let devices = node.devices.max(1);
        let span = u64::from(group.ranks - 1) * u64::from(group.stride) + 1;
        let spanned = cluster.nodes_for(span)?;
        let ranks_per_node = group.ranks_per_node(devices);
        let nodes = spanned.min(group.ranks.div_ceil(ranks_per_node));
        let spacing = (group.stride / devices).max(1);
        let levels = cluster.levels_for(spanned)?;
        let latency = |level: Option<&foretrain_hardware::Level>| {
            level.map_or(Nanos::ZERO, |level| level.latency)
        };
        let kind = node.nic_kind;
        let beyond_first = latency(levels.last()) - latency(levels.first());
        let fabric = Self {
            ranks: group.ranks,
            nodes,
            ranks_per_node,
            intra: intra_link(node, ranks_per_node),
            inter: InterLink {
                kind,
                bandwidth: node_share(node, group, ranks_per_node),
                extra_latency: beyond_first.clamp_positive(),
                late: None,
            },
            in_network_reduction: cluster.fabric.in_network_reduction,
            levels: levels
                .iter()
                .map(|level| SwitchLevel {
                    nodes: (level.nodes / spacing).clamp(1, nodes),
                    oversubscription: level.oversubscription,
                })
                .collect(),
            compute_capability: node.device.compute_capability,
            cpu: node.cpu_vendor,
            reduce_bandwidth: reduce_bandwidth(node),
            library: library(node),
            forced: None,
            calibrated: None,
        };
        match &cluster.collectives {
            Some(calibration) => fabric.calibrated_by(calibration),
            None => Ok(fabric),
        }
    }
}

/// In a mesh without a switch a rank only uses the links to its peers.
fn intra_link(node: &Node, ranks: u32) -> IntraLink {
    use foretrain_hardware::LinkKind::{Nvlink, Xgmi};
    let link = &node.intra;
    let meshed = matches!(link.kind, Nvlink | Xgmi) && node.devices > 2;
    let share = if meshed && ranks > 1 {
        f64::from(ranks.min(node.devices) - 1) / f64::from(node.devices - 1)
    } else {
        1.0
    };
    IntraLink {
        kind: link.kind,
        generation: link.generation,
        bandwidth: link.payload_bandwidth() * share,
    }
}

/// What the group gets of a node's NICs. A rank drives the NICs nearest to it, and groups that
/// communicate at the same time share.
fn node_share(node: &Node, group: &GroupPlacement, ranks_per_node: u32) -> Bandwidth {
    let devices = node.devices.max(1);
    let beside = group.concurrent.unwrap_or_else(|| group.stride.min(devices));
    let payload = node.nic_bandwidth * node.nic_efficiency;
    let reachable = ranks_per_node.saturating_mul((node.nics / devices).max(1)).min(node.nics);
    let fair = f64::from(node.nics) / f64::from(beside.max(1));
    payload * fair.min(f64::from(reachable))
}

fn reduce_bandwidth(node: &Node) -> Option<Bandwidth> {
    let rate = node.device.memory_bandwidth;
    // Two reads and a write per byte.
    (node.device.kind != DeviceKind::Cpu && rate.get() > 0.0).then(|| rate / 3.0)
}

fn library(node: &Node) -> Library {
    match (node.device.kind, node.device.vendor.as_str()) {
        (DeviceKind::Cpu, _) if matches!(node.nic_kind, NicKind::Ethernet | NicKind::None) => {
            Library::Gloo
        }
        (DeviceKind::Cpu, _) => Library::Mpi,
        (_, "nvidia") => Library::Nccl(Version::LATEST),
        (_, "amd") => Library::Rccl,
        _ => Library::Vendor,
    }
}

#[cfg(test)]
mod tests {
    use foretrain_hardware::Catalogue;

    use super::*;

    fn fabric(name: &str, group: GroupPlacement) -> Fabric {
        let cluster = Catalogue::builtin().cluster(name).unwrap();
        Fabric::for_group(&cluster, &group).unwrap()
    }

    #[test]
    fn whole_nodes_use_all_nics() {
        let f = fabric("dgx-a100", GroupPlacement::contiguous(32));
        assert_eq!((f.ranks, f.nodes, f.ranks_per_node), (32, 4, 8));
        assert!((f.inter.bandwidth.gb_per_sec() - 192.0).abs() < 1e-9);
        assert_eq!(f.library, Library::Nccl(Version::LATEST));
        let part = fabric("dgx-a100", GroupPlacement::contiguous(4));
        assert_eq!((part.nodes, part.ranks_per_node), (1, 4));
    }

    #[test]
    fn strided_groups_share_the_nics() {
        let eight = fabric("dgx-a100", GroupPlacement::strided(16, 8));
        assert_eq!((eight.nodes, eight.ranks_per_node), (16, 1));
        assert!((eight.inter.bandwidth.gb_per_sec() - 24.0).abs() < 1e-9);
        let alone = fabric("dgx-a100", GroupPlacement::strided(16, 8).concurrent_groups(1));
        assert_eq!(alone.inter.bandwidth, eight.inter.bandwidth, "one rank drives one NIC");
        let two = fabric("dgx-a100", GroupPlacement::strided(16, 2));
        assert_eq!((two.nodes, two.ranks_per_node), (4, 4));
        assert!((two.inter.bandwidth.gb_per_sec() - 96.0).abs() < 1e-9);
        let far = fabric("dgx-a100", GroupPlacement::strided(4, 64));
        assert_eq!((far.nodes, far.ranks_per_node), (4, 1));
    }

    #[test]
    fn impossible_groups_are_refused() {
        let cluster = Catalogue::builtin().cluster("pcie-8x-rtx3090").unwrap();
        let refuse = |group| Fabric::for_group(&cluster, &group).unwrap_err().to_string();
        assert!(refuse(GroupPlacement::contiguous(0)).contains("at least one rank"));
        assert!(refuse(GroupPlacement::contiguous(9)).contains("no NIC"));
        assert!(Fabric::for_group(&cluster, &GroupPlacement::strided(u32::MAX, u32::MAX)).is_err());
    }
}
