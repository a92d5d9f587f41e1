//! What the host does: launches, waits.

use foretrain_core::{InputError, Nanos, Result};
use foretrain_graph::{Edge, EdgeKind, Glob, NodeKind, NodeSet, StepGraph};

use crate::whatif::sketch::Sketch;

/// The word that stands for waits of streams for each other.
const EVENT_WAIT: &str = "event-wait";

/// All host work in a fraction of its time.
pub(super) fn faster(sketch: &mut Sketch<'_>, factor: f64) -> Result<()> {
    for class in sketch.classes() {
        let host = sketch.own_work(class, |_, kind| is_host(kind));
        sketch.rework(class, host, |_, work| work.scale(1.0 / factor));
    }
    Ok(())
}

/// Host work that ends in a launch takes no time: the launches of a step are issued at once, as a
/// CUDA graph does. Waits, input and host work that launches nothing stay.
pub(super) fn no_launch_overhead(sketch: &mut Sketch<'_>) -> Result<()> {
    let mut any = false;
    for class in sketch.classes() {
        let launching = launching(sketch, class);
        any |= !launching.is_empty();
        let host = sketch.own_work(class, |id, kind| is_host(kind) && launching.contains(id));
        sketch.rework(class, host, |_, _| Nanos::ZERO);
    }
    if any { Ok(()) } else { Err(InputError::new("the step launches no device work")) }
}

/// The nodes of a class that launch device work.
pub(super) fn launching(sketch: &Sketch<'_>, class: usize) -> NodeSet {
    let graph = sketch.graph(class);
    let launches = graph.edges().iter().filter(|edge| edge.kind == EdgeKind::Launch);
    NodeSet::from_ids(graph.node_count(), launches.map(|edge| edge.src))
}

/// Takes waits out: of the host for the device at calls whose name matches, and of streams for
/// each other if the pattern matches the word for them.
pub(super) fn no_sync(sketch: &mut Sketch<'_>, glob: &Glob) -> Result<()> {
    let mut removed = 0;
    for class in sketch.classes() {
        let graph = sketch.graph(class);
        let doomed: Vec<bool> =
            graph.edges().iter().map(|edge| is_wait(graph, edge, glob)).collect();
        let count = doomed.iter().filter(|&&doomed| doomed).count();
        removed += count;
        if count > 0 {
            let graph = &mut sketch.job_mut().classes[class].graph;
            graph.retain_edges(|id, _| !doomed[id.index()]);
        }
    }
    if removed == 0 && !is_there(sketch, glob) {
        return Err(no_such_wait(sketch, glob));
    }
    sketch.notes.push(format!("no sync({}): {removed} waits taken out", glob.as_str()));
    Ok(())
}

/// Whether an edge is a wait that the pattern names.
fn is_wait(graph: &StepGraph, edge: &Edge, glob: &Glob) -> bool {
    match edge.kind {
        EdgeKind::HostSync => {
            graph.kind(edge.dst) == NodeKind::Sync && glob.matches(graph.name(edge.dst))
        }
        EdgeKind::EventWait => glob.matches(EVENT_WAIT),
        _ => false,
    }
}

/// Whether the job has such a wait before any change: an earlier change may have taken it out.
fn is_there(sketch: &Sketch<'_>, glob: &Glob) -> bool {
    let mut classes = sketch.ground.draft.job.classes.iter();
    classes.any(|class| class.graph.edges().iter().any(|edge| is_wait(&class.graph, edge, glob)))
}

fn no_such_wait(sketch: &Sketch<'_>, glob: &Glob) -> InputError {
    let graph = sketch.graph(0);
    let waits = graph.edges().iter().filter(|edge| edge.kind == EdgeKind::HostSync);
    let mut names: Vec<&str> = waits.map(|edge| graph.name(edge.dst)).collect();
    if graph.edges().iter().any(|edge| edge.kind == EdgeKind::EventWait) {
        names.push(EVENT_WAIT);
    }
    names.sort_unstable();
    names.dedup();
    let error = InputError::new(format!("no wait matches {:?}", glob.as_str()));
    match names.as_slice() {
        [] => error.hint("the step has no waits of the host or of streams"),
        names => error.hint(format!("its waits are {}", names[..names.len().min(8)].join(", "))),
    }
}

fn is_host(kind: NodeKind) -> bool {
    matches!(kind, NodeKind::HostSegment | NodeKind::Optimizer)
}
