//! The way from a device to its host.

use foretrain_core::Bandwidth;
use foretrain_hardware::Cluster;

/// Rates between a device and its host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Host {
    /// Copies between device and host, one direction.
    pub copy_bandwidth: Bandwidth,
    /// A device's share of the host's memory.
    pub memory_bandwidth_per_device: Bandwidth,
}

/// Host memory of a two-socket server; an assumption where the catalogue has no figure.
const MEMORY_GB_PER_SECOND: f64 = 300.0;
/// What copies reach of PCIe x16 per generation: 12 GB/s with the third, doubling with each.
const COPY_GB_PER_SECOND_OF_THIRD: f64 = 12.0;

impl Host {
    /// Of a node of `cluster`.
    pub fn of(cluster: &Cluster) -> Self {
        let node = &cluster.node;
        let generation = node.pcie_generation.unwrap_or(4).clamp(1, 7);
        let copy = COPY_GB_PER_SECOND_OF_THIRD * 2_f64.powi(generation.cast_signed() - 3);
        let devices = f64::from(node.devices.max(1));
        Self {
            copy_bandwidth: Bandwidth::from_gb_per_sec(copy),
            memory_bandwidth_per_device: Bandwidth::from_gb_per_sec(MEMORY_GB_PER_SECOND / devices),
        }
    }
}
