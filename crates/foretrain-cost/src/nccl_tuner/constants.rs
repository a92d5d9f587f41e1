//! The tuner's constants, one table per stretch of NCCL versions.

use serde::{Deserialize, Serialize};

/// NCCL's algorithms, in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// Double binary tree between nodes, chain within.
    Tree,
    /// Ring over all ranks.
    Ring,
    /// In-network reduction, each rank to its own NIC.
    CollNetDirect,
    /// In-network reduction at the end of a chain.
    CollNetChain,
    /// NVLink SHARP: the NVSwitch reduces and multicasts.
    Nvls,
    /// NVLink SHARP within nodes, tree between them.
    NvlsTree,
    /// Parallel aggregated trees, for one rank per node.
    Pat,
}

impl Algorithm {
    /// All, in NCCL's order.
    pub const ALL: [Self; 7] = [
        Self::Tree,
        Self::Ring,
        Self::CollNetDirect,
        Self::CollNetChain,
        Self::Nvls,
        Self::NvlsTree,
        Self::Pat,
    ];

    /// NCCL's spelling in logs and in `NCCL_ALGO`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tree => "Tree",
            Self::Ring => "Ring",
            Self::CollNetDirect => "CollNetDirect",
            Self::CollNetChain => "CollNetChain",
            Self::Nvls => "NVLS",
            Self::NvlsTree => "NVLSTree",
            Self::Pat => "PAT",
        }
    }
}

/// NCCL's wire protocols, in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// 4 bytes of data beside 4 bytes of flag.
    Ll,
    /// 120 bytes of data in each 128-byte line.
    Ll128,
    /// Whole chunks, then a flag.
    Simple,
}

impl Protocol {
    /// All, in NCCL's order.
    pub const ALL: [Self; 3] = [Self::Ll, Self::Ll128, Self::Simple];

    /// NCCL's spelling in logs and in `NCCL_PROTO`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ll => "LL",
            Self::Ll128 => "LL128",
            Self::Simple => "Simple",
        }
    }
}

/// The rows of the bandwidth tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Generation {
    /// Compute capability below 8.0.
    Volta,
    /// 8.x.
    Ampere,
    /// 9.x.
    Hopper,
    /// 10.0 and later.
    Blackwell,
}

impl Generation {
    /// From a compute capability as NCCL writes it: 80 for 8.0.
    pub const fn of(compute_capability: u32) -> Self {
        match compute_capability {
            100.. => Self::Blackwell,
            90..=99 => Self::Hopper,
            80..=89 => Self::Ampere,
            _ => Self::Volta,
        }
    }
}

/// An NCCL version, major and minor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Version(pub u32, pub u32);

impl Version {
    /// The newest whose table is known.
    pub const LATEST: Self = Self(2, 27);

    /// From NCCL's version code (`22703` or, before 2.9, `2708`).
    pub const fn from_code(code: u32) -> Self {
        if code >= 10_000 {
            Self(code / 10_000, code / 100 % 100)
        } else {
            Self(code / 1_000, code / 100 % 10)
        }
    }
}

/// Microseconds or GB/s for LL, LL128, Simple.
pub(super) type PerProtocol = [f64; 3];
/// One entry per [`Algorithm`].
pub(super) type PerAlgorithm = [PerProtocol; 7];
/// Columns one node, two nodes, more; rows by [`Generation`].
pub(super) type PerScale = [[f64; 3]; 4];

/// When a ring's Simple latency is raised across nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Plateau {
    /// From 64 bytes per channel and rank on: times 1.4 from compute capability 8.0, else 1.9.
    PerChannel,
    /// From `ranks / 16 * 65536` bytes on: times 1.9.
    PerSixteenRanks,
}

/// The constants of one stretch of versions.
#[derive(Clone, Debug, PartialEq)]
pub struct TunerTable {
    /// The first version that the table holds for.
    pub since: Version,
    pub(super) base: PerAlgorithm,
    pub(super) nvlink: PerAlgorithm,
    pub(super) pci: PerAlgorithm,
    pub(super) net: PerAlgorithm,
    pub(super) ll_max_bandwidth: PerScale,
    pub(super) ring_ll128_per_channel: PerScale,
    pub(super) tree_ll128_per_channel: PerScale,
    pub(super) tree_per_channel: PerScale,
    pub(super) nvls_tree_per_channel: PerScale,
    pub(super) nvls_efficiency: [f64; 4],
    /// Share of the bus rate that a ring reaches with LL.
    pub(super) ring_ll_factor: f64,
    /// Factor on the LL hop within a node when there are several.
    pub(super) multi_node_ll_hop_factor: f64,
    /// Cap on the bus rate from compute capability 8.0 on, GB/s.
    pub(super) ampere_bus_cap: f64,
    /// A ring all-reduce crosses the network `2N` times rather than `2(N-1)`.
    pub(super) ring_crosses_all_nodes: bool,
    pub(super) plateau: Plateau,
}

/// Constants at NCCL commit 5067397 (2.27 and later).
const HEAD: TunerTable = TunerTable {
    since: Version(2, 27),
    base: [
        [6.8, 14.0, 8.4],
        [6.6, 14.0, 8.4],
        [0.0, 0.0, 0.0],
        [0.0, 0.0, 0.0],
        [0.0, 0.0, 0.0],
        [0.0, 0.0, 0.0],
        [8.0, 8.0, 8.0],
    ],
    nvlink: [
        [0.6, 1.25, 4.0],
        [0.6, 1.9, 3.4],
        [0.0, 0.0, 3.7],
        [0.0, 0.0, 2.8],
        [0.0, 0.0, 25.0],
        [0.0, 0.0, 25.0],
        [0.0, 0.0, 4.0],
    ],
    pci: [
        [1.0, 1.9, 4.0],
        [1.0, 2.5, 5.7],
        [0.0, 0.0, 3.7],
        [0.0, 0.0, 2.8],
        [0.0, 0.0, 0.0],
        [0.0, 0.0, 0.0],
        [0.0, 0.0, 4.0],
    ],
    net: [
        [5.0, 8.5, 14.0],
        [2.7, 4.0, 14.0],
        [0.0, 0.0, 31.0],
        [0.0, 0.0, 30.0],
        [0.0, 0.0, 18.0],
        [0.0, 0.0, 20.9],
        [0.0, 0.0, 14.0],
    ],
    ll_max_bandwidth: [
        [39.0, 39.0, 20.4],
        [87.7, 22.5, 19.0],
        [141.0, 45.0, 35.0],
        [282.0, 90.0, 70.0],
    ],
    ring_ll128_per_channel: [[20.0; 3], [20.0; 3], [36.7; 3], [40.0; 3]],
    tree_ll128_per_channel: [[20.0; 3], [20.0; 3], [36.7, 36.7, 29.0], [55.6, 31.67, 20.0]],
    tree_per_channel: [
        [26.5, 18.5, 10.0],
        [24.0, 23.6, 17.8],
        [38.7, 41.4, 36.0],
        [70.0, 42.8, 24.0],
    ],
    nvls_tree_per_channel: [
        [26.5, 18.5, 10.0],
        [24.0, 23.6, 17.8],
        [0.0, 57.7, 45.5],
        [0.0, 96.0, 80.0],
    ],
    nvls_efficiency: [0.0, 0.0, 0.85, 0.74],
    ring_ll_factor: 0.5,
    multi_node_ll_hop_factor: 1.0,
    ampere_bus_cap: f64::INFINITY,
    ring_crosses_all_nodes: false,
    plateau: Plateau::PerChannel,
};

const TREE: usize = Algorithm::Tree as usize;
const RING: usize = Algorithm::Ring as usize;
const SIMPLE: usize = Protocol::Simple as usize;

/// 2.23: the tree's Simple hop on NVLink is still that of 2.21.
const V2_23: TunerTable = {
    let mut table = HEAD;
    table.since = Version(2, 23);
    table.nvlink[TREE][SIMPLE] = 28.0;
    table
};

/// 2.21: a ring counts a network hop per node, and the older plateau holds.
const V2_21: TunerTable = {
    let mut table = V2_23;
    table.since = Version(2, 21);
    table.ring_crosses_all_nodes = true;
    table.plateau = Plateau::PerSixteenRanks;
    table
};

/// 2.18.
const V2_18: TunerTable = {
    let mut table = V2_21;
    table.since = Version(2, 18);
    table.nvlink[TREE][SIMPLE] = 4.0;
    table.ring_ll_factor = 0.25;
    table
};

/// 2.12. Versions from 2.13 to 2.17 use it too: their own tables are not known.
const V2_12: TunerTable = {
    let mut table = V2_18;
    table.since = Version(2, 12);
    table.base[TREE] = [4.4, 4.4, 0.0];
    table.base[RING] = [3.6, 10.0, 8.4];
    table.nvlink[TREE] = [0.52, 1.25, 28.0];
    table.nvlink[RING] = [0.47, 1.9, 3.4];
    table.net[RING][SIMPLE] = 28.0;
    table.ampere_bus_cap = 235.0;
    table.multi_node_ll_hop_factor = 1.8;
    table
};

static TABLES: [TunerTable; 5] = [HEAD, V2_23, V2_21, V2_18, V2_12];

impl TunerTable {
    /// The table for a version: the newest that is not newer, else the oldest known.
    pub fn for_version(version: Version) -> &'static Self {
        let found = TABLES.iter().find(|table| table.since <= version);
        found.unwrap_or(&TABLES[TABLES.len() - 1])
    }

    /// Every table, newest first.
    pub fn all() -> &'static [Self] {
        &TABLES
    }
}

/// Correction of a tree's rate by size: entry `i` holds from `64 << i` bytes on.
pub(super) const TREE_CORRECTION: [[f64; 24]; 3] = [
    [
        1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5, 0.4, 0.4, 0.5, 0.6, 0.7, 0.8,
        0.9, 1.0, 1.0, 1.0, 1.0, 1.0,
    ],
    [
        1.0, 1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.8, 0.9,
        0.9, 0.9, 0.9, 1.0, 1.0, 1.0,
    ],
    [
        0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5, 0.5, 0.5, 0.5, 0.6, 0.7, 0.8,
        0.7, 0.7, 0.8, 0.9, 0.9, 0.9,
    ],
];
