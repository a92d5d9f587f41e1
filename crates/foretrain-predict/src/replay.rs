//! Replaying recorded steps: the test of how faithful the graphs are.

use foretrain_core::{InputError, Ledger, Nanos, Result};
use foretrain_graph::attributes::well_known;
use foretrain_graph::{Group, Job, NodeId, NodeKind, StepGraph};
use foretrain_sim::{InitialBusy, SimOptions, Timeline, simulate};
use foretrain_trace::align::{RankOps, align_clocks, match_ops, waits};
use foretrain_trace::build::{STEP_BEGIN, STEP_END, TRACE_ROW};
use rustc_hash::FxHashMap;

use crate::recording::Recording;

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

/// Predicts a step from the other steps of the recording: the steady graph learned without it is
/// run from the recording's first step up to it, from an idle device or from mid-run as the
/// recording itself began.
///
/// # Errors
/// If there is no other step, or the graph cannot be simulated.
pub fn predict_held_out_step(recording: &Recording, step: usize) -> Result<Nanos> {
    let graph = (recording.graphs.len() >= 2)
        .then(|| recording.steady_without(step))
        .flatten()
        .ok_or_else(|| InputError::new("no other step to learn from"))?;
    // A recording that begins with device work still queued began in the middle of a run.
    let busy = initial_busy(&recording.graphs[0], &graph);
    let warm_up = if busy.is_empty() { 0 } else { WARM_UP };
    let options = SimOptions::iterations((warm_up + step + 1) as u32);
    let timeline = run(&Job::uniform(graph.clone(), 1), &options, &graph.meta.source)?;
    marked_step(&timeline, 0, &graph, warm_up + step).ok_or_else(|| no_marks(&graph))
}

/// Replays one recorded step unchanged.
///
/// # Errors
/// As [`replay_step`].
pub fn replay_timeline(graph: &StepGraph) -> Result<Timeline> {
    let job = Job::uniform(graph.clone(), 1);
    run(&job, &SimOptions::iterations(1), &graph.meta.source)
}

/// Steps simulated before the first recorded one, where the recording begins in mid-run.
const WARM_UP: usize = 3;

/// How long each stream is still busy with earlier work when the first step begins.
fn initial_busy(first: &StepGraph, graph: &StepGraph) -> Vec<InitialBusy> {
    let mut busy: FxHashMap<&str, i64> = FxHashMap::default();
    for id in first.node_ids() {
        let get = |name| first.node_attributes.get_i64(name, id.index()).unwrap_or(0);
        if first.node_attributes.get_bool(well_known::CARRY_IN, id.index()) == Some(true) {
            let end = get(well_known::RECORDED_START) + get(well_known::RECORDED_DURATION);
            let until = busy.entry(&first.queues[first.queue(id).index()].name).or_default();
            *until = (*until).max(end);
        }
    }
    graph
        .queues
        .iter()
        .enumerate()
        .filter_map(|(queue, q)| {
            let until = *busy.get(q.name.as_str())?;
            Some(InitialBusy {
                class: 0,
                queue: foretrain_graph::QueueId::from_index(queue),
                until: Nanos::from_nanos(until),
            })
        })
        .collect()
}

/// One rank's step in a joint replay.
#[derive(Clone, Debug)]
pub struct RankStep {
    /// Global rank.
    pub rank: u32,
    /// Step name.
    pub step: String,
    /// Recorded step time.
    pub measured: Nanos,
    /// Replayed step time.
    pub replayed: Nanos,
}

/// A joint replay of all ranks, in which collectives wait for their last member.
#[derive(Clone, Debug)]
pub struct JointReplay {
    /// One entry per rank.
    pub ranks: Vec<RankStep>,
    /// Median spread of the ends of matched collectives after clock alignment.
    pub residual: Nanos,
    /// Matched collectives in the step.
    pub matched: usize,
    /// The job that was replayed, its classes in the order of `ranks`.
    pub job: Job,
    /// Its timeline.
    pub timeline: Timeline,
}

/// Replays step number `step` of every rank together: transfer times are the shortest durations
/// over the members, waiting comes out of the simulation.
///
/// # Errors
/// If the clocks cannot be aligned (no shared collectives) or a rank lacks the step.
pub fn replay_ranks(
    recordings: &[Recording],
    step: usize,
    ledger: &mut Ledger,
) -> Result<JointReplay> {
    let ops: Vec<RankOps> =
        recordings.iter().map(|r| RankOps::new(r.rank(), &r.trace, &r.collectives)).collect();
    let matched = match_ops(&ops, ledger);
    let clocks = align_clocks(&ops, &matched)?;
    let waits = waits(&ops, &matched, &clocks);
    let mut graphs: Vec<StepGraph> = Vec::new();
    for recording in recordings {
        let graph = recording.graphs.get(step).ok_or_else(|| {
            InputError::new(format!("rank {} has no step number {step}", recording.rank()))
                .in_file(&recording.trace.meta.path)
        })?;
        graphs.push(graph.clone());
    }
    for graph in &mut graphs {
        // Only matched operations meet; the others keep their recorded durations.
        let ids: Vec<NodeId> = graph.node_ids().collect();
        for id in ids {
            let mut node = graph.node(id);
            node.group = None;
            graph.set_node(id, node);
        }
        graph.groups.clear();
    }
    let rows: Vec<FxHashMap<i64, NodeId>> = graphs.iter().map(nodes_by_row).collect();
    let mut count = 0;
    for (number, wait) in waits.ops.iter().enumerate() {
        let op = &matched.ops[wait.op as usize];
        let nodes: Option<Vec<(usize, NodeId)>> = op
            .members
            .iter()
            .map(|member| {
                let position = member.rank as usize;
                let found = &recordings[position].collectives;
                let index = ops[position].ops[member.op as usize].op as usize;
                let row = i64::from(found.ops[index].row);
                rows[position].get(&row).map(|&id| (position, id))
            })
            .collect();
        let Some(nodes) = nodes else { continue };
        let name = format!("operation {number}");
        for (position, id) in nodes {
            let graph = &mut graphs[position];
            let group = graph.add_group(Group {
                name: name.clone(),
                role: String::new(),
                size: op.members.len() as u32,
                ranks: Vec::new(),
            });
            let mut node = graph.node(id);
            node.group = Some(group);
            node.sequence = 0;
            node.work = wait.transfer;
            graph.set_node(id, node);
        }
        count += 1;
    }
    let starts: Vec<Nanos> = recordings
        .iter()
        .enumerate()
        .map(|(i, r)| clocks.to_reference(i, r.steps.steps[step].start))
        .collect();
    let first = starts.iter().copied().min().unwrap_or(Nanos::ZERO);
    let initial_busy = starts
        .iter()
        .zip(&graphs)
        .enumerate()
        .filter_map(|(class, (&start, graph))| {
            let (begin, _) = step_marks(graph)?;
            Some(InitialBusy { class, queue: graph.queue(begin), until: start - first })
        })
        .collect();
    let job = Job::from_ranks(graphs);
    let options = SimOptions { initial_busy, ..SimOptions::iterations(1) };
    let timeline = run(&job, &options, "joint replay")?;
    let ranks = recordings
        .iter()
        .enumerate()
        .map(|(class, recording)| {
            let graph = &job.classes[class].graph;
            let replayed =
                marked_step(&timeline, class, graph, 0).ok_or_else(|| no_marks(graph))?;
            Ok(RankStep {
                rank: recording.rank(),
                step: recording.steps.steps[step].name.clone(),
                measured: recording.steps.steps[step].duration(),
                replayed,
            })
        })
        .collect::<Result<Vec<RankStep>>>()?;
    Ok(JointReplay { ranks, residual: clocks.residual.median, matched: count, job, timeline })
}

fn nodes_by_row(graph: &StepGraph) -> FxHashMap<i64, NodeId> {
    graph
        .node_ids()
        .filter(|&id| {
            graph.node_attributes.get_bool(well_known::CARRY_IN, id.index()) != Some(true)
        })
        .filter_map(|id| graph.node_attributes.get_i64(TRACE_ROW, id.index()).map(|row| (row, id)))
        .collect()
}

pub(crate) fn run(job: &Job, options: &SimOptions, source: &str) -> Result<Timeline> {
    simulate(job, options).map_err(|error| {
        InputError::new(format!("the step graph cannot be simulated: {error}")).in_file(source)
    })
}

fn no_marks(graph: &StepGraph) -> InputError {
    InputError::new("the step graph has no begin and end marks").in_file(&graph.meta.source)
}
