//! Which chain of tasks decided when an iteration ended.

use foretrain_core::Nanos;
use foretrain_graph::{Job, NodeId};

use crate::error::SimError;
use crate::program::{NONE, Program};
use crate::timeline::Timeline;

/// Why a task started when it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartReason {
    /// The run began, or nothing that the graph knows of held it back.
    Free,
    /// An edge from the task before it on the path; the gap is the edge's lag.
    Edge,
    /// Its queue was occupied by the task before it on the path.
    Queue,
    /// It is a collective that waited for the task before it on the path: the last member.
    LastMember,
}

/// One task of a critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CriticalTask {
    /// Index of the rank class.
    pub class: usize,
    /// The iteration.
    pub iteration: usize,
    /// The node.
    pub node: NodeId,
    /// Why it did not start earlier.
    pub reason: StartReason,
    /// From the end of the task before it to its start (of the meeting, for a collective); of the
    /// first task, from the start of the run. Negative where it overlaps the tail of its source.
    pub gap: Nanos,
}

impl Timeline {
    /// The chain of tasks that decided when the class ended an iteration, first to last. Empty if
    /// there is no such class or iteration. `job` is the one that was run.
    ///
    /// # Errors
    /// As [`Program::compile`].
    pub fn critical_path(
        &self,
        job: &Job,
        class: usize,
        iteration: usize,
    ) -> Result<Vec<CriticalTask>, SimError> {
        Ok(Program::compile(job)?.critical_path(self, class, iteration))
    }
}

impl Program {
    /// The chain of tasks that decided when the class ended an iteration, first to last. Empty if
    /// there is no such class or iteration, or if the timeline is of another job.
    pub fn critical_path(
        &self,
        timeline: &Timeline,
        class: usize,
        iteration: usize,
    ) -> Vec<CriticalTask> {
        let same = timeline.classes.len() == self.class_count()
            && timeline.classes.iter().enumerate().all(|(i, c)| c.nodes == self.class_nodes(i));
        if !same || iteration >= timeline.iterations || self.class_nodes(class) == 0 {
            return Vec::new();
        }
        let walk = Walk::new(self, timeline);
        let nodes = (0..self.class_nodes(class)).map(NodeId::from_index);
        let tasks = nodes.map(|node| (iteration * walk.nodes) + self.slot_of(class, node) as usize);
        let last = tasks.max_by_key(|&task| (walk.end(task), std::cmp::Reverse(task)));
        last.map_or_else(Vec::new, |last| walk.back(last))
    }
}

struct Walk<'a> {
    program: &'a Program,
    timeline: &'a Timeline,
    nodes: usize,
    /// Sources of each slot: slot, distance and lag.
    incoming: Vec<Vec<(u32, u16, i64)>>,
    /// Tasks of each queue in order of their ends.
    by_queue: Vec<Vec<(i64, u32)>>,
}

impl<'a> Walk<'a> {
    fn new(program: &'a Program, timeline: &'a Timeline) -> Self {
        let nodes = program.node_count();
        let mut incoming = vec![Vec::new(); nodes];
        for slot in 0..nodes {
            for edge in program.out_of(slot) {
                incoming[edge.dst as usize].push((slot as u32, edge.distance, edge.lag));
            }
        }
        let by_queue = vec![Vec::new(); program.queues.len()];
        let mut walk = Self { program, timeline, nodes, incoming, by_queue };
        for task in 0..nodes * timeline.iterations {
            let entry = (walk.end(task), task as u32);
            walk.by_queue[program.queue[task % nodes] as usize].push(entry);
        }
        walk.by_queue.iter_mut().for_each(|queue| queue.sort_unstable());
        walk
    }

    fn cell(&self, task: usize, pick: impl Fn(&crate::ClassTimeline) -> &Vec<Nanos>) -> i64 {
        let (class, node) = self.program.node_of(task % self.nodes);
        let class = &self.timeline.classes[class];
        pick(class)[class.row(task / self.nodes, node)].nanos()
    }
    fn start(&self, task: usize) -> i64 {
        self.cell(task, |class| &class.start)
    }
    fn end(&self, task: usize) -> i64 {
        self.cell(task, |class| &class.end)
    }
    fn wait(&self, task: usize) -> i64 {
        self.cell(task, |class| &class.wait)
    }

    fn back(&self, last: usize) -> Vec<CriticalTask> {
        let mut seen = vec![false; self.nodes * self.timeline.iterations];
        let mut path = Vec::new();
        let mut at = Some(last);
        while let Some(task) = at {
            seen[task] = true;
            let (before, reason, gap) = self.before(task, &seen);
            let (class, node) = self.program.node_of(task % self.nodes);
            let (iteration, gap) = (task / self.nodes, Nanos::from_nanos(gap));
            path.push(CriticalTask { class, iteration, node, reason, gap });
            at = before;
        }
        path.reverse();
        path
    }

    /// The task that held this one back: the last member of its collective, else the source of the
    /// latest edge, else the task before it on its queue, whichever is latest.
    fn before(&self, task: usize, seen: &[bool]) -> (Option<usize>, StartReason, i64) {
        if let Some(partner) = self.last_member(task).filter(|&partner| !seen[partner]) {
            return (Some(partner), StartReason::LastMember, 0);
        }
        let start = self.start(task);
        let edge = self.latest_source(task, seen);
        let queue = self.queue_before(task, start, seen);
        match (edge, queue) {
            (Some((at, source)), queue) if queue.is_none_or(|(end, _)| at >= end) && at > 0 => {
                (Some(source), StartReason::Edge, start - self.end(source))
            }
            (_, Some((end, other))) if end > 0 => {
                (Some(other), StartReason::Queue, start - self.end(other))
            }
            _ => (None, StartReason::Free, start),
        }
    }

    fn last_member(&self, task: usize) -> Option<usize> {
        let slot = task % self.nodes;
        let meeting = self.program.meetings.of[slot];
        if meeting == NONE || self.wait(task) == 0 {
            return None;
        }
        let members = self.program.meetings.members(meeting as usize).iter();
        let latest = members.map(|&m| task - slot + m as usize).max_by_key(|&m| self.start(m))?;
        (self.start(latest) > self.start(task)).then_some(latest)
    }

    /// When the latest of the edges that reach a task let it go, and from where.
    fn latest_source(&self, task: usize, seen: &[bool]) -> Option<(i64, usize)> {
        let (iteration, slot) = (task / self.nodes, task % self.nodes);
        let sources = self.incoming[slot].iter().filter_map(|&(src, distance, lag)| {
            let source = iteration.checked_sub(distance as usize)? * self.nodes + src as usize;
            let from = self.start(source).saturating_add(self.wait(source));
            Some((self.end(source).saturating_add(lag).max(from), source))
        });
        sources.filter(|&(_, source)| !seen[source]).max()
    }

    fn queue_before(&self, task: usize, start: i64, seen: &[bool]) -> Option<(i64, usize)> {
        let queue = &self.by_queue[self.program.queue[task % self.nodes] as usize];
        let until = queue.partition_point(|&(end, _)| end <= start);
        let earlier = queue[..until].iter().rev().map(|&(end, other)| (end, other as usize));
        earlier.take_while(|(end, _)| *end == start).find(|&(_, other)| !seen[other])
    }
}
