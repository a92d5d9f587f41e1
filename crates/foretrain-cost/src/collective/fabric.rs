//! What the collective model knows of the machines under a communicator.

use std::sync::Arc;

use foretrain_core::{Bandwidth, Nanos};
use foretrain_hardware::{CpuVendor, LinkKind, NicKind};
use serde::Serialize;

use super::knowledge::Calibrated;
use super::time::Method;
use crate::nccl_tuner::Version;

/// Who runs the collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Library {
    /// NVIDIA's.
    Nccl(Version),
    /// AMD's, with NCCL's structure.
    Rccl,
    /// Another vendor's device library, taken to have NCCL's structure.
    Vendor,
    /// PyTorch's CPU backend over TCP.
    Gloo,
    /// An MPI with host buffers.
    Mpi,
}

impl Library {
    /// Runs on devices with NCCL's algorithms.
    pub const fn is_nccl_like(self) -> bool {
        matches!(self, Self::Nccl(_) | Self::Rccl | Self::Vendor)
    }
    /// The name people use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Nccl(_) => "NCCL",
            Self::Rccl => "RCCL",
            Self::Vendor => "the vendor's library",
            Self::Gloo => "Gloo",
            Self::Mpi => "MPI",
        }
    }
}

/// Between the ranks of a node.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct IntraLink {
    /// What it is.
    pub kind: LinkKind,
    /// Its generation, where known.
    pub generation: Option<u32>,
    /// Payload rate of one rank in one direction.
    pub bandwidth: Bandwidth,
}

/// Between nodes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct InterLink {
    /// What the NICs speak.
    pub kind: NicKind,
    /// Payload rate, one direction, that this group has on a node: its NICs' or its share of them.
    pub bandwidth: Bandwidth,
    /// Added to a hop for switches beyond the first.
    pub extra_latency: Nanos,
    /// Links of the ring that are later than the others.
    pub late: Option<LateLinks>,
}

impl InterLink {
    /// NICs of a kind that give a group `bandwidth`, without further latency.
    pub const fn new(kind: NicKind, bandwidth: Bandwidth) -> Self {
        Self { kind, bandwidth, extra_latency: Nanos::ZERO, late: None }
    }
}

/// Links with more latency than the others: a long cable, a congested switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LateLinks {
    /// How many of the ring's.
    pub links: u32,
    /// One way, on top of the usual.
    pub latency: Nanos,
}

/// A switching level above the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SwitchLevel {
    /// Nodes of this group that meet at this level.
    pub nodes: u32,
    /// Oversubscription at its entry, at least 1.
    pub oversubscription: f64,
}

/// A communicator's machines.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fabric {
    /// Ranks of the group.
    pub ranks: u32,
    /// Nodes they are on.
    pub nodes: u32,
    /// Most ranks on one node.
    pub ranks_per_node: u32,
    /// Between the ranks of a node.
    pub intra: IntraLink,
    /// Between the nodes.
    pub inter: InterLink,
    /// The switches between the nodes reduce what passes them.
    pub in_network_reduction: bool,
    /// Levels that the group's traffic passes, nearest the nodes first.
    pub levels: Vec<SwitchLevel>,
    /// CUDA compute capability of the devices.
    pub compute_capability: Option<(u32, u32)>,
    /// Host CPU's maker.
    pub cpu: CpuVendor,
    /// Rate at which a rank can reduce (two reads and a write); `None` if it is never the limit.
    pub reduce_bandwidth: Option<Bandwidth>,
    /// Who runs the collective.
    pub library: Library,
    /// The algorithm that a device library is told to take (`NCCL_ALGO`), where it has it for the
    /// collective.
    pub forced: Option<Method>,
    /// What was measured of this cluster's collectives.
    #[serde(skip)]
    pub calibrated: Option<Arc<Calibrated>>,
}

impl Fabric {
    /// A group of one rank, which needs no fabric.
    pub fn single() -> Self {
        Self {
            ranks: 1,
            nodes: 1,
            ranks_per_node: 1,
            intra: IntraLink { kind: LinkKind::None, generation: None, bandwidth: Bandwidth::ZERO },
            inter: InterLink::new(NicKind::None, Bandwidth::ZERO),
            in_network_reduction: false,
            levels: Vec::new(),
            compute_capability: None,
            cpu: CpuVendor::Other,
            reduce_bandwidth: None,
            library: Library::Nccl(Version::LATEST),
            forced: None,
            calibrated: None,
        }
    }

    /// Whether 128-byte stores arrive whole between the devices of a node, as LL128 needs.
    pub(super) fn stores_128(&self) -> bool {
        self.intra.kind.is_nvlink()
    }

    /// The generation of NVLink with multicast and reduction in the switch (NVLink SHARP).
    pub fn has_nvls(&self) -> bool {
        let version = match self.library {
            Library::Nccl(version) => version >= Version(2, 17),
            _ => false,
        };
        version && self.intra.kind == LinkKind::Nvswitch && self.intra.generation >= Some(4)
    }

    /// What a node's share of a neighbour-to-neighbour flow (ring, tree) gets between nodes.
    ///
    /// Ranks are taken to be numbered along the topology, so a level's uplink carries the flow of
    /// one node, not of all below it, and slows it only if oversubscribed by more than their count.
    pub fn neighbour_bandwidth(&self) -> Bandwidth {
        self.inter.bandwidth / self.narrowing(f64::from)
    }

    /// What a node gets when every node sends to all others at once.
    pub fn bisection_bandwidth(&self) -> Bandwidth {
        self.inter.bandwidth / self.narrowing(|_| 1.0)
    }

    /// The largest ratio over the levels of cumulated oversubscription to `relief(nodes below)`.
    fn narrowing(&self, relief: impl Fn(u32) -> f64) -> f64 {
        let (mut below, mut oversubscription, mut worst) = (1u32, 1.0f64, 1.0f64);
        for level in &self.levels {
            oversubscription *= level.oversubscription.max(1.0);
            worst = worst.max(oversubscription / relief(below).max(1.0));
            below = level.nodes.clamp(1, self.nodes.max(1));
        }
        worst
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oversubscription_slows_all_to_all_before_rings() {
        let level = |nodes, oversubscription| SwitchLevel { nodes, oversubscription };
        let inter = InterLink::new(NicKind::Infiniband, Bandwidth::from_gb_per_sec(200.0));
        let fabric = Fabric {
            ranks: 512,
            nodes: 64,
            ranks_per_node: 8,
            inter,
            levels: vec![level(4, 1.0), level(64, 8.0)],
            ..Fabric::single()
        };
        assert_eq!(fabric.bisection_bandwidth().gb_per_sec(), 25.0);
        // Four nodes under a leaf, one of which crosses at a time.
        assert_eq!(fabric.neighbour_bandwidth().gb_per_sec(), 100.0);
    }
}
