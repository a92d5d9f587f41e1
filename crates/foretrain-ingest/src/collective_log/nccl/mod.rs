//! What NCCL and RCCL say of themselves under `NCCL_DEBUG=INFO`: version, communicator, network,
//! channel graphs, cost tables and choices (subsystems `INIT`, `NET`, `GRAPH`, `TUNING`, `ENV`).
//!
//! Every rank prints most of it, and a training job has many communicators. The facts are those of
//! the largest communicator, each once. Lines of other versions than the known ones are passed over.

mod collect;
mod lines;
mod tables;

use foretrain_core::{Bandwidth, Bytes};
use foretrain_cost::nccl_tuner::{Algorithm, PathType, Protocol};
use foretrain_graph::CollectiveKind;

pub(super) use collect::Collector;
pub(super) use lines::{communicator, message};

/// What the library said of itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NcclFacts {
    /// "2.18.5+cuda12.2", with "RCCL" before it for AMD's library.
    pub version: Option<String>,
    /// The largest communicator.
    pub communicator: Option<Communicator>,
    /// Channels in use.
    pub channels: Option<Channels>,
    /// The network between nodes.
    pub network: Network,
    /// Whether all devices that told can multicast in the NVSwitch (NVLink SHARP).
    pub nvls: Option<bool>,
    /// Channel graphs, in the order of the log.
    pub graphs: Vec<ChannelGraph>,
    /// Costs that the library computed, per operation, algorithm and protocol.
    pub costs: Vec<TunedCost>,
    /// Algorithms and protocols that may be used, per operation.
    pub enabled: Vec<Enabled>,
    /// What was chosen for which size, in the order of the log.
    pub choices: Vec<Choice>,
}

/// Size of a communicator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Communicator {
    /// Ranks.
    pub ranks: u32,
    /// Nodes, if told (since NCCL 2.20).
    pub nodes: Option<u32>,
    /// Ranks of the node that told.
    pub local_ranks: Option<u32>,
    /// Whether NVLink reaches beyond the host.
    pub multi_node_nvlink: Option<bool>,
}

/// Channels of a communicator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Channels {
    /// For collectives.
    pub collective: u32,
    /// For NVLink SHARP, if told.
    pub nvls: Option<u32>,
    /// For sends and receives.
    pub point_to_point: u32,
    /// For sends and receives to one peer.
    pub per_peer: u32,
}

/// The network between nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Network {
    /// The one that was taken: "IB", "Socket", "AWS Libfabric".
    pub name: Option<String>,
    /// The plugin that provides it: "aws-ofi-nccl 1.5.0".
    pub plugin: Option<String>,
    /// Provider of libfabric: "efa".
    pub provider: Option<String>,
    /// NICs of one node as the library names them: "mlx5_0:1/IB".
    pub nics: Vec<String>,
    /// NICs of one node, if they are counted only.
    pub nic_count: Option<u32>,
    /// Whether NICs read and write device memory.
    pub gpu_direct: Option<bool>,
}

/// Shapes that the library looks for in the topology (`NCCL_TOPO_PATTERN_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Tree whose traffic is spread over two ranks.
    BalancedTree,
    /// Tree with up and down on two ranks.
    SplitTree,
    /// Tree with up and down on one rank.
    Tree,
    /// Ring.
    Ring,
    /// Multicast in the NVSwitch.
    Nvls,
    /// In-network reduction.
    CollNetDirect,
    /// A number that was not known when this was written.
    Other(u32),
}

/// One channel graph.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChannelGraph {
    /// Its shape.
    pub pattern: Pattern,
    /// How rings may change rails between nodes (`NCCL_CROSS_NIC`).
    pub cross_nic: u32,
    /// Channels before they are doubled.
    pub channels: u32,
    /// Rate of one channel within a node.
    pub intra: Bandwidth,
    /// Rate of one channel between nodes.
    pub inter: Bandwidth,
    /// Farthest path within a node, if the version tells.
    pub intra_path: Option<PathType>,
    /// Farthest path from a device to its NIC, if the version tells.
    pub inter_path: Option<PathType>,
    /// All channels visit the ranks in the same order.
    pub same_channels: bool,
}

/// One entry of the library's cost table. Unused combinations have neither latency nor bandwidth
/// and are left out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TunedCost {
    /// Operation.
    pub kind: CollectiveKind,
    /// Algorithm.
    pub algorithm: Algorithm,
    /// Protocol.
    pub protocol: Protocol,
    /// Latency, microseconds.
    pub latency_us: f64,
    /// Size over time without the latency.
    pub algbw: Bandwidth,
}

/// What an operation may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enabled {
    /// Operation.
    pub kind: CollectiveKind,
    /// Algorithms.
    pub algorithms: Vec<Algorithm>,
    /// Protocols; one that is allowed on tested machines only counts.
    pub protocols: Vec<Protocol>,
}

/// What was chosen for one size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    /// Operation, if told (since NCCL 2.19).
    pub kind: Option<CollectiveKind>,
    /// Size as the library counts it.
    pub size: Bytes,
    /// Algorithm.
    pub algorithm: Algorithm,
    /// Protocol.
    pub protocol: Protocol,
    /// Time that the library expects, microseconds, if told.
    pub time_us: Option<f64>,
    /// First and last channel, if told.
    pub channels: Option<(u32, u32)>,
}

impl NcclFacts {
    /// Whether nothing was said.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Pattern {
    fn numbered(number: u32) -> Self {
        match number {
            1 => Self::BalancedTree,
            2 => Self::SplitTree,
            3 => Self::Tree,
            4 => Self::Ring,
            5 => Self::Nvls,
            6 => Self::CollNetDirect,
            number => Self::Other(number),
        }
    }
}

impl std::fmt::Display for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::BalancedTree => f.write_str("balanced tree"),
            Self::SplitTree => f.write_str("split tree"),
            Self::Tree => f.write_str("tree"),
            Self::Ring => f.write_str("ring"),
            Self::Nvls => f.write_str("NVLS"),
            Self::CollNetDirect => f.write_str("CollNetDirect"),
            Self::Other(number) => write!(f, "pattern {number}"),
        }
    }
}
