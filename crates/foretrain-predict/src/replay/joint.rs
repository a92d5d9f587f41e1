//! Replaying all ranks of a run together.

use foretrain_core::{InputError, Ledger, Nanos, Result};
use foretrain_graph::attributes::well_known;
use foretrain_graph::{CollectiveKind, Edge, Group, Job, Node, NodeId, QueueKind, StepGraph};
use foretrain_sim::{InitialBusy, SimOptions, Timeline};
use foretrain_trace::align::{
    ClockAlignment, MatchedOp, OpWait, RankOps, align_clocks, match_ops, synchronises, waits,
};
use foretrain_trace::build::TRACE_ROW;
use rustc_hash::FxHashMap;

use super::{marked_step, no_marks, run, step_marks};
use crate::recording::Recording;

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
    /// Matched operations in the step.
    pub matched: usize,
    /// The job that was replayed, its classes in the order of `ranks`.
    pub job: Job,
    /// Its timeline.
    pub timeline: Timeline,
}

/// Replays step number `step` of every rank together; how long ranks wait for each other comes
/// out of the simulation. The transfer time of a collective is the shortest duration over its
/// members. Where a host backend lets members go one by one (all but all-reduces and barriers),
/// each takes what it took in the recording after the last one had come.
///
/// # Errors
/// If the clocks cannot be aligned (no shared collectives) or a rank lacks the step.
pub fn replay_ranks(
    recordings: &[Recording],
    step: usize,
    ledger: &mut Ledger,
) -> Result<JointReplay> {
    let ops: Vec<RankOps> = recordings.iter().map(rank_ops).collect();
    let matched = match_ops(&ops, ledger);
    let clocks = align_clocks(&ops, &matched)?;
    let mut meetings = Meetings::new(recordings, step)?;
    let mut count = 0;
    for wait in waits(&ops, &matched, &clocks).ops {
        let op = &matched.ops[wait.op as usize];
        if let Some(nodes) = meetings.nodes(&ops, op) {
            meetings.meet(&nodes, &wait);
            count += 1;
        }
    }
    let job = Job::from_ranks(meetings.finish());
    let initial_busy = begins(recordings, step, &clocks, &job);
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

/// A rank's operations, a host backend's ending where those who waited for them went on: its
/// records may be closed later.
fn rank_ops(recording: &Recording) -> RankOps {
    let mut ends: FxHashMap<u32, Nanos> = FxHashMap::default();
    for (graph, step) in recording.graphs.iter().zip(&recording.steps.steps) {
        for (row, node) in rows(graph) {
            let recorded = |name| graph.node_attributes.get_i64(name, node.index()).unwrap_or(0);
            let end = recorded(well_known::RECORDED_START)
                + recorded(well_known::RECORDED_DURATION)
                + step.start.nanos();
            let on_host = graph.queues[graph.queue(node).index()].kind == QueueKind::Thread;
            // What runs on beyond the step is cut off there.
            if on_host
                && end < step.end.nanos()
                && let Ok(row) = u32::try_from(row)
            {
                ends.insert(row, Nanos::from_nanos(end));
            }
        }
    }
    let mut ops = recording.rank_ops();
    for op in &mut ops.ops {
        let waited = ends.get(&op.row).copied();
        op.end = waited.map_or(op.end, |end| end.clamp(op.start, op.end.max(op.start)));
    }
    ops
}

/// When each rank began the step, as the time until which its main thread is busy.
fn begins(
    recordings: &[Recording],
    step: usize,
    clocks: &ClockAlignment,
    job: &Job,
) -> Vec<InitialBusy> {
    let starts: Vec<Nanos> = recordings
        .iter()
        .enumerate()
        .map(|(i, r)| clocks.to_reference(i, r.steps.steps[step].start))
        .collect();
    let first = starts.iter().copied().min().unwrap_or(Nanos::ZERO);
    starts
        .into_iter()
        .zip(&job.classes)
        .enumerate()
        .filter_map(|(class, (start, ranks))| {
            let (begin, _) = step_marks(&ranks.graph)?;
            Some(InitialBusy { class, queue: ranks.graph.queue(begin), until: start - first })
        })
        .collect()
}

/// A member of an operation: position of its rank, and its node there.
type Member = (usize, NodeId);

/// The ranks' graphs, in which operations are made to meet.
struct Meetings {
    graphs: Vec<StepGraph>,
    /// Node of each trace row, per rank.
    rows: Vec<FxHashMap<i64, NodeId>>,
    /// How much later than the first to be done each member of an operation is done, per rank.
    late: Vec<FxHashMap<NodeId, Nanos>>,
    met: usize,
}

impl Meetings {
    fn new(recordings: &[Recording], step: usize) -> Result<Self> {
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
        let rows = graphs.iter().map(|graph| rows(graph).collect()).collect();
        let late = vec![FxHashMap::default(); graphs.len()];
        Ok(Self { graphs, rows, late, met: 0 })
    }

    /// The members of an operation, if it belongs to the step.
    fn nodes(&self, ops: &[RankOps], op: &MatchedOp) -> Option<Vec<Member>> {
        op.members
            .iter()
            .map(|member| {
                let rank = member.rank as usize;
                let row = i64::from(ops[rank].ops[member.op as usize].row);
                self.rows[rank].get(&row).map(|&id| (rank, id))
            })
            .collect()
    }

    /// Makes the nodes of one operation wait for each other.
    fn meet(&mut self, nodes: &[Member], wait: &OpWait) {
        let group = Group {
            name: format!("operation {}", self.met),
            role: String::new(),
            size: nodes.len() as u32,
            ranks: Vec::new(),
        };
        self.met += 1;
        let apart = |&(rank, id): &Member| {
            let graph = &self.graphs[rank];
            let on_host = graph.queues[graph.queue(id).index()].kind == QueueKind::Thread;
            on_host && graph.node(id).collective.is_some_and(|kind| !leave_together(kind))
        };
        if nodes.iter().all(apart) {
            self.meet_and_part(nodes, &group, wait);
        } else {
            for &node in nodes {
                self.join(node, &group, wait.transfer);
            }
        }
    }

    /// A host backend lets each member go when its own part is done. Who came last may be through
    /// first, for the others' data is there already; a sender, or the root of a broadcast, is done
    /// when its data is in some buffer, even before anybody asks for it.
    fn meet_and_part(&mut self, nodes: &[Member], group: &Group, wait: &OpWait) {
        let takes = |rank: usize| {
            let member = wait.members.iter().find(|member| member.rank as usize == rank);
            member.map_or(wait.transfer, |member| member.end - wait.last_arrival)
        };
        let stays = |&(rank, id): &Member| {
            takes(rank) > Nanos::ZERO
                || self.graphs[rank].node(id).collective.is_none_or(synchronises)
        };
        let (stay, leave): (Vec<Member>, Vec<Member>) = nodes.iter().copied().partition(stays);
        let least = stay.iter().map(|&(rank, _)| takes(rank)).min();
        let together = least.unwrap_or(wait.transfer).clamp_positive();
        for node in stay {
            self.join(node, group, together);
            self.late[node.0].insert(node.1, (takes(node.0) - together).clamp_positive());
        }
        for node in leave {
            let message = self.post(node);
            self.join(message, group, together);
        }
    }

    fn join(&mut self, (rank, id): Member, group: &Group, work: Nanos) {
        let graph = &mut self.graphs[rank];
        let group = graph.add_group(group.clone());
        let node = Node { group: Some(group), sequence: 0, work, ..graph.node(id) };
        graph.set_node(id, node);
    }

    /// The data of a member that does not wait for the others: on its way from where it begins.
    fn post(&mut self, (rank, member): Member) -> Member {
        let graph = &mut self.graphs[rank];
        let queue = graph.add_queue(format!("message {}", self.met), QueueKind::Other);
        let message = graph.add_node(Node { queue, ..graph.node(member) });
        let begins: Vec<Edge> =
            graph.edges().iter().filter(|edge| edge.dst == member).copied().collect();
        for edge in begins {
            graph.add_edge(Edge { dst: message, ..edge });
        }
        (rank, message)
    }

    /// The graphs, with what follows on members that are done later put off.
    fn finish(mut self) -> Vec<StepGraph> {
        for (graph, late) in self.graphs.iter_mut().zip(&self.late) {
            for edge in graph.edges_mut() {
                edge.lag += late.get(&edge.src).copied().unwrap_or_default();
            }
        }
        self.graphs
    }
}

/// Whether what any member gets depends on what every member brings.
fn leave_together(kind: CollectiveKind) -> bool {
    matches!(kind, CollectiveKind::AllReduce | CollectiveKind::Barrier)
}

/// Trace rows of a graph's own nodes.
fn rows(graph: &StepGraph) -> impl Iterator<Item = (i64, NodeId)> + '_ {
    let attributes = &graph.node_attributes;
    graph
        .node_ids()
        .filter(|&id| !graph.is_carried_in(id))
        .filter_map(|id| Some((attributes.get_i64(TRACE_ROW, id.index())?, id)))
}
