//! A narrower element type, and messages of other sizes.

use foretrain_core::{Bytes, DType, FlopRate, InputError, Result};
use foretrain_cost::{CollectiveCall, Fabric, collective_time, kernel_ratio};
use foretrain_graph::attributes::well_known;
use foretrain_graph::{GroupId, Node, NodeId, NodeKind, Phase, StepGraph};
use foretrain_hardware::Device;
use rustc_hash::FxHashMap;

use crate::roles::Role;
use crate::scale::links::LinkUse;
use crate::whatif::sketch::Sketch;

/// How uncertain the change is: which kernels a library picks for a type is not modelled.
const SPREAD: f64 = 0.25;

/// Computation outside the optimiser, and messages of a wider type, in `dtype`.
///
/// A kernel's time changes with what bounds it: its share of memory with the size of an element,
/// the rest with the device's dense peak. A kernel is taken to run in the type that it carries or
/// its name tells, else in f32. Kernels that are as narrow already stay, and so does the optimiser,
/// which keeps its f32 copy of the parameters.
pub(super) fn narrow(sketch: &mut Sketch<'_>, dtype: DType) -> Result<()> {
    let device = sketch.base.cluster.node.device.clone();
    if !is_float(dtype) {
        return Err(InputError::new(format!("{dtype} is no type to train in"))
            .hint("known: tf32, bf16, f16, fp8"));
    }
    if device.native_peak(dtype).is_none() {
        let name = &device.name;
        return Err(InputError::new(format!("{name} has no units for {dtype}"))
            .hint("its kernels would not run faster; choose a type that it has"));
    }
    let mut changed = 0;
    for class in sketch.classes() {
        let graph = sketch.graph(class);
        let kernels: Vec<(NodeId, f64)> = sketch
            .own_work(class, |id, kind| {
                kind == NodeKind::Kernel && graph.node(id).phase != Phase::Optimizer
            })
            .into_iter()
            .filter_map(|id| Some((id, ratio(graph, id, dtype, &device)?)))
            .collect();
        changed += kernels.len();
        for (id, ratio) in kernels {
            sketch.rework(class, [id], |_, work| work.scale(ratio));
        }
        changed += resize(sketch, class, |node, _| {
            let from = node.dtype.filter(|from| is_float(*from))?;
            let narrower = node.phase != Phase::Optimizer && from.bits() > dtype.bits();
            narrower.then(|| f64::from(dtype.bits()) / f64::from(from.bits()))
        })?;
    }
    if changed == 0 {
        return Err(InputError::new(format!("nothing in the step is wider than {dtype}")));
    }
    sketch.notes.push(format!("precision={dtype}: {changed} kernels and messages change"));
    sketch.spread = sketch.spread.max(SPREAD);
    Ok(())
}

/// New time over old of a kernel; `None` if it is as narrow already.
fn ratio(graph: &StepGraph, id: NodeId, to: DType, device: &Device) -> Option<f64> {
    let name = graph.name(id);
    let from = graph.node(id).dtype.or_else(|| named(name)).unwrap_or(DType::F32);
    // TF32 is f32 in memory: from f32 only the rate changes.
    let wider = from.bits() > to.bits() || (from == DType::F32 && to == DType::Tf32);
    if !is_float(from) || !wider {
        return None;
    }
    let attributes = &graph.node_attributes;
    let flops = attributes.get_f64(well_known::FLOPS, id.index()).map(foretrain_core::Flops::new);
    let bytes = attributes.get_i64(well_known::BYTES_MOVED, id.index());
    let bytes = bytes.and_then(|bytes| u64::try_from(bytes).ok()).map(Bytes::new);
    let share = kernel_ratio(name, Some(from), flops, bytes, device, device).memory_share;
    let peak = |dtype| device.peak(dtype).map(FlopRate::get).filter(|peak| *peak > 0.0);
    let compute = peak(from)? / peak(to)?;
    let memory = f64::from(to.bits()) / f64::from(from.bits());
    Some((memory.powf(share) * compute.powf(1.0 - share)).min(1.0))
}

/// The element type that a kernel's name tells.
fn named(name: &str) -> Option<DType> {
    const WORDS: [(&str, DType); 10] = [
        ("bf16", DType::Bf16),
        ("bfloat16", DType::Bf16),
        ("tf32", DType::Tf32),
        ("s1688gemm", DType::Tf32),
        ("_s1688", DType::Tf32),
        ("e4m3", DType::F8E4m3),
        ("half", DType::F16),
        ("fp16", DType::F16),
        ("f16", DType::F16),
        ("h884", DType::F16),
    ];
    let name = name.to_ascii_lowercase();
    WORDS.iter().find(|(word, _)| name.contains(word)).map(|&(_, dtype)| dtype)
}

fn is_float(dtype: DType) -> bool {
    use DType::{Bf16, F4, F8E4m3, F8E5m2, F16, F32, F64, Tf32};
    matches!(dtype, F64 | F32 | Tf32 | Bf16 | F16 | F8E4m3 | F8E5m2 | F4)
}

/// Makes messages larger or smaller by the factor that `wanted` says; returns how many. A
/// transfer's time changes by the ratio of the two modelled ones.
pub(super) fn resize(
    sketch: &mut Sketch<'_>,
    class: usize,
    wanted: impl Fn(&Node, Role) -> Option<f64>,
) -> Result<usize> {
    let mut fabrics: FxHashMap<GroupId, Fabric> = FxHashMap::default();
    let mut costs = std::mem::take(&mut sketch.costs[class]);
    let mut changed = 0;
    for (id, cost) in &mut costs {
        let node = sketch.graph(class).node(*id);
        let (Some(group), Some(bytes)) = (node.group, node.bytes) else { continue };
        let role = role(sketch, class, group);
        let Some(factor) = wanted(&node, role).filter(|_| cost.ranks != 1) else { continue };
        let fabric = match fabrics.get(&group) {
            Some(known) => known,
            None => fabrics.entry(group).or_insert(fabric(sketch, class, group)?),
        };
        let call = |bytes| CollectiveCall {
            kind: node.collective.unwrap_or(foretrain_graph::CollectiveKind::Unknown),
            bytes,
            dtype: node.dtype,
        };
        let (old, new) = (call(bytes), call(Bytes::from_f64(bytes.as_f64() * factor)));
        let time = |call| collective_time(call, fabric).time.value.nanos() as f64;
        let ratio = time(&new) / time(&old).max(1.0);
        cost.time = cost.time.map(|nanos| nanos * ratio);
        cost.links = LinkUse::of(&new, fabric);
        changed += 1;
    }
    sketch.costs[class] = costs;
    Ok(changed)
}

/// Groups beyond the recorded ones were inserted, to synchronise replicas.
fn role(sketch: &Sketch<'_>, class: usize, group: GroupId) -> Role {
    let layout = &sketch.origin(class).layout;
    if group.index() < layout.roles.len() { layout.role(group.index()) } else { Role::DataParallel }
}

fn fabric(sketch: &Sketch<'_>, class: usize, group: GroupId) -> Result<Fabric> {
    let origin = sketch.origin(class);
    let replicas = sketch.ground.draft.replicas;
    if group.index() >= origin.layout.roles.len() {
        return sketch.base.gradient_fabric(origin, replicas);
    }
    let (_, placed) = origin.layout.placements(&origin.graph, group.index(), replicas);
    Fabric::for_group(sketch.base.cluster, &placed)
}
