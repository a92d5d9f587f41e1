//! Computation and communication that slow each other down, out of the recording and back in.

use std::sync::Arc;

use foretrain_core::{Evidence, EvidenceKind, Nanos};
use foretrain_cost::interference::{DeviceLimits, OverlapModel};
use foretrain_graph::{Job, NodeId, NodeKind};
use foretrain_hardware::{Catalogue, Cluster};
use rustc_hash::FxHashMap;

use super::cost::Costs;
use super::ranks::{Class, Ranks};
use super::steady::Sharing;
use crate::interference::{DeviceSharing, Loads, device_limits, take_out};

/// How often the loads are made again from the times that they led to. The times alone decide the
/// slow-down that leads to them; each round brings both several times closer.
const ROUNDS: usize = 6;

/// Replaces recorded times by times alone, and says so. The nodes keep the loads by which that was
/// done, so that the same model puts back what was taken out.
pub(super) fn take_out_slowdown(
    ranks: &mut Ranks,
    model: &Arc<OverlapModel>,
    device: DeviceLimits,
    evidence: &mut Vec<Evidence>,
) {
    for class in &mut ranks.classes {
        class.loads = Arc::new(recorded_loads(class, &FxHashMap::default()));
        if !class.loads.communicates() {
            continue;
        }
        let mut alone = FxHashMap::default();
        for _ in 0..ROUNDS {
            let loads = Arc::new(recorded_loads(class, &alone));
            let sharing =
                DeviceSharing { model: Arc::clone(model), device, loads: vec![Arc::clone(&loads)] };
            alone = take_out(&class.spans, &class.graph, 0, &sharing);
            class.loads = loads;
        }
        apply(class, &alone);
    }
    describe(ranks, model, evidence);
}

/// Loads with the times alone that are known so far.
fn recorded_loads(class: &Class, alone: &FxHashMap<NodeId, Nanos>) -> Loads {
    let graph = &class.graph;
    let work = |id| alone.get(&id).copied().unwrap_or(graph.work(id));
    Loads::new(graph, work, |id| moving(class, id))
}

/// Part of a recorded transfer's time in which it moved data.
fn moving(class: &Class, id: NodeId) -> f64 {
    let whole = class.graph.work(id);
    class.transfers.of(id, whole).nanos() as f64 / whole.nanos().max(1) as f64
}

/// Kernels get their times alone; transfers the part of theirs that is not due to computation,
/// on top of what is not due to others on their links.
fn apply(class: &mut Class, alone: &FxHashMap<NodeId, Nanos>) {
    for id in class.graph.node_ids() {
        let Some(&time) = alone.get(&id) else { continue };
        let whole = class.graph.work(id);
        if class.graph.kind(id) == NodeKind::Kernel || class.graph.kind(id) == NodeKind::Copy {
            class.graph.set_work(id, time);
            continue;
        }
        let transfer = class.transfers.of(id, whole).nanos().max(1) as f64;
        let lost = (whole - time).clamp_positive().nanos() as f64;
        let part = ((transfer - lost) / transfer).max(0.1);
        *class.alone.entry(id).or_insert(1.0) *= part;
    }
}

fn describe(ranks: &Ranks, model: &OverlapModel, evidence: &mut Vec<Evidence>) {
    let lead = ranks.lead();
    let is_kernel = |id: &NodeId| lead.graph.kind(*id) == NodeKind::Kernel;
    if !lead.loads.communicates() {
        return;
    }
    let kernels = lead.graph.node_ids().filter(is_kernel).count();
    let taken_out = lead.spans.iter().filter_map(|span| {
        let (node, time) = span.counted()?;
        let lost = time - lead.graph.work(node);
        (lost > Nanos::ZERO && is_kernel(&node)).then_some(lost)
    });
    let (count, lost) =
        taken_out.fold((0, Nanos::ZERO), |(count, sum), lost| (count + 1, sum + lost));
    evidence.push(Evidence::new(
        EvidenceKind::Inferred,
        "kernels beside communication",
        format!(
            "{count} of {kernels} recorded kernels were slower by {lost} per step in all ({} model): taken out, and put back where they overlap",
            model.as_str()
        ),
        0.05,
    ));
}

/// The model over a job whose communication costs what `costs` say, and whose other nodes take
/// what `work` says of their class.
pub(super) fn put_back(
    model: &Arc<OverlapModel>,
    device: DeviceLimits,
    job: &Job,
    work: impl Fn(usize, NodeId) -> Nanos,
    costs: &[Costs],
    recorded: Vec<Option<Arc<Loads>>>,
) -> Sharing {
    let mut loads = Vec::new();
    for (index, (class, recorded)) in job.classes.iter().zip(recorded).enumerate() {
        let times: FxHashMap<NodeId, (Nanos, Nanos)> =
            costs[index].iter().map(|(id, cost)| (*id, (cost.time.value, cost.wait))).collect();
        let time = |id| match times.get(&id) {
            Some(&(time, wait)) => time + wait,
            None => work(index, id),
        };
        let moving = |id| {
            let (time, wait) = times.get(&id).copied().unwrap_or((Nanos::ZERO, Nanos::ZERO));
            time.nanos() as f64 / (time + wait).nanos().max(1) as f64
        };
        loads.push(Arc::new(match recorded {
            Some(recorded) => Loads::with_kernels_of(recorded, &class.graph, time, moving),
            None => Loads::new(&class.graph, time, moving),
        }));
    }
    if !loads.iter().any(|loads| loads.communicates()) {
        return None;
    }
    Some(Arc::new(DeviceSharing { model: Arc::clone(model), device, loads }))
}

/// The limits of the device that a job was recorded on, and of the one it is predicted for.
pub(super) fn limits(
    catalogue: &Catalogue,
    recorded_device: &str,
    from: Option<&Cluster>,
    to: &Cluster,
) -> (DeviceLimits, DeviceLimits) {
    let recorded = catalogue
        .device_by_product_name(recorded_device)
        .or(from.map(|cluster| &cluster.node.device))
        .unwrap_or(&to.node.device);
    (device_limits(Some(recorded)), device_limits(Some(&to.node.device)))
}
