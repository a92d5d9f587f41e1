//! The JSON of what NCCL says of itself in a log.

use foretrain_ingest::collective_log::{ChannelGraph, Choice, CollectiveLog, Enabled, TunedCost};
use schemars::JsonSchema;
use serde::Serialize;

use super::common::finite;

/// What NCCL or RCCL said of itself under `NCCL_DEBUG=INFO`: facts of the largest communicator.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct NcclReport {
    /// File.
    pub path: String,
    /// Version, "2.18.5+cuda12.2".
    pub version: Option<String>,
    /// Ranks of the communicator.
    pub ranks: Option<u32>,
    /// Nodes of the communicator.
    pub nodes: Option<u32>,
    /// Ranks of one node.
    pub local_ranks: Option<u32>,
    /// Whether NVLink reaches beyond the host.
    pub multi_node_nvlink: Option<bool>,
    /// Channels for collectives.
    pub collective_channels: Option<u32>,
    /// Channels for NVLink SHARP.
    pub nvls_channels: Option<u32>,
    /// Channels for sends and receives.
    pub point_to_point_channels: Option<u32>,
    /// Channels for sends and receives to one peer.
    pub channels_per_peer: Option<u32>,
    /// Network between nodes, "IB".
    pub network: Option<String>,
    /// Plugin that provides the network.
    pub network_plugin: Option<String>,
    /// Provider of libfabric.
    pub network_provider: Option<String>,
    /// NICs of one node by name.
    pub nics: Vec<String>,
    /// NICs of one node, where they are counted only.
    pub nic_count: Option<u32>,
    /// Whether NICs read and write device memory.
    pub gpu_direct: Option<bool>,
    /// Whether the NVSwitch can multicast (NVLink SHARP).
    pub nvls: Option<bool>,
    /// Channel graphs.
    pub graphs: Vec<NcclGraphReport>,
    /// The library's cost table, without what it does not use.
    pub costs: Vec<NcclCostReport>,
    /// What operations may use.
    pub enabled: Vec<NcclEnabledReport>,
    /// What was chosen for which size.
    pub choices: Vec<NcclChoiceReport>,
}

/// One channel graph.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct NcclGraphReport {
    /// Shape, "ring".
    pub pattern: String,
    /// Channels before they are doubled.
    pub channels: u32,
    /// Rate of one channel within a node, gigabytes per second.
    pub intra_gb_per_s: f64,
    /// Rate of one channel between nodes, gigabytes per second.
    pub inter_gb_per_s: f64,
    /// Farthest path within a node, "NVL".
    pub intra_path: Option<String>,
    /// Farthest path from a device to its NIC, "PIX".
    pub inter_path: Option<String>,
    /// How rings may change rails between nodes.
    pub cross_nic: u32,
    /// All channels visit the ranks in the same order.
    pub same_channels: bool,
}

/// One entry of the cost table.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct NcclCostReport {
    /// Operation.
    pub kind: String,
    /// Algorithm, "Ring".
    pub algorithm: String,
    /// Protocol, "LL128".
    pub protocol: String,
    /// Latency, microseconds.
    pub latency_us: f64,
    /// Size over time without the latency, gigabytes per second.
    pub algbw_gb_per_s: f64,
}

/// What an operation may use.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct NcclEnabledReport {
    /// Operation.
    pub kind: String,
    /// Algorithms.
    pub algorithms: Vec<String>,
    /// Protocols.
    pub protocols: Vec<String>,
}

/// What was chosen for one size.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct NcclChoiceReport {
    /// Operation, if told.
    pub kind: Option<String>,
    /// Size as the library counts it.
    pub size_bytes: u64,
    /// Algorithm.
    pub algorithm: String,
    /// Protocol.
    pub protocol: String,
    /// Time that the library expects, microseconds, if told.
    pub time_us: Option<f64>,
    /// First channel in use, if told.
    pub first_channel: Option<u32>,
    /// Last channel in use, if told.
    pub last_channel: Option<u32>,
}

impl NcclReport {
    /// The facts of a log; `None` if the library said nothing in it.
    pub(super) fn new(log: &CollectiveLog) -> Option<Self> {
        let facts = &log.nccl;
        let (communicator, channels) = (facts.communicator, facts.channels);
        let network = &facts.network;
        (!facts.is_empty()).then(|| Self {
            path: log.source.clone(),
            version: facts.version.clone(),
            ranks: communicator.map(|found| found.ranks),
            nodes: communicator.and_then(|found| found.nodes),
            local_ranks: communicator.and_then(|found| found.local_ranks),
            multi_node_nvlink: communicator.and_then(|found| found.multi_node_nvlink),
            collective_channels: channels.map(|found| found.collective),
            nvls_channels: channels.and_then(|found| found.nvls),
            point_to_point_channels: channels.map(|found| found.point_to_point),
            channels_per_peer: channels.map(|found| found.per_peer),
            network: network.name.clone(),
            network_plugin: network.plugin.clone(),
            network_provider: network.provider.clone(),
            nics: network.nics.clone(),
            nic_count: network.nic_count,
            gpu_direct: network.gpu_direct,
            nvls: facts.nvls,
            graphs: facts.graphs.iter().map(Into::into).collect(),
            costs: facts.costs.iter().map(Into::into).collect(),
            enabled: facts.enabled.iter().map(Into::into).collect(),
            choices: facts.choices.iter().map(Into::into).collect(),
        })
    }
}

impl From<&ChannelGraph> for NcclGraphReport {
    fn from(graph: &ChannelGraph) -> Self {
        Self {
            pattern: graph.pattern.to_string(),
            channels: graph.channels,
            intra_gb_per_s: finite(graph.intra.gb_per_sec()),
            inter_gb_per_s: finite(graph.inter.gb_per_sec()),
            intra_path: graph.intra_path.map(|path| path.as_str().to_owned()),
            inter_path: graph.inter_path.map(|path| path.as_str().to_owned()),
            cross_nic: graph.cross_nic,
            same_channels: graph.same_channels,
        }
    }
}

impl From<&TunedCost> for NcclCostReport {
    fn from(cost: &TunedCost) -> Self {
        Self {
            kind: cost.kind.to_string(),
            algorithm: cost.algorithm.as_str().to_owned(),
            protocol: cost.protocol.as_str().to_owned(),
            latency_us: finite(cost.latency_us),
            algbw_gb_per_s: finite(cost.algbw.gb_per_sec()),
        }
    }
}

impl From<&Enabled> for NcclEnabledReport {
    fn from(enabled: &Enabled) -> Self {
        Self {
            kind: enabled.kind.to_string(),
            algorithms: enabled.algorithms.iter().map(|a| a.as_str().to_owned()).collect(),
            protocols: enabled.protocols.iter().map(|p| p.as_str().to_owned()).collect(),
        }
    }
}

impl From<&Choice> for NcclChoiceReport {
    fn from(choice: &Choice) -> Self {
        Self {
            kind: choice.kind.map(|kind| kind.to_string()),
            size_bytes: choice.size.get(),
            algorithm: choice.algorithm.as_str().to_owned(),
            protocol: choice.protocol.as_str().to_owned(),
            time_us: choice.time_us.map(finite),
            first_channel: choice.channels.map(|(first, _)| first),
            last_channel: choice.channels.map(|(_, last)| last),
        }
    }
}
