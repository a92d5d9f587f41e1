//! Simulating a graph until its step time has settled, and the path that decides it.

use std::sync::Arc;

use foretrain_core::{Nanos, Result};
use foretrain_graph::{Job, RankClass};
use foretrain_rewrite::strategy::Applied;
use foretrain_sim::{
    Discipline, Interference, Program, QueueDiscipline, SimOptions, SteadyStep, Timeline, Workspace,
};
use rustc_hash::FxHashMap;

use super::contention::share_hosts;
use super::cost::Costs;
use super::links::share_links;
use crate::answer::CriticalPart;
use crate::replay::{compile, not_simulated};

/// Iterations that usually let the launch queue and the streams settle.
const ITERATIONS: u32 = 8;
/// Iterations after which the run may end if they repeat: the first has none to follow.
const LEAST_ITERATIONS: u32 = 3;
/// Tried when those did not suffice.
const MORE_ITERATIONS: u32 = 32;
/// Settled: successive steps differ by less than this fraction.
const TOLERANCE: f64 = 0.005;

/// What things on one device do to each other; `None` where times are as recorded.
pub(crate) type Sharing = Option<Arc<dyn Interference>>;

/// The steady step time of a job, its communication sharing links as `costs` say.
pub(crate) fn settled(job: &Job, costs: &[Costs]) -> Result<(Nanos, bool)> {
    settled_timeline(job, costs, &[], None).map(|(_, step, converged)| (step, converged))
}

/// What strategies inserted in each class is in `inserted`, empty if nothing.
pub(crate) fn settled_timeline(
    job: &Job,
    costs: &[Costs],
    inserted: &[Applied],
    sharing: Sharing,
) -> Result<(Timeline, Nanos, bool)> {
    let source = &job.classes[0].graph.meta.source;
    let program = compile(job, source)?;
    let options = SimOptions { interference: sharing, ..engine_options(job, costs, inserted) };
    settle(&program, options, repeats(job), source, &mut Workspace::default())
}

/// What the engine is told of a job beyond its graphs.
pub(crate) fn engine_options(job: &Job, costs: &[Costs], inserted: &[Applied]) -> SimOptions {
    let overhang = inserted.iter().map(|applied| applied.overhang).max().unwrap_or(0);
    let least = LEAST_ITERATIONS.saturating_add(overhang);
    let mut options = SimOptions { until_repeats: Some(least), ..SimOptions::default() };
    for (class, applied) in inserted.iter().enumerate() {
        let queue = |&queue| QueueDiscipline { class, queue, discipline: Discipline::Priority };
        options.queue_disciplines.extend(applied.priority_queues.iter().map(queue));
    }
    share_links(&mut options, job, costs);
    share_hosts(&mut options, job, costs);
    options
}

/// Whether anything says how one step follows another.
pub(crate) fn repeats(job: &Job) -> bool {
    let repeats = |class: &RankClass| class.graph.edges().iter().any(|edge| edge.distance > 0);
    job.classes.iter().any(repeats)
}

/// Runs a job until its step time has settled: the timeline, the step, and whether it has.
pub(crate) fn settle(
    program: &Program,
    options: SimOptions,
    repeats: bool,
    source: &str,
    workspace: &mut Workspace,
) -> Result<(Timeline, Nanos, bool)> {
    until_settled(options, repeats, |options| {
        let timeline = program.run_in(options, workspace).map_err(|e| not_simulated(&e, source))?;
        let steady = timeline.steady_step_time();
        Ok((timeline, steady))
    })
}

/// The step of [`settle`] alone, which is cheaper.
pub(crate) fn settled_step(
    program: &Program,
    options: SimOptions,
    repeats: bool,
    source: &str,
    workspace: &mut Workspace,
) -> Result<Nanos> {
    let run = |options: &SimOptions| {
        Ok(((), program.steady_step_in(options, workspace).map_err(|e| not_simulated(&e, source))?))
    };
    until_settled(options, repeats, run).map(|((), step, _)| step)
}

fn until_settled<T>(
    mut options: SimOptions,
    repeats: bool,
    mut run: impl FnMut(&SimOptions) -> Result<(T, SteadyStep)>,
) -> Result<(T, Nanos, bool)> {
    // Of one pass nobody knows how the next follows it.
    options.iterations = if repeats { ITERATIONS } else { 1 };
    let (found, steady) = run(&options)?;
    if !repeats || steady.converged(TOLERANCE) {
        return Ok((found, steady.step, true));
    }
    options.iterations = MORE_ITERATIONS;
    let (found, steady) = run(&options)?;
    Ok((found, steady.step, steady.converged(TOLERANCE)))
}

/// The nodes on the critical path of an iteration, merged by name.
pub(crate) fn critical_path(timeline: &Timeline, job: &Job, iteration: usize) -> Vec<CriticalPart> {
    let Ok(path) = timeline.critical_path(job, 0, iteration) else { return Vec::new() };
    let mut parts: Vec<CriticalPart> = Vec::new();
    let mut slots: FxHashMap<(String, &str), usize> = FxHashMap::default();
    for step in &path {
        if step.iteration != iteration {
            continue;
        }
        let graph = &job.classes[step.class].graph;
        let class = &timeline.classes[step.class];
        let row = class.row(step.iteration, step.node);
        let time = class.end[row] - class.start[row] - class.wait[row];
        let name: String = graph.name(step.node).chars().take(80).collect();
        let kind = graph.kind(step.node).as_str();
        let slot = *slots.entry((name.clone(), kind)).or_insert_with(|| {
            let part = CriticalPart { name, kind: kind.into(), time: Nanos::ZERO, count: 0 };
            parts.push(part);
            parts.len() - 1
        });
        parts[slot].time += time;
        parts[slot].count += 1;
    }
    parts.sort_by(|a, b| b.time.cmp(&a.time).then_with(|| a.name.cmp(&b.name)));
    parts
}
