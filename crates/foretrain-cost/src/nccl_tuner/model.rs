//! Latency, bandwidth, time and choice.

use foretrain_core::{Bytes, DType};
use foretrain_graph::CollectiveKind;
use serde::{Deserialize, Serialize};

use super::constants::{
    Algorithm, Generation, PerScale, Plateau, Protocol, TREE_CORRECTION, TunerTable,
};

/// How two points of the topology are connected, nearest first (NCCL's `PATH_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PathType {
    /// The same device.
    Loc,
    /// NVLink.
    Nvl,
    /// NVLink through another GPU.
    Nvb,
    /// Chip to chip.
    C2c,
    /// One PCIe switch.
    Pix,
    /// Several PCIe switches.
    Pxb,
    /// GPU to NIC through a chip-to-chip link.
    P2c,
    /// GPU to NIC through another GPU.
    Pxn,
    /// A PCIe host bridge.
    Phb,
    /// Between NUMA nodes.
    Sys,
    /// The network.
    Net,
}

impl PathType {
    /// All, nearest first.
    pub const ALL: [Self; 11] = [
        Self::Loc,
        Self::Nvl,
        Self::Nvb,
        Self::C2c,
        Self::Pix,
        Self::Pxb,
        Self::P2c,
        Self::Pxn,
        Self::Phb,
        Self::Sys,
        Self::Net,
    ];

    /// NCCL's spelling in logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Loc => "LOC",
            Self::Nvl => "NVL",
            Self::Nvb => "NVB",
            Self::C2c => "C2C",
            Self::Pix => "PIX",
            Self::Pxb => "PXB",
            Self::P2c => "P2C",
            Self::Pxn => "PXN",
            Self::Phb => "PHB",
            Self::Sys => "SYS",
            Self::Net => "NET",
        }
    }
}

/// One of NCCL's channel graphs, as `NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=GRAPH` prints them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Graph {
    /// Channels.
    pub channels: u32,
    /// Rate of one channel within a node, GB/s.
    pub intra_bandwidth: f64,
    /// Rate of one channel between nodes, GB/s.
    pub inter_bandwidth: f64,
    /// Farthest path within a node.
    pub intra_path: PathType,
    /// Farthest path from a GPU to its NIC; [`PathType::Loc`] on one node.
    pub inter_path: PathType,
    /// Latency of the NIC, us.
    pub inter_latency_us: f64,
    /// All channels visit the ranks in the same order.
    pub same_channels: bool,
    /// A tree whose every rank may be a branch (`NCCL_TOPO_PATTERN_TREE`).
    pub tree_pattern: bool,
}

impl Graph {
    /// A graph over NVLink with the same rate for a channel within and between nodes.
    pub const fn nvlink(channels: u32, bandwidth: f64) -> Self {
        Self {
            channels,
            intra_bandwidth: bandwidth,
            inter_bandwidth: bandwidth,
            intra_path: PathType::Nvl,
            inter_path: PathType::Loc,
            inter_latency_us: 0.0,
            same_channels: true,
            tree_pattern: false,
        }
    }

    fn bus(&self, per_channel: f64) -> f64 {
        f64::from(self.channels) * per_channel
    }
}

/// The host CPU as far as NCCL tunes by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TunerCpu {
    /// AMD x86, or nodes of several makers.
    AmdOrMixed,
    /// Intel x86.
    Intel,
    /// Arm, Power and others.
    Other,
}

/// A communicator as the tuner sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuner {
    /// The constants.
    pub table: &'static TunerTable,
    /// Ranks.
    pub ranks: u32,
    /// Nodes.
    pub nodes: u32,
    /// Lowest and highest compute capability, 80 for 8.0.
    pub compute_capability: (u32, u32),
    /// Host CPU.
    pub cpu: TunerCpu,
    /// CUDA version, where known.
    pub cuda: Option<(u32, u32)>,
    /// In-network reduction (SHARP) is available between nodes.
    pub collnet: bool,
    /// The nodes have NVSwitch.
    pub nvswitch: bool,
    /// Ring graph.
    pub ring: Graph,
    /// Tree graph.
    pub tree: Graph,
    /// NVLS graph, on NVSwitch with multicast.
    pub nvls: Option<Graph>,
    /// CollNet graph.
    pub collnet_graph: Option<Graph>,
}

/// Latency and rate of one algorithm and protocol.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// us.
    pub latency_us: f64,
    /// Algorithm bandwidth, GB/s.
    pub bandwidth: f64,
}

/// A collective as the tuner sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TunerCall {
    /// Which.
    pub kind: CollectiveKind,
    /// The larger of a rank's input and output buffer.
    pub bytes: Bytes,
    /// Element type.
    pub dtype: Option<DType>,
    /// Collectives fused into this launch; 1 for a plain call.
    pub pipe_ops: u32,
}

impl TunerCall {
    /// A plain call.
    pub const fn new(kind: CollectiveKind, bytes: Bytes) -> Self {
        Self { kind, bytes, dtype: None, pipe_ops: 1 }
    }
}

/// An algorithm and protocol with the time NCCL gives it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// Algorithm.
    pub algorithm: Algorithm,
    /// Protocol.
    pub protocol: Protocol,
    /// NCCL's idea of the time, us.
    pub time_us: f64,
}

/// Collectives of a launch that share one descriptor of 1024 bytes (`ncclDevWorkColl`: 72 bytes).
const PIPE_OPS_PER_LATENCY: u32 = 1024 / 72;

/// NCCL's correction of a tree's rate at a size, without the steps of its table.
pub(crate) fn tree_correction(protocol: Protocol, bytes: f64) -> f64 {
    let row = &TREE_CORRECTION[protocol as usize][..23];
    let place = (bytes.max(1.0) / 64.0).log2().clamp(0.0, 22.0);
    let (below, part) = (place.floor(), place.fract());
    let at = below as usize;
    row[at] + part * (row[(at + 1).min(22)] - row[at])
}

impl Tuner {
    /// Ranks on a node.
    pub fn ranks_per_node(&self) -> u32 {
        self.ranks / self.nodes.max(1)
    }

    /// The graph that an algorithm runs on.
    pub fn graph(&self, algorithm: Algorithm) -> Option<Graph> {
        match algorithm {
            Algorithm::Ring | Algorithm::Pat => Some(self.ring),
            Algorithm::Tree => Some(self.tree),
            Algorithm::Nvls | Algorithm::NvlsTree => self.nvls,
            Algorithm::CollNetDirect | Algorithm::CollNetChain => self.collnet_graph,
        }
    }

    /// Latency and rate of a pair; `None` where NCCL disables it.
    pub fn cost(
        &self,
        kind: CollectiveKind,
        algorithm: Algorithm,
        protocol: Protocol,
    ) -> Option<Cost> {
        if !self.enabled(kind, algorithm, protocol) {
            return None;
        }
        let graph = self.graph(algorithm)?;
        let bandwidth = self.bandwidth(kind, algorithm, protocol, &graph);
        let latency_us = self.latency(kind, algorithm, protocol, &graph);
        (bandwidth > 0.0).then_some(Cost { latency_us, bandwidth })
    }

    /// NCCL's time for a call with a pair; `None` where disabled, zero for one rank.
    pub fn time(&self, call: &TunerCall, algorithm: Algorithm, protocol: Protocol) -> Option<f64> {
        if self.ranks <= 1 {
            return Some(0.0);
        }
        let Cost { mut latency_us, mut bandwidth } = self.cost(call.kind, algorithm, protocol)?;
        let bytes = call.bytes.as_f64();
        bandwidth *= self.correction(call, algorithm, protocol);
        latency_us *= self.plateau(call, algorithm, protocol);
        let count = match algorithm {
            Algorithm::Ring => call.pipe_ops,
            _ => call.pipe_ops.div_ceil(PIPE_OPS_PER_LATENCY),
        };
        let mut time = latency_us * f64::from(count) + bytes / (1000.0 * bandwidth);
        let fp8 = matches!(call.dtype, Some(DType::F8E4m3 | DType::F8E5m2));
        let sums = call.kind == CollectiveKind::AllReduce;
        if fp8 && sums && algorithm == Algorithm::Ring && self.ranks > 8 {
            time *= 1024.0;
        }
        Some(time)
    }

    /// Every enabled pair with its time, in NCCL's order.
    pub fn candidates(&self, call: &TunerCall) -> Vec<Candidate> {
        self.each(call).collect()
    }

    /// NCCL's choice: the first pair with the least time. `None` for one rank and for operations
    /// that the tuner does not serve.
    pub fn choose(&self, call: &TunerCall) -> Option<Candidate> {
        self.each(call).min_by(|a, b| a.time_us.total_cmp(&b.time_us))
    }

    fn each(&self, call: &TunerCall) -> impl Iterator<Item = Candidate> {
        let pairs = Algorithm::ALL.into_iter().flat_map(|a| Protocol::ALL.map(|p| (a, p)));
        pairs.filter(|&(a, p)| self.enabled(call.kind, a, p)).filter_map(
            move |(algorithm, protocol)| {
                let time_us = self.time(call, algorithm, protocol)?;
                Some(Candidate { algorithm, protocol, time_us })
            },
        )
    }

    fn correction(&self, call: &TunerCall, algorithm: Algorithm, protocol: Protocol) -> f64 {
        let x86 = self.cpu != TunerCpu::Other;
        let entries = match algorithm {
            Algorithm::Tree if call.kind == CollectiveKind::AllReduce => 23,
            Algorithm::NvlsTree if self.compute_capability.0 >= 100 && x86 => 24,
            _ => return 1.0,
        };
        let index = (call.bytes.get() >> 6).checked_ilog2().map(|log| log as usize);
        let row = &TREE_CORRECTION[protocol as usize][..entries];
        index.and_then(|i| row.get(i)).copied().unwrap_or(1.0)
    }

    fn plateau(&self, call: &TunerCall, algorithm: Algorithm, protocol: Protocol) -> f64 {
        let ring_simple = algorithm == Algorithm::Ring && protocol == Protocol::Simple;
        if !ring_simple || self.nodes <= 1 || call.kind != CollectiveKind::AllReduce {
            return 1.0;
        }
        let (bytes, ranks) = (call.bytes.get(), u64::from(self.ranks));
        match self.table.plateau {
            Plateau::PerChannel => {
                let parts = (u64::from(self.ring.channels) * ranks).max(1);
                let factor = if self.compute_capability.0 >= 80 { 1.4 } else { 1.9 };
                if bytes / parts >= 64 { factor } else { 1.0 }
            }
            Plateau::PerSixteenRanks => {
                if bytes as f64 >= ranks as f64 / 16.0 * 65_536.0 {
                    1.9
                } else {
                    1.0
                }
            }
        }
    }

    /// Steps of a ring, and how many of them cross the network.
    fn ring_steps(&self, kind: CollectiveKind) -> (f64, f64) {
        let (ranks, nodes) = (f64::from(self.ranks), f64::from(self.nodes));
        let crossings = match (self.nodes, self.table.ring_crosses_all_nodes) {
            (0 | 1, _) => 0.0,
            (_, true) => nodes,
            (_, false) => nodes - 1.0,
        };
        match kind {
            CollectiveKind::AllReduce => (2.0 * (ranks - 1.0), 2.0 * crossings),
            CollectiveKind::AllGather | CollectiveKind::ReduceScatter => (ranks - 1.0, crossings),
            _ => (ranks, crossings),
        }
    }

    fn latency(
        &self,
        kind: CollectiveKind,
        algorithm: Algorithm,
        protocol: Protocol,
        graph: &Graph,
    ) -> f64 {
        let (a, p, table) = (algorithm as usize, protocol as usize, self.table);
        let within = |a: usize| {
            let on_nvlink = matches!(graph.intra_path, PathType::Loc | PathType::Nvl);
            let hop = if on_nvlink { table.nvlink[a][p] } else { table.pci[a][p] };
            let slowed = protocol == Protocol::Ll && self.nodes > 1;
            if slowed { hop * table.multi_node_ll_hop_factor } else { hop }
        };
        let simple = protocol == Protocol::Simple;
        // One rank per node hides nothing, so NCCL takes the tree's figure; Simple also pays a flush.
        let column = if self.ranks == self.nodes { Algorithm::Tree as usize } else { a };
        let between =
            table.net[column][p] + graph.inter_latency_us * if simple { 2.0 } else { 1.0 };
        let (intra, base) = (within(a), table.base[a][p]);
        let multi = self.nodes > 1;
        let chain = f64::from(self.ranks_per_node().max(1) - 1);
        let depth = f64::from(self.nodes.max(1).ilog2());
        match algorithm {
            Algorithm::Ring
                if matches!(kind, CollectiveKind::Broadcast | CollectiveKind::Reduce) =>
            {
                let column = if simple { Algorithm::Tree as usize } else { a };
                let hop = if multi { table.net[column][p] } else { within(column) };
                let hops = if graph.same_channels { 1.0 } else { self.ring_steps(kind).0 };
                base + hops * hop
            }
            Algorithm::Ring => {
                let (steps, crossings) = self.ring_steps(kind);
                let overhead = if multi { self.net_overhead(simple) } else { 0.0 };
                base + (steps - crossings) * intra.max(overhead) + crossings * between
            }
            Algorithm::Tree => base + 2.0 * (chain * intra + depth * between),
            Algorithm::CollNetDirect => {
                base + 2.0 * (chain.min(1.0) * intra + chain * 0.4) + between
            }
            Algorithm::CollNetChain => base + 2.0 * chain * intra + between,
            Algorithm::Nvls => intra + if multi { between } else { 0.0 },
            Algorithm::NvlsTree => base + intra + 2.0 * depth * between,
            Algorithm::Pat => base + depth * between / 3.5 + 2.8 * f64::from(self.ranks),
        }
    }

    fn net_overhead(&self, simple: bool) -> f64 {
        let overhead = if self.cpu == TunerCpu::AmdOrMixed { 2.0 } else { 1.0 };
        if simple { overhead * 3.0 } else { overhead }
    }

    fn bandwidth(
        &self,
        kind: CollectiveKind,
        algorithm: Algorithm,
        protocol: Protocol,
        graph: &Graph,
    ) -> f64 {
        let bus = self.bus_bandwidth(kind, algorithm, protocol, graph);
        let sharded = matches!(kind, CollectiveKind::AllGather | CollectiveKind::ReduceScatter);
        match algorithm {
            Algorithm::Ring | Algorithm::Nvls | Algorithm::NvlsTree => {
                bus * f64::from(self.ranks) / self.ring_steps(kind).0
            }
            _ if sharded => bus,
            _ => bus * 0.5,
        }
    }

    fn bus_bandwidth(
        &self,
        kind: CollectiveKind,
        algorithm: Algorithm,
        protocol: Protocol,
        graph: &Graph,
    ) -> f64 {
        let table = self.table;
        let capped = |bus: f64| match self.compute_capability.0 {
            80.. => bus.min(table.ampere_bus_cap),
            _ => bus,
        };
        let few = self.nodes <= 2;
        let per_channel = if few { graph.intra_bandwidth } else { graph.inter_bandwidth };
        let bus = capped(graph.bus(per_channel));
        let scaled = |limits: &PerScale| graph.bus(self.per_scale(limits));
        match algorithm {
            Algorithm::Ring => match protocol {
                Protocol::Ll => (bus * table.ring_ll_factor).min(self.ll_limit()),
                Protocol::Ll128 => (0.92 * bus).min(scaled(&table.ring_ll128_per_channel)),
                Protocol::Simple => bus,
            },
            Algorithm::Tree => {
                let bus = (0.92 * bus).min(scaled(&table.tree_per_channel));
                let packing = if self.nodes == 1 { 7.0 / 9.0 } else { 120.0 / 128.0 };
                let bus = match protocol {
                    Protocol::Ll => (bus / 3.8).min(self.ll_limit()),
                    Protocol::Ll128 => (bus * packing).min(scaled(&table.tree_ll128_per_channel)),
                    Protocol::Simple => bus,
                };
                if graph.tree_pattern { bus * 0.85 } else { bus }
            }
            Algorithm::Pat => bus * 0.75,
            Algorithm::Nvls | Algorithm::NvlsTree => {
                graph.bus(self.nvls_per_channel(kind, algorithm, graph))
            }
            Algorithm::CollNetDirect => self.collnet_direct(kind, graph),
            Algorithm::CollNetChain => capped(graph.bus(graph.intra_bandwidth)),
        }
    }

    fn nvls_per_channel(&self, kind: CollectiveKind, algorithm: Algorithm, graph: &Graph) -> f64 {
        let channels = f64::from(graph.channels);
        let local = f64::from(self.ranks_per_node().max(1));
        let sharing = match kind {
            CollectiveKind::AllReduce => 2.0,
            _ => (local - 1.0) / local,
        };
        let efficiency = self.table.nvls_efficiency[self.generation() as usize];
        let intra = graph.intra_bandwidth * efficiency * (channels - 1.0) / channels * sharing;
        let tree = algorithm == Algorithm::NvlsTree;
        let inter = graph.inter_bandwidth * if self.nodes <= 2 && tree { 2.0 } else { 1.0 };
        let limit =
            if tree { self.per_scale(&self.table.nvls_tree_per_channel) } else { f64::INFINITY };
        intra.min(inter).min(limit)
    }

    fn collnet_direct(&self, kind: CollectiveKind, graph: &Graph) -> f64 {
        let local = f64::from(self.ranks_per_node());
        if kind != CollectiveKind::AllReduce {
            return local * graph.intra_bandwidth.min(0.9 * graph.inter_bandwidth);
        }
        // Full speed takes one NIC per rank.
        let factor = local / f64::from(graph.channels.max(1));
        let bus = graph.bus(graph.intra_bandwidth) / (factor - (factor - 1.0) / 2.0);
        if self.compute_capability.0 >= 90 { bus * 0.85 } else { bus }
    }

    fn generation(&self) -> Generation {
        Generation::of(self.compute_capability.0)
    }

    fn per_scale(&self, limits: &PerScale) -> f64 {
        limits[self.generation() as usize][self.scale_column()]
    }

    /// The LL cap follows the GPU on one node, but only the host CPU across nodes.
    fn ll_limit(&self) -> f64 {
        let row = match (self.nodes, self.cpu) {
            (0 | 1, _) => self.generation() as usize,
            (_, TunerCpu::AmdOrMixed) => 1,
            _ => 0,
        };
        self.table.ll_max_bandwidth[row][self.scale_column()]
    }

    fn scale_column(&self) -> usize {
        (self.nodes.clamp(1, 3) - 1) as usize
    }
}
