//! Nodes of a step graph as loads on their device. Training and prediction both come by here, so
//! a model never sees features made in two ways.

use std::sync::Arc;

use foretrain_core::Nanos;
use foretrain_cost::KernelClass;
use foretrain_cost::interference::{Activity, DeviceLimits, KernelLoad, TransferLoad};
use foretrain_graph::attributes::well_known;
use foretrain_graph::{CollectiveKind, NodeId, NodeKind, QueueKind, StepGraph};
use foretrain_hardware::Device;
use rustc_hash::FxHashMap;

/// The loads of the nodes of a graph.
#[derive(Clone, Debug, Default)]
pub(crate) struct Loads {
    /// Of every node; `None` for what occupies no device.
    nodes: Vec<Option<Activity>>,
    /// What stands for kernels, as far as it has them.
    kernels: Option<Arc<Loads>>,
    /// Of the nodes that `kernels` does not stand for.
    others: FxHashMap<NodeId, Activity>,
}

impl Loads {
    /// Loads of nodes that take as long as `work` says when alone. `moving` tells which part of a
    /// transfer's time moves data.
    pub(crate) fn new(
        graph: &StepGraph,
        work: impl Fn(NodeId) -> Nanos,
        moving: impl Fn(NodeId) -> f64,
    ) -> Self {
        let load = |id| load(graph, id, work(id), moving(id));
        Self { nodes: graph.node_ids().map(load).collect(), ..Self::default() }
    }

    /// The same with kernels as recorded, of whose time alone a round of estimates decided.
    pub(crate) fn with_kernels_of(
        recorded: Arc<Self>,
        graph: &StepGraph,
        work: impl Fn(NodeId) -> Nanos,
        moving: impl Fn(NodeId) -> f64,
    ) -> Self {
        let is_recorded = |id: NodeId| {
            let is_kernel = matches!(graph.kind(id), NodeKind::Kernel | NodeKind::Copy);
            is_kernel && matches!(recorded.get(id), Some(Activity::Kernel(_)))
        };
        let others = graph.node_ids().filter(|&id| !is_recorded(id));
        let others =
            others.filter_map(|id| Some((id, load(graph, id, work(id), moving(id))?))).collect();
        Self { nodes: Vec::new(), kernels: Some(recorded), others }
    }

    pub(crate) fn get(&self, id: NodeId) -> Option<&Activity> {
        match &self.kernels {
            None => self.nodes.get(id.index())?.as_ref(),
            Some(recorded) => match recorded.get(id) {
                Some(load @ Activity::Kernel(_)) => Some(load),
                _ => self.others.get(&id),
            },
        }
    }

    /// Whether anything communicates on a device, beside which something could slow down.
    pub(crate) fn communicates(&self) -> bool {
        let mut all = self.nodes.iter().flatten().chain(self.others.values());
        all.any(|load| matches!(load, Activity::Transfer(_)))
    }
}

/// The load of a node that takes `alone` when nothing runs beside it; `None` for what occupies no
/// device.
fn load(graph: &StepGraph, id: NodeId, alone: Nanos, moving: f64) -> Option<Activity> {
    let queue = &graph.queues[graph.queue(id).index()];
    if !matches!(queue.kind, QueueKind::Stream | QueueKind::Link) {
        return None;
    }
    match graph.kind(id) {
        NodeKind::Kernel | NodeKind::Copy => Some(Activity::Kernel(kernel_load(graph, id, alone))),
        NodeKind::Collective | NodeKind::PointToPoint => {
            Some(Activity::Transfer(transfer_load(graph, id, alone.scale(moving), moving)))
        }
        _ => None,
    }
}

/// A kernel, copy or fill that takes `alone` when nothing runs beside it.
pub(crate) fn kernel_load(graph: &StepGraph, id: NodeId, alone: Nanos) -> KernelLoad {
    let attribute = |name| graph.node_attributes.get_i64(name, id.index());
    let moved = attribute(well_known::BYTES_MOVED).and_then(|bytes| u64::try_from(bytes).ok());
    let seconds = alone.secs_f64();
    KernelLoad {
        alone,
        class: KernelClass::of(graph.name(id)),
        blocks: product(graph, id, well_known::GRID),
        threads: product(graph, id, well_known::BLOCK),
        bandwidth: moved.filter(|_| seconds > 0.0).map(|bytes| bytes as f64 / seconds),
    }
}

/// A collective or message that moves data for `transfer`, the part `moving` of its time.
pub(crate) fn transfer_load(
    graph: &StepGraph,
    id: NodeId,
    transfer: Nanos,
    moving: f64,
) -> TransferLoad {
    let node = graph.node(id);
    TransferLoad {
        transfer,
        kind: node.collective.unwrap_or(CollectiveKind::Unknown),
        bytes: node.bytes,
        ranks: node.group.map_or(0, |group| graph.groups[group.index()].size),
        channels: product(graph, id, well_known::GRID),
        moving,
    }
}

/// Product of "x,y,z"; 0 if it is not recorded or no such thing.
fn product(graph: &StepGraph, id: NodeId, attribute: &str) -> u32 {
    let Some(text) = graph.node_attributes.get_str(attribute, id.index()) else { return 0 };
    let mut parts = text.split(',').map(|part| part.trim().parse::<u32>().ok());
    parts.try_fold(1_u32, |all, part| all.checked_mul(part?)).unwrap_or(0)
}

/// What a device offers its kernels; nothing is known of an unknown one.
pub(crate) fn device_limits(device: Option<&Device>) -> DeviceLimits {
    device.map_or_else(DeviceLimits::default, |device| DeviceLimits {
        multiprocessors: device.multiprocessors.unwrap_or(0),
        memory_bandwidth: device.memory_bandwidth.get(),
    })
}
