//! Taking the profiler's own cost out of a recording.
//!
//! Profiling lengthens host work and nothing else. Who knows the step time of the same job without
//! a profiler can have the recorded host work shortened until the replay takes that time.

use foretrain_core::{InputError, Nanos, Result};
use foretrain_graph::{Job, NodeId, NodeKind, StepGraph};

use super::ranks::Ranks;
use super::steady::settled;

/// Host work is scaled within these bounds: a profiler may multiply the time of small operators,
/// and a recorded window may be better than usual.
const BOUNDS: (f64, f64) = (0.2, 3.0);
/// Halvings of the interval between them: the factor is then known to 0.001.
const HALVINGS: usize = 12;
/// The replay may miss the wanted time by this fraction.
const TOLERANCE: f64 = 0.01;

/// Scales the host work of every rank until the recorded job takes `wanted` per step; returns the
/// factor. `ranks.replayed` becomes the new step time.
///
/// # Errors
/// If no factor within bounds reaches it.
pub(super) fn scale_host(ranks: &mut Ranks, wanted: Nanos) -> Result<f64> {
    let recorded: Vec<StepGraph> = ranks.classes.iter().map(|class| class.graph.clone()).collect();
    let replay = |factor: f64| -> Result<Nanos> {
        let job = Job::from_ranks(recorded.iter().map(|graph| with_host(graph, factor)));
        settled(&job, &[], None).map(|(step, _)| step)
    };
    let (mut low, mut high) = BOUNDS;
    let (least, most) = (replay(low)?, replay(high)?);
    let slack = wanted.scale(TOLERANCE);
    if wanted + slack < least || wanted - slack > most {
        return Err(out_of_reach(wanted, least, most));
    }
    for _ in 0..HALVINGS {
        let middle = 0.5 * (low + high);
        if replay(middle)? < wanted { low = middle } else { high = middle }
    }
    let factor = 0.5 * (low + high);
    for (class, graph) in ranks.classes.iter_mut().zip(&recorded) {
        class.graph = with_host(graph, factor);
    }
    ranks.replayed = replay(factor)?;
    Ok(factor)
}

fn with_host(graph: &StepGraph, factor: f64) -> StepGraph {
    let mut graph = graph.clone();
    let host: Vec<NodeId> = graph
        .node_ids()
        .filter(|&id| matches!(graph.kind(id), NodeKind::HostSegment | NodeKind::Optimizer))
        .collect();
    for id in host {
        graph.set_work(id, graph.work(id).scale(factor));
    }
    graph
}

fn out_of_reach(wanted: Nanos, least: Nanos, most: Nanos) -> InputError {
    InputError::new(format!(
        "a step of {wanted} without the profiler does not go with this recording: whatever the profiler cost on the host, its step takes between {least} and {most}"
    ))
    .hint("the device or the network decides the step: leave the time out")
    .hint("or the recording is of another batch size, machine or program")
}
