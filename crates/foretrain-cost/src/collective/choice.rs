//! Which algorithm and protocol NCCL would take on a fabric.

use foretrain_graph::CollectiveKind;
use foretrain_hardware::CpuVendor;

use super::fabric::{Fabric, Library};
use super::time::CollectiveCall;
use crate::nccl_tuner::{
    Algorithm, Graph, PathType, Protocol, Tuner, TunerCall, TunerCpu, TunerTable, Version,
};

/// The tuner of a communicator on several nodes, where the library is NCCL.
///
/// NCCL searches its channel graphs; here they follow from the NICs: two channels per NIC until
/// sixteen, which together carry the NICs' rate. It matches the graphs of nodes with one NIC per
/// GPU.
fn tuner(fabric: &Fabric, version: Option<Version>) -> Option<Tuner> {
    let Library::Nccl(own) = fabric.library else { return None };
    let version = version.unwrap_or(own);
    if fabric.nodes <= 1 {
        return None;
    }
    let (major, minor) = fabric.compute_capability.unwrap_or((8, 0));
    let capability = major.saturating_mul(10).saturating_add(minor);
    let per_channel = if capability >= 90 { HOPPER_CHANNEL } else { CHANNEL };
    let bus = fabric.inter.bandwidth.gb_per_sec();
    let channels = (bus / per_channel).round().clamp(2.0, 16.0);
    let graph =
        Graph { inter_path: PathType::Pxb, ..Graph::nvlink(channels as u32, bus / channels) };
    let intra_path = if fabric.intra.kind.is_nvlink() { PathType::Nvl } else { PathType::Phb };
    let graph = Graph { intra_path, ..graph };
    let nodes = fabric.nodes.clamp(1, fabric.ranks);
    Some(Tuner {
        table: TunerTable::for_version(version.min(Version::LATEST)),
        ranks: fabric.ranks,
        nodes,
        compute_capability: (capability, capability),
        cpu: match fabric.cpu {
            CpuVendor::Amd => TunerCpu::AmdOrMixed,
            CpuVendor::Intel => TunerCpu::Intel,
            _ => TunerCpu::Other,
        },
        cuda: None,
        collnet: false,
        nvswitch: false,
        ring: graph,
        tree: graph,
        nvls: None,
        collnet_graph: None,
    })
}

/// GB/s of one channel between nodes.
const CHANNEL: f64 = 12.0;
/// From Hopper on.
const HOPPER_CHANNEL: f64 = 24.0;

/// Ring or tree and its protocol, as NCCL ranks them.
pub(super) fn choose(
    fabric: &Fabric,
    call: &CollectiveCall,
    version: Option<Version>,
) -> Option<(Algorithm, Protocol)> {
    let kind = match call.kind {
        CollectiveKind::Unknown | CollectiveKind::Barrier => CollectiveKind::AllReduce,
        kind => kind,
    };
    let call = TunerCall { dtype: call.dtype, ..TunerCall::new(kind, call.bytes) };
    tuner(fabric, version)?.choose(&call).map(|best| (best.algorithm, best.protocol))
}
