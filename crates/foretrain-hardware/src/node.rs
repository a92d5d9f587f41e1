//! Nodes: devices that share one scale-up interconnect, and the NICs that leave it.

use std::collections::BTreeMap;
use std::fmt;

use foretrain_core::{Bandwidth, Bytes, Nanos};
use serde::{Deserialize, Serialize};

use crate::device::Device;
use crate::source::Source;

/// What connects the devices of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkKind {
    /// NVLink from device to device, no switch (DGX-1 cube mesh, 4-GPU full mesh).
    Nvlink,
    /// NVLink through NVSwitch: every pair at full rate.
    Nvswitch,
    /// AMD Infinity Fabric between devices.
    Xgmi,
    /// PCI Express, through switches or the host.
    Pcie,
    /// TPU inter-chip interconnect.
    Ici,
    /// AWS NeuronLink.
    Neuronlink,
    /// Ethernet ports on the device itself (Gaudi).
    Ethernet,
    /// Intel UPI or AMD xGMI between CPU sockets.
    Socket,
    /// A single device: nothing to connect.
    None,
}

impl LinkKind {
    /// The word used in catalogue files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Nvlink => "nvlink",
            Self::Nvswitch => "nvswitch",
            Self::Xgmi => "xgmi",
            Self::Pcie => "pcie",
            Self::Ici => "ici",
            Self::Neuronlink => "neuronlink",
            Self::Ethernet => "ethernet",
            Self::Socket => "socket",
            Self::None => "none",
        }
    }
    /// NVLink, with or without a switch.
    pub const fn is_nvlink(self) -> bool {
        matches!(self, Self::Nvlink | Self::Nvswitch)
    }
}

impl fmt::Display for LinkKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What leaves a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NicKind {
    /// InfiniBand verbs.
    Infiniband,
    /// RDMA over Ethernet.
    Roce,
    /// AWS Elastic Fabric Adapter.
    Efa,
    /// HPE Slingshot.
    Slingshot,
    /// Google's TCP with device memory (TCPX, TCPXO).
    GpudirectTcp,
    /// TCP through the kernel.
    Ethernet,
    /// No NIC worth modelling.
    None,
}

impl NicKind {
    /// The word used in catalogue files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Infiniband => "infiniband",
            Self::Roce => "roce",
            Self::Efa => "efa",
            Self::Slingshot => "slingshot",
            Self::GpudirectTcp => "gpudirect-tcp",
            Self::Ethernet => "ethernet",
            Self::None => "none",
        }
    }
}

impl fmt::Display for NicKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The host CPU's maker; NCCL tunes by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum CpuVendor {
    Intel,
    Amd,
    Arm,
    Power,
    #[default]
    Other,
}

/// The scale-up interconnect of a node, seen from one device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Interconnect {
    /// What it is.
    pub kind: LinkKind,
    /// NVLink, xGMI, PCIe generation.
    pub generation: Option<u32>,
    /// Wire rate in **one direction**, all links of one device together; zero for a single device.
    pub per_device_bandwidth: Bandwidth,
    /// Links of one device.
    pub links_per_device: Option<u32>,
    /// Share of the wire rate that payload reaches, (0, 1].
    pub efficiency: f64,
    /// Time of one hop between two devices of the node, small message.
    pub latency: Nanos,
}

impl Interconnect {
    /// Wire rate of one link in one direction, where the count of links is known.
    pub fn link_bandwidth(&self) -> Option<Bandwidth> {
        self.links_per_device.map(|links| self.per_device_bandwidth / f64::from(links.max(1)))
    }
    /// Payload rate of one device in one direction: wire rate times efficiency.
    pub fn payload_bandwidth(&self) -> Bandwidth {
        self.per_device_bandwidth * self.efficiency
    }
}

/// A scale-up domain: the devices that reach each other without a NIC. Mostly one host; a
/// GB200 NVL72 rack is one node of 18 hosts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Node {
    /// The catalogue's name, `dgx-a100`.
    pub name: String,
    /// Other names that look it up, `p4d.24xlarge`.
    pub aliases: Vec<String>,
    /// One line for people.
    pub description: String,
    /// Its devices, all alike.
    pub device: Device,
    /// Number of devices.
    pub devices: u32,
    /// Number of hosts (operating systems) that the domain spans.
    pub hosts: u32,
    /// Between the devices.
    pub intra: Interconnect,
    /// NICs for training traffic.
    pub nics: u32,
    /// Wire rate of one NIC in one direction; zero without NICs.
    pub nic_bandwidth: Bandwidth,
    /// What the NICs speak.
    pub nic_kind: NicKind,
    /// Share of a NIC's wire rate that payload reaches, (0, 1].
    pub nic_efficiency: f64,
    /// The fabric that a cluster of such nodes has unless it says otherwise.
    pub fabric: Option<String>,
    /// PCI Express generation of the host.
    pub pcie_generation: Option<u32>,
    /// Host CPU's maker.
    pub cpu_vendor: CpuVendor,
    /// Host CPU.
    pub cpu: Option<String>,
    /// Host memory, all of the node.
    pub host_memory: Option<Bytes>,
    /// List price of the whole node, US dollars per hour.
    pub price_per_hour: Option<f64>,
    /// What one device costs, US dollars per hour, where devices are paid one by one.
    pub price_per_device_hour: Option<f64>,
    /// Power of the whole node, watts.
    pub power_watts: Option<f64>,
    /// Where each figure comes from, by its key in the file.
    pub sources: BTreeMap<String, Source>,
}

impl Node {
    /// Wire rate of all NICs together, one direction.
    pub fn nics_bandwidth(&self) -> Bandwidth {
        self.nic_bandwidth * f64::from(self.nics)
    }
    /// What so many devices cost, US dollars per hour: by the device where that is how they are
    /// paid, else as whole nodes, which is how clouds sell them.
    pub fn dollars_per_hour(&self, devices: u64) -> Option<f64> {
        let nodes = devices.div_ceil(u64::from(self.devices.max(1)));
        let by_device = self.price_per_device_hour.map(|price| price * devices as f64);
        by_device.or_else(|| self.price_per_hour.map(|price| price * nodes as f64))
    }
    /// Where the figure with this key comes from, `nic_bandwidth`.
    pub fn source(&self, figure: &str) -> Option<&Source> {
        self.sources.get(figure)
    }
}
