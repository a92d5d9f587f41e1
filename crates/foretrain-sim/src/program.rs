//! A job laid out for simulation: flat arrays, reused from run to run.

use std::sync::Arc;

use foretrain_core::{NameId, Names, Nanos};
use foretrain_graph::attributes::well_known;
use foretrain_graph::{Job, NodeId, NodeKind, QueueId, QueueKind, RankClass};

use crate::error::SimError;
use crate::meeting::{self, Meetings};
use crate::ordered::Order;

/// Marks "none" in index columns.
pub(crate) const NONE: u32 = u32::MAX;

/// The most tasks (nodes of all classes times iterations) of one run. Each takes about 50 bytes.
pub const MAX_TASKS: u64 = 1 << 28;

/// An edge as its source sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutEdge {
    pub(crate) lag: i64,
    pub(crate) dst: u32,
    pub(crate) distance: u16,
}

/// A queue of some class.
#[derive(Clone, Debug)]
pub(crate) struct QueueInfo {
    pub(crate) class: u32,
    pub(crate) id: QueueId,
    pub(crate) kind: QueueKind,
    pub(crate) device: u32,
}

/// A job laid out for simulation.
///
/// The nodes of all classes are numbered through in order of descending priority, then class,
/// then id ("slots"): the slot is the last tie-breaker, so node ids matter only among nodes of
/// equal priority.
#[derive(Clone, Debug)]
pub struct Program {
    /// First row of each class in [`Program::slot`], and one past the last.
    pub(crate) first: Vec<u32>,
    /// Row (class by class, node by node) to slot.
    pub(crate) slot: Vec<u32>,
    /// Slot to row.
    pub(crate) row: Vec<u32>,
    /// Class of each slot.
    pub(crate) class: Vec<u32>,
    pub(crate) work: Vec<i64>,
    pub(crate) queue: Vec<u32>,
    pub(crate) priority: Vec<i32>,
    pub(crate) kind: Vec<NodeKind>,
    pub(crate) spread: Vec<f64>,
    pub(crate) name: Vec<NameId>,
    /// Edges that reach each slot, by distance where not 0.
    pub(crate) in_degree: Vec<u32>,
    /// `(distance, target slot)` of edges with a distance, ascending.
    pub(crate) distant: Vec<(u16, u32)>,
    pub(crate) out_first: Vec<u32>,
    /// Sorted by lag within a source.
    pub(crate) out: Vec<OutEdge>,
    pub(crate) queues: Vec<QueueInfo>,
    /// First queue of each class.
    pub(crate) first_queue: Vec<u32>,
    pub(crate) multiplicity: Vec<u64>,
    pub(crate) meetings: Meetings,
    /// Shared by clones: work may change, the order does not.
    pub(crate) order: Option<Arc<Order>>,
    names: Arc<[Names]>,
}

impl Program {
    /// Lays a job out.
    ///
    /// # Errors
    /// If a row refers to one that is not there, a duration is negative, or the members of a
    /// group do not issue the same collectives.
    pub fn compile(job: &Job) -> Result<Self, SimError> {
        let nodes: usize = job.classes.iter().map(|class| class.graph.node_count()).sum();
        if nodes as u64 > MAX_TASKS {
            return Err(too_large(nodes as u64, 1));
        }
        for (index, class) in job.classes.iter().enumerate() {
            check_rows(index, class)?;
        }
        let mut first = vec![0];
        let mut first_queue = vec![0];
        let mut queues = Vec::new();
        for (index, class) in job.classes.iter().enumerate() {
            first.push(first[index] + class.graph.node_count() as u32);
            queues.extend(class.graph.queues.iter().enumerate().map(|(id, queue)| QueueInfo {
                class: index as u32,
                id: QueueId::from_index(id),
                kind: queue.kind,
                device: queue.device.unwrap_or(0),
            }));
            first_queue.push(queues.len() as u32);
        }
        let mut program = Self {
            slot: Vec::new(),
            row: Vec::with_capacity(nodes),
            class: Vec::with_capacity(nodes),
            work: Vec::with_capacity(nodes),
            queue: Vec::with_capacity(nodes),
            priority: Vec::with_capacity(nodes),
            kind: Vec::with_capacity(nodes),
            spread: Vec::new(),
            name: Vec::with_capacity(nodes),
            in_degree: vec![0; nodes],
            distant: Vec::new(),
            out_first: vec![0; nodes + 1],
            out: Vec::new(),
            queues,
            multiplicity: job.classes.iter().map(|class| class.multiplicity.max(1)).collect(),
            names: job.classes.iter().map(|class| class.graph.names.clone()).collect(),
            meetings: Meetings::default(),
            order: None,
            first,
            first_queue,
        };
        program.number(job);
        program.fill_nodes(job);
        program.fill_edges(job);
        program.meetings = meeting::compile(job, &program)?;
        program.order = Order::of(&program).map(Arc::new);
        Ok(program)
    }

    fn number(&mut self, job: &Job) {
        let priorities: Vec<i32> = job
            .classes
            .iter()
            .flat_map(|class| class.graph.node_ids().map(|id| class.graph.node(id).priority))
            .collect();
        self.row.extend(0..priorities.len() as u32);
        self.row.sort_by_key(|&row| std::cmp::Reverse(priorities[row as usize]));
        self.slot = vec![0; priorities.len()];
        for (slot, &row) in self.row.iter().enumerate() {
            self.slot[row as usize] = slot as u32;
        }
    }

    fn fill_nodes(&mut self, job: &Job) {
        let mut spreads = false;
        for slot in 0..self.row.len() {
            let row = self.row[slot];
            let class = self.first.partition_point(|&first| first <= row) - 1;
            let graph = &job.classes[class].graph;
            let index = (row - self.first[class]) as usize;
            let node = graph.node(NodeId::from_index(index));
            self.class.push(class as u32);
            self.work.push(node.work.nanos());
            self.queue.push(self.first_queue[class] + node.queue.get());
            self.priority.push(node.priority);
            self.kind.push(node.kind);
            self.name.push(node.name);
            let spread = graph.node_attributes.get_f64(well_known::WORK_SPREAD, index);
            let spread = spread.filter(|s| s.is_finite() && *s >= 0.0);
            spreads |= spread.is_some();
            self.spread.push(spread.unwrap_or(f64::NAN));
        }
        if !spreads {
            self.spread = Vec::new();
        }
    }

    fn fill_edges(&mut self, job: &Job) {
        for (class, rank_class) in job.classes.iter().enumerate() {
            for edge in rank_class.graph.edges() {
                let src = self.slot_of(class, edge.src);
                self.out_first[src as usize + 1] += 1;
            }
        }
        for slot in 0..self.row.len() {
            self.out_first[slot + 1] += self.out_first[slot];
        }
        let empty = OutEdge { lag: 0, dst: 0, distance: 0 };
        self.out = vec![empty; self.out_first[self.row.len()] as usize];
        let mut cursor = self.out_first.clone();
        for (class, rank_class) in job.classes.iter().enumerate() {
            for edge in rank_class.graph.edges() {
                let src = self.slot_of(class, edge.src) as usize;
                let dst = self.slot_of(class, edge.dst);
                let lag = edge.lag.nanos();
                self.out[cursor[src] as usize] = OutEdge { lag, dst, distance: edge.distance };
                cursor[src] += 1;
                self.in_degree[dst as usize] += 1;
                if edge.distance > 0 {
                    self.distant.push((edge.distance, dst));
                }
            }
        }
        self.distant.sort_unstable();
        for slot in 0..self.row.len() {
            let (from, to) = (self.out_first[slot] as usize, self.out_first[slot + 1] as usize);
            self.out[from..to].sort_by_key(|edge| (edge.lag, edge.distance, edge.dst));
        }
    }

    /// How many rank classes there are.
    pub fn class_count(&self) -> usize {
        self.multiplicity.len()
    }

    /// Nodes of all classes.
    pub fn node_count(&self) -> usize {
        self.row.len()
    }

    /// Nodes of one class, 0 if there is no such class.
    pub fn class_nodes(&self, class: usize) -> usize {
        match (self.first.get(class), self.first.get(class + 1)) {
            (Some(from), Some(to)) => (to - from) as usize,
            _ => 0,
        }
    }

    /// Changes the work of a node for later runs; negative work counts as zero. False if there is
    /// no such class or node.
    pub fn set_work(&mut self, class: usize, node: NodeId, work: Nanos) -> bool {
        let there = node.index() < self.class_nodes(class);
        if there {
            let slot = self.slot_of(class, node) as usize;
            self.work[slot] = work.nanos().max(0);
        }
        there
    }

    /// The work of a node as set last; `None` if there is no such class or node.
    pub fn work(&self, class: usize, node: NodeId) -> Option<Nanos> {
        let there = node.index() < self.class_nodes(class);
        there.then(|| Nanos::from_nanos(self.work[self.slot_of(class, node) as usize]))
    }

    /// The other members of the meeting that a communication node takes part in; none for any
    /// other node.
    pub fn partners(&self, class: usize, node: NodeId) -> Vec<(usize, NodeId)> {
        if class >= self.class_count() || node.index() >= self.class_nodes(class) {
            return Vec::new();
        }
        let own = self.slot_of(class, node);
        match self.meetings.of[own as usize] {
            NONE => Vec::new(),
            meeting => {
                let members = self.meetings.members(meeting as usize).iter();
                members.filter(|&&m| m != own).map(|&m| self.node_of(m as usize)).collect()
            }
        }
    }

    pub(crate) fn slot_of(&self, class: usize, node: NodeId) -> u32 {
        self.slot[(self.first[class] + node.get()) as usize]
    }

    pub(crate) fn node_of(&self, slot: usize) -> (usize, NodeId) {
        let class = self.class[slot] as usize;
        (class, NodeId::new(self.row[slot] - self.first[class]))
    }

    pub(crate) fn name_of(&self, slot: usize) -> &str {
        self.names[self.class[slot] as usize].get(self.name[slot])
    }

    pub(crate) fn out_of(&self, slot: usize) -> &[OutEdge] {
        &self.out[self.out_first[slot] as usize..self.out_first[slot + 1] as usize]
    }

    /// For each task, how many edges must be satisfied before it is ready.
    pub(crate) fn pending(&self, iterations: usize) -> Vec<u32> {
        let mut pending = Vec::with_capacity(self.node_count() * iterations);
        for iteration in 0..iterations {
            self.add_pending(iteration, &mut pending);
        }
        pending
    }

    /// Adds the tasks of an iteration to those before it.
    pub(crate) fn add_pending(&self, iteration: usize, pending: &mut Vec<u32>) {
        let base = pending.len();
        pending.extend_from_slice(&self.in_degree);
        let from = self.distant.partition_point(|&(distance, _)| distance as usize <= iteration);
        for &(_, slot) in &self.distant[from..] {
            pending[base + slot as usize] -= 1;
        }
    }

    /// The number of tasks of a run, if it is within the limit.
    pub(crate) fn tasks(&self, iterations: u32) -> Result<usize, SimError> {
        let tasks = self.node_count() as u64 * u64::from(iterations);
        if tasks > MAX_TASKS || u64::from(iterations) > MAX_TASKS {
            return Err(too_large(self.node_count() as u64, iterations));
        }
        Ok(tasks as usize)
    }
}

fn too_large(nodes: u64, iterations: u32) -> SimError {
    SimError::TooLarge { nodes, iterations, limit: MAX_TASKS }
}

fn check_rows(index: usize, class: &RankClass) -> Result<(), SimError> {
    let graph = &class.graph;
    let dangling =
        |what: String, target: String| Err(SimError::Dangling { what, class: index, target });
    for id in graph.node_ids() {
        let node = graph.node(id);
        if node.queue.index() >= graph.queues.len() {
            let queue = format!("queue {}", node.queue.get());
            return dangling(format!("node \"{}\"", graph.name(id)), queue);
        }
        if let Some(group) = node.group.filter(|group| group.index() >= graph.groups.len()) {
            let group = format!("group {}", group.get());
            return dangling(format!("node \"{}\"", graph.name(id)), group);
        }
        if node.work < Nanos::ZERO {
            let (node, work_ns) = (graph.name(id).to_owned(), node.work.nanos());
            return Err(SimError::NegativeWork { node, class: index, work_ns });
        }
    }
    for (row, edge) in graph.edges().iter().enumerate() {
        for end in [edge.src, edge.dst] {
            if end.index() >= graph.node_count() {
                return dangling(format!("edge {row}"), format!("node {}", end.get()));
            }
        }
    }
    Ok(())
}
