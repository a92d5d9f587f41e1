//! Chains of kernels that the memory limits, as one kernel each.

use foretrain_core::stats::median;
use foretrain_core::{InputError, Nanos, Result};
use foretrain_cost::KernelClass;
use foretrain_graph::{EdgeKind, NodeId, NodeKind, NodeSet, Phase, StepGraph};

use super::host::launching;
use super::order::chains;
use crate::whatif::sketch::Sketch;

/// How uncertain the saving is: it is what a fusion could save at most.
const SPREAD: f64 = 0.3;

/// Fuses elementwise kernels that follow each other on a stream, and a reduction at the end.
///
/// Half of an elementwise kernel's time reads and half writes, so of two neighbours the write of
/// the first and the read of the second go: the shorter of their times. What remains of a chain is
/// charged to its last kernel. The host saves the launches of the others, each the usual host work
/// of a launch in this step. Optimiser kernels are left out: theirs handle different tensors.
pub(super) fn fuse(sketch: &mut Sketch<'_>) -> Result<()> {
    let (mut fused, mut left, mut saved) = (0, 0, Nanos::ZERO);
    for class in sketch.classes() {
        let groups = fusible(sketch.graph(class));
        for group in &groups {
            let times: Vec<Nanos> = group.iter().map(|id| sketch.work[class][id.index()]).collect();
            let traffic: Nanos = times.windows(2).map(|pair| pair[0].min(pair[1])).sum();
            let whole = times.iter().copied().sum::<Nanos>() - traffic;
            sketch.rework(class, group.iter().copied(), |_, _| Nanos::ZERO);
            if let Some(last) = group.last() {
                sketch.work[class][last.index()] = whole;
            }
            if class == 0 {
                (fused, left, saved) = (fused + group.len(), left + 1, saved + traffic);
            }
        }
        save_launches(sketch, class, &groups);
    }
    if fused == 0 {
        return Err(InputError::new(
            "no two kernels in a row are elementwise, so none can be fused",
        )
        .hint("only kernels whose names tell that the memory limits them are fused"));
    }
    sketch.notes.push(format!("fuse: {fused} kernels become {left}, {saved} less device time"));
    sketch.spread = sketch.spread.max(SPREAD);
    Ok(())
}

/// Groups of at least two kernels, in stream order.
fn fusible(graph: &StepGraph) -> Vec<Vec<NodeId>> {
    let classes: Vec<KernelClass> =
        graph.names.iter().map(|(_, name)| KernelClass::of(name)).collect();
    let (mut waited_for, mut waits) = (none(graph), none(graph));
    for edge in graph.edges() {
        match edge.kind {
            EdgeKind::EventWait | EdgeKind::Data => {
                waited_for.insert(edge.src);
                waits.insert(edge.dst);
            }
            EdgeKind::HostSync => drop(waited_for.insert(edge.src)),
            _ => {}
        }
    }
    let class_of = |id: NodeId| {
        let node = graph.node(id);
        let counts = node.kind == NodeKind::Kernel && node.phase != Phase::Optimizer;
        counts.then(|| classes[node.name.index()])
    };
    let streams =
        |class: KernelClass| matches!(class, KernelClass::Elementwise | KernelClass::Copy);
    let joins = |a: NodeId, b: NodeId| {
        let ends = |class| streams(class) || class == KernelClass::Reduction;
        class_of(a).is_some_and(streams)
            && class_of(b).is_some_and(ends)
            && graph.node(a).phase == graph.node(b).phase
            && !waited_for.contains(a)
            && !waits.contains(b)
    };
    let mut groups = Vec::new();
    for chain in chains(graph) {
        let runs = chain.chunk_by(|&a, &b| joins(a, b)).filter(|run| run.len() > 1);
        groups.extend(runs.map(<[NodeId]>::to_vec));
    }
    groups
}

fn none(graph: &StepGraph) -> NodeSet {
    NodeSet::empty(graph.node_count())
}

/// Takes the launches of all kernels of a group but the last off the host.
fn save_launches(sketch: &mut Sketch<'_>, class: usize, groups: &[Vec<NodeId>]) {
    let works = &sketch.work[class];
    let usual: Vec<f64> =
        launching(sketch, class).iter().map(|id| works[id.index()].nanos() as f64).collect();
    let Some(usual) = median(&usual).map(Nanos::from_nanos_f64) else { return };
    let mut saved = none(sketch.graph(class));
    for group in groups {
        for &id in &group[..group.len() - 1] {
            saved.insert(id);
        }
    }
    let launches: Vec<NodeId> = {
        let edges = sketch.graph(class).edges().iter();
        let of_saved = |edge: &&foretrain_graph::Edge| {
            edge.kind == EdgeKind::Launch && saved.contains(edge.dst)
        };
        edges.filter(of_saved).map(|edge| edge.src).collect()
    };
    sketch.rework(class, launches, |_, work| work - usual);
}
