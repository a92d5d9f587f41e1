//! The JSON of `hardware`.

use std::collections::BTreeMap;

use foretrain_core::Bytes;
use foretrain_hardware::{Cluster, Device, Level, Node, Source};
use schemars::JsonSchema;
use serde::Serialize;

use super::common::finite;

/// Entries of the hardware catalogue. Lists that were not asked for are empty.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct HardwareReport {
    /// `foretrain/hardware/1`.
    pub schema: String,
    /// Devices.
    pub devices: Vec<DeviceReport>,
    /// Node types.
    pub nodes: Vec<NodeReport>,
    /// Clusters.
    pub clusters: Vec<ClusterReport>,
}

impl HardwareReport {
    /// A report of these entries.
    pub fn new<'a>(
        devices: impl IntoIterator<Item = &'a Device>,
        nodes: impl IntoIterator<Item = &'a Node>,
        clusters: impl IntoIterator<Item = &'a Cluster>,
    ) -> Self {
        Self {
            schema: "foretrain/hardware/1".into(),
            devices: devices.into_iter().map(Into::into).collect(),
            nodes: nodes.into_iter().map(Into::into).collect(),
            clusters: clusters.into_iter().map(Into::into).collect(),
        }
    }
}

/// One device. Rates are per second; bandwidths are wire rates.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DeviceReport {
    /// Name in the catalogue.
    pub name: String,
    /// Other names.
    pub aliases: Vec<String>,
    /// Maker.
    pub vendor: String,
    /// Generation, if known.
    pub architecture: Option<String>,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Peak memory bandwidth, bytes per second.
    pub memory_bandwidth_bytes_per_s: f64,
    /// Multiprocessors, compute units or cores.
    pub multiprocessors: Option<u32>,
    /// Peak dense rate by element type, FLOP per second.
    pub peak_flops_per_s: Vec<Figure>,
    /// Where each figure comes from.
    pub sources: BTreeMap<String, String>,
}

/// A named figure.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Figure {
    /// Of what.
    pub name: String,
    /// The figure.
    pub value: f64,
}

/// One node type.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct NodeReport {
    /// Name in the catalogue.
    pub name: String,
    /// Other names.
    pub aliases: Vec<String>,
    /// For people.
    pub description: String,
    /// Device type.
    pub device: String,
    /// Devices in the node.
    pub devices: u32,
    /// What connects them.
    pub interconnect: String,
    /// Wire rate of one device's links together in one direction, bytes per second.
    pub interconnect_bytes_per_s: f64,
    /// Share of it that payload reaches.
    pub interconnect_efficiency: f64,
    /// One hop, small message.
    pub interconnect_latency_ns: i64,
    /// NICs.
    pub nics: u32,
    /// What they speak.
    pub nic_kind: String,
    /// Wire rate of one NIC in one direction, bytes per second.
    pub nic_bytes_per_s: f64,
    /// Share of it that payload reaches.
    pub nic_efficiency: f64,
    /// Host memory in bytes, if known.
    pub host_memory_bytes: Option<u64>,
    /// List price of the node in US dollars per hour, if known.
    pub price_usd_per_hour: Option<f64>,
    /// Where each figure comes from.
    pub sources: BTreeMap<String, String>,
}

/// One cluster.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ClusterReport {
    /// Name in the catalogue.
    pub name: String,
    /// Other names.
    pub aliases: Vec<String>,
    /// For people.
    pub description: String,
    /// Node type.
    pub node: String,
    /// Nodes; `null` for as many as asked.
    pub nodes: Option<u32>,
    /// Fabric between them.
    pub fabric: String,
    /// Equal local ranks meet at the first level.
    pub rail_optimised: bool,
    /// The switches reduce what passes them.
    pub in_network_reduction: bool,
    /// Switching levels from the nodes outwards.
    pub levels: Vec<LevelReport>,
    /// Where each figure comes from.
    pub sources: BTreeMap<String, String>,
}

/// One switching level.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LevelReport {
    /// Name.
    pub name: String,
    /// Nodes that meet here; `null` for all.
    pub nodes: Option<u32>,
    /// Bandwidth that enters from below over what it can carry.
    pub oversubscription: f64,
    /// One-way time through this level and all below.
    pub latency_ns: i64,
}

fn sources(sources: &BTreeMap<String, Source>) -> BTreeMap<String, String> {
    sources.iter().map(|(key, source)| (key.clone(), source.to_string())).collect()
}

impl From<&Device> for DeviceReport {
    fn from(device: &Device) -> Self {
        let peak = device
            .peak
            .iter()
            .map(|(dtype, rate)| Figure { name: dtype.to_string(), value: finite(rate.get()) });
        Self {
            name: device.name.clone(),
            aliases: device.aliases.clone(),
            vendor: device.vendor.clone(),
            architecture: device.architecture.clone(),
            memory_bytes: device.memory.get(),
            memory_bandwidth_bytes_per_s: finite(device.memory_bandwidth.get()),
            multiprocessors: device.multiprocessors,
            peak_flops_per_s: peak.collect(),
            sources: sources(&device.sources),
        }
    }
}

impl From<&Node> for NodeReport {
    fn from(node: &Node) -> Self {
        Self {
            name: node.name.clone(),
            aliases: node.aliases.clone(),
            description: node.description.clone(),
            device: node.device.name.clone(),
            devices: node.devices,
            interconnect: node.intra.kind.to_string(),
            interconnect_bytes_per_s: finite(node.intra.per_device_bandwidth.get()),
            interconnect_efficiency: finite(node.intra.efficiency),
            interconnect_latency_ns: node.intra.latency.nanos(),
            nics: node.nics,
            nic_kind: node.nic_kind.to_string(),
            nic_bytes_per_s: finite(node.nic_bandwidth.get()),
            nic_efficiency: finite(node.nic_efficiency),
            host_memory_bytes: node.host_memory.map(Bytes::get),
            price_usd_per_hour: node.price_per_hour.map(finite),
            sources: sources(&node.sources),
        }
    }
}

impl From<&Cluster> for ClusterReport {
    fn from(cluster: &Cluster) -> Self {
        let level = |level: &Level| LevelReport {
            name: level.name.clone(),
            nodes: (level.nodes != Level::UNBOUNDED).then_some(level.nodes),
            oversubscription: finite(level.oversubscription),
            latency_ns: level.latency.nanos(),
        };
        Self {
            name: cluster.name.clone(),
            aliases: cluster.aliases.clone(),
            description: cluster.description.clone(),
            node: cluster.node.name.clone(),
            nodes: cluster.nodes,
            fabric: cluster.fabric.name.clone(),
            rail_optimised: cluster.fabric.rail_optimised,
            in_network_reduction: cluster.fabric.in_network_reduction,
            levels: cluster.fabric.levels.iter().map(level).collect(),
            sources: sources(&cluster.sources),
        }
    }
}
