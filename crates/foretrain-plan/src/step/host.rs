//! The way from a device to its host.

use foretrain_core::Bandwidth;
use foretrain_hardware::Cluster;

/// Rates between a device and its host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Host {
    /// Copies between device and host, one direction.
    pub copy_bandwidth: Bandwidth,
    /// Time of interpreter-driven work against an AMD EPYC 7742.
    pub pace: f64,
    /// A device's share of the host's memory.
    pub memory_bandwidth_per_device: Bandwidth,
}

/// Host memory of a two-socket server; an assumption where the catalogue has no figure.
const MEMORY_GB_PER_SECOND: f64 = 300.0;
/// What copies reach of PCIe x16 per generation: 12 GB/s with the third, doubling with each.
const COPY_GB_PER_SECOND_OF_THIRD: f64 = 12.0;

/// Pace of a host against an AMD EPYC 7742, by words of its CPU's name. From the tests of Megatron-LM
/// (e2e_megatron_functional_tests): 5.2 ms per layer on a DGX A100, 3.3 ms on a DGX H100.
const PACES: [(&str, f64); 12] = [
    ("7742", 1.0),
    ("7763", 0.9),
    ("9654", 0.7),
    ("9655", 0.6),
    ("8480", 0.7),
    ("8570", 0.66),
    ("8488", 0.7),
    ("6776", 0.6),
    ("7r13", 0.9),
    ("8275", 1.0),
    ("e5-26", 1.2),
    ("grace", 0.75),
];
/// Where the CPU is not known.
const USUAL_PACE: f64 = 0.8;

impl Host {
    /// Of a node of `cluster`.
    pub fn of(cluster: &Cluster) -> Self {
        let node = &cluster.node;
        let generation = node.pcie_generation.unwrap_or(4).clamp(1, 7);
        let copy = COPY_GB_PER_SECOND_OF_THIRD * 2_f64.powi(generation.cast_signed() - 3);
        let devices = f64::from(node.devices.max(1));
        let cpu = node.cpu.as_deref().unwrap_or("").to_ascii_lowercase();
        let known = PACES.iter().find(|(word, _)| cpu.contains(word));
        Self {
            pace: known.map_or(USUAL_PACE, |(_, pace)| *pace),
            copy_bandwidth: Bandwidth::from_gb_per_sec(copy),
            memory_bandwidth_per_device: Bandwidth::from_gb_per_sec(MEMORY_GB_PER_SECOND / devices),
        }
    }
}
