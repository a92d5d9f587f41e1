//! Replaying recorded steps: the test of how faithful the graphs are.

mod heldout;
mod joint;

use foretrain_core::{InputError, Nanos, Result};
use foretrain_graph::{Job, NodeId, NodeKind, StepGraph};
use foretrain_sim::{Program, SimError, SimOptions, Timeline, simulate};
use foretrain_trace::build::{STEP_BEGIN, STEP_END};

pub use heldout::{HeldOutStep, predict_held_out_step};
pub use joint::{JointReplay, RankStep, replay_ranks};

/// The step's begin and end marks.
pub fn step_marks(graph: &StepGraph) -> Option<(NodeId, NodeId)> {
    let find = |name: &str| {
        graph.node_ids().find(|&id| graph.kind(id) == NodeKind::Mark && graph.name(id) == name)
    };
    Some((find(STEP_BEGIN)?, find(STEP_END)?))
}

/// Step time of one class of a timeline in one iteration, between its marks.
pub fn marked_step(
    timeline: &Timeline,
    class: usize,
    graph: &StepGraph,
    iteration: usize,
) -> Option<Nanos> {
    let (begin, end) = step_marks(graph)?;
    let at = |mark| timeline.mark_times(class, mark).get(iteration).copied();
    Some(at(end)? - at(begin)?)
}

/// Replays one recorded step unchanged and returns its step time.
///
/// # Errors
/// If the graph cannot be simulated, which is a defect of its construction.
pub fn replay_step(graph: &StepGraph) -> Result<Nanos> {
    let timeline = replay_timeline(graph)?;
    marked_step(&timeline, 0, graph, 0).ok_or_else(|| no_marks(graph))
}

/// Replays one recorded step unchanged.
///
/// # Errors
/// As [`replay_step`].
pub fn replay_timeline(graph: &StepGraph) -> Result<Timeline> {
    let job = Job::uniform(graph.clone(), 1);
    run(&job, &SimOptions::iterations(1), &graph.meta.source)
}

pub(crate) fn run(job: &Job, options: &SimOptions, source: &str) -> Result<Timeline> {
    simulate(job, options).map_err(|error| not_simulated(&error, source))
}

/// Lays a job out for the engine.
pub(crate) fn compile(job: &Job, source: &str) -> Result<Program> {
    Program::compile(job).map_err(|error| not_simulated(&error, source))
}

pub(crate) fn not_simulated(error: &SimError, source: &str) -> InputError {
    InputError::new(format!("the step graph cannot be simulated: {error}")).in_file(source)
}

fn no_marks(graph: &StepGraph) -> InputError {
    InputError::new("the step graph has no begin and end marks").in_file(&graph.meta.source)
}
