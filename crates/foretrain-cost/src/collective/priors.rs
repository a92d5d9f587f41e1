//! The structural constants of the prediction before anything is calibrated.
//!
//! They are round numbers read off public benchmark logs, not fitted. Hops are microseconds for
//! LL, LL128 and Simple; caps are GB/s.

use foretrain_hardware::{LinkKind, NicKind};

use super::fabric::Fabric;
use crate::nccl_tuner::Generation;

/// Hop latencies within a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct IntraPrior {
    /// Of a ring, us by protocol.
    pub(super) ring: [f64; 3],
    /// Of the chain in a tree, us by protocol.
    pub(super) chain: [f64; 3],
    /// Share of the payload rate that a large message reaches.
    pub(super) reach: f64,
    /// 128-byte stores arrive whole.
    pub(super) ll128: bool,
    /// Relative spread of `reach` over machines of the kind.
    pub(super) spread: f64,
    /// Where the row comes from.
    pub(super) source: &'static str,
}

/// NVLink up to the third generation.
const NVLINK: IntraPrior = IntraPrior {
    ring: [2.0, 2.0, 4.0],
    chain: [1.0, 2.0, 3.0],
    reach: 0.95,
    ll128: true,
    spread: 0.10,
    source: "round priors read off public nccl-tests logs of A100 NVLink nodes",
};

/// NVLink from the fourth generation: 1 KiB over 8 H100 takes 13 us.
const NVLINK_4: IntraPrior = IntraPrior {
    ring: [0.6, 2.0, 4.0],
    chain: [0.6, 2.0, 3.0],
    source: "round priors read off public nccl-tests logs of H100 NVLink nodes",
    ..NVLINK
};

/// 1 KiB over 8 MI300X takes 13 us; 316 GB/s bus at large sizes.
const XGMI: IntraPrior = IntraPrior {
    ring: [0.6, 2.0, 4.0],
    chain: [0.6, 2.0, 3.0],
    ll128: false,
    spread: 0.15,
    source: "round priors read off public rccl-tests logs of MI300X nodes",
    ..NVLINK
};

/// PCIe: 2 to 11 GB/s bus were measured on x16 links of 12 to 25, by whether peers may talk directly.
const PCIE: IntraPrior = IntraPrior {
    ring: [2.5, 3.0, 6.0],
    chain: [2.5, 3.0, 6.0],
    reach: 0.5,
    ll128: false,
    spread: 0.5,
    source: "round priors read off public nccl-tests logs of PCIe nodes",
};

/// Nothing public to go by.
const OTHER: IntraPrior = IntraPrior {
    ll128: false,
    reach: 0.85,
    spread: 0.3,
    source: "assumed: NVLink's hops, 85 % of the payload rate",
    ..NVLINK
};

/// The row for a node's interconnect.
pub(super) fn intra(kind: LinkKind, generation: Option<u32>) -> &'static IntraPrior {
    match kind {
        LinkKind::Nvlink | LinkKind::Nvswitch if generation >= Some(4) => &NVLINK_4,
        LinkKind::Nvlink | LinkKind::Nvswitch => &NVLINK,
        LinkKind::Xgmi => &XGMI,
        LinkKind::Pcie => &PCIE,
        _ => &OTHER,
    }
}

/// Hop latencies between nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct InterPrior {
    /// us by protocol.
    pub(super) hop: [f64; 3],
    /// Share of the payload rate that a large message reaches.
    pub(super) reach: f64,
    /// Relative spread of `reach` over machines of the kind.
    pub(super) spread: f64,
    /// Where the row comes from.
    pub(super) source: &'static str,
}

/// All-reduce buses of 0.64 to 0.94 of the wire on 200 and 400 Gbit/s InfiniBand and RoCE.
const RDMA: InterPrior = InterPrior {
    hop: [10.0, 15.0, 20.0],
    reach: 0.85,
    spread: 0.2,
    source: "round priors read off public nccl-tests logs over InfiniBand and RoCE",
};

/// Two nodes of 1 KiB: 65 us on p5, 160 us on p4d.
const EFA: InterPrior = InterPrior {
    hop: [30.0, 30.0, 40.0],
    spread: 0.3,
    source: "round priors read off public nccl-tests logs over EFA",
    ..RDMA
};

/// Two nodes: 122 us.
const GPUDIRECT_TCP: InterPrior = InterPrior {
    hop: [50.0, 50.0, 60.0],
    spread: 0.3,
    source: "round priors read off public nccl-tests logs over GPUDirect-TCPX",
    ..RDMA
};

/// Two nodes over IP: 77 us; sockets rarely fill a fast NIC.
const SOCKETS: InterPrior = InterPrior {
    hop: [30.0, 30.0, 40.0],
    reach: 0.7,
    spread: 0.4,
    source: "round priors read off public nccl-tests logs over TCP sockets",
};

/// The row for a node's NICs.
pub(super) fn inter(kind: NicKind) -> &'static InterPrior {
    match kind {
        NicKind::Infiniband | NicKind::Roce | NicKind::Slingshot => &RDMA,
        NicKind::Efa => &EFA,
        NicKind::GpudirectTcp => &GPUDIRECT_TCP,
        NicKind::Ethernet | NicKind::None => &SOCKETS,
    }
}

/// From the call to the first byte, us.
pub(super) const LAUNCH_US: f64 = 5.0;
/// What a protocol adds to the launch: buffers to fill before the pipeline runs, us.
pub(super) const PROTOCOL_BASE_US: [f64; 3] = [0.0, 5.0, 20.0];
/// What a rank can push through LL and LL128 at most, GB/s: flags are checked per 8 and 128 bytes.
/// The LL128 figure is an A100's and grows with NCCL's per-channel limit.
pub(super) const PROTOCOL_CAP: [f64; 3] = [6.0, 80.0, f64::INFINITY];
/// Share of the wire that is data: half a store, 120 of 128 bytes, all; LL waits for half of its
/// flags again (25-50 % of the peak were published).
pub(super) const PROTOCOL_SHARE: [f64; 3] = [0.25, 0.92, 1.0];
/// An NVLink SHARP operation's fixed cost, us, as NCCL has it.
pub(super) const NVLS_BASE_US: f64 = 25.0;
/// Peers that a rank's sends and receives are in flight with at once.
pub(super) const PEERS_AT_ONCE: f64 = 8.0;

/// Cap of a protocol on this fabric's devices, GB/s.
pub(super) fn protocol_cap(fabric: &Fabric, protocol: usize) -> f64 {
    let scale = match (protocol, generation(fabric)) {
        (1, Generation::Hopper) => 36.7 / 20.0,
        (1, Generation::Blackwell) => 40.0 / 20.0,
        _ => 1.0,
    };
    PROTOCOL_CAP[protocol] * scale
}

/// Share of a rank's rate that NVLink SHARP turns into reduced data: 480 GB/s bus on 8 H100
/// (0.74 of 371), 850 to 940 on 72 GB200 and GB300 (0.6 to 0.66 of 722).
pub(super) fn nvls_share(fabric: &Fabric) -> f64 {
    if generation(fabric) >= Generation::Blackwell { 0.62 } else { 0.74 }
}

fn generation(fabric: &Fabric) -> Generation {
    let code = |(major, minor): (u32, u32)| major.saturating_mul(10).saturating_add(minor);
    fabric.compute_capability.map_or(Generation::Ampere, |cc| Generation::of(code(cc)))
}

/// Constants of a CPU collective over TCP (or shared memory).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct HostPrior {
    /// From the call to the first byte, us.
    pub(super) launch: f64,
    /// A message between two ranks, us.
    pub(super) message: f64,
    /// What one rank's thread moves at most, GB/s.
    pub(super) stream: f64,
    /// What one rank's thread sums, GB/s.
    pub(super) reduce: f64,
    /// A reduce-scatter moves as much as an all-reduce.
    pub(super) full_reduce_scatter: bool,
    /// Where the row comes from.
    pub(super) source: &'static str,
}

/// PyTorch's Gloo on one core per rank.
pub(super) const GLOO: HostPrior = HostPrior {
    launch: 150.0,
    message: 40.0,
    stream: 1.2,
    reduce: 4.0,
    full_reduce_scatter: true,
    source: "round priors read off our Gloo runs over shaped TCP links",
};

/// MPI with host buffers.
pub(super) const MPI: HostPrior = HostPrior {
    launch: 10.0,
    message: 10.0,
    stream: 6.0,
    reduce: 8.0,
    full_reduce_scatter: false,
    source: "assumed: an MPI over RDMA with host buffers",
};
