//! One stage's graph.

use std::collections::BTreeMap;
use std::rc::Rc;

use foretrain_core::{Bytes, NameId, Nanos, Result};
use foretrain_graph::{
    CollectiveKind, Edge, EdgeKind, Group, GroupId, Node, NodeId, NodeKind, Phase, QueueId,
    QueueKind, StepGraph,
};

use super::Detail;
use crate::lower::{Lowered, Slice, lower};
use crate::pipeline::{Kind, Orders, Place, Task};
use crate::step::{Bucket, Laid};

/// A stage's graph in the making.
pub(super) struct StageGraph<'a> {
    pub(super) laid: &'a Laid<'a>,
    pub(super) orders: &'a Orders,
    pub(super) stage: u32,
    pub(super) detail: Detail,
    pub(super) graph: StepGraph,
    /// What a rank runs of each of the differing layers.
    pub(super) lowered: Rc<Vec<Lowered>>,
    pub(super) compute: QueueId,
    pub(super) beside: QueueId,
    pub(super) exchange: QueueId,
    sends: [QueueId; 2],
    groups: BTreeMap<String, GroupId>,
    sequences: BTreeMap<(GroupId, CollectiveKind), u32>,
    /// The last node of each queue.
    last: BTreeMap<QueueId, NodeId>,
    /// What the next node of the compute stream waits for beside the one before it.
    waits: Vec<NodeId>,
    /// Where results of other stages arrive.
    arrivals: BTreeMap<(Kind, u32, u32), NodeId>,
    /// Ends of passes whose results this stage uses itself.
    results: BTreeMap<(Kind, u32, u32), NodeId>,
    /// Gathers of updated parameters by chunk and unit.
    pub(super) gathers: BTreeMap<(usize, usize), NodeId>,
}

impl<'a> StageGraph<'a> {
    pub(super) fn new(
        laid: &'a Laid<'a>,
        orders: &'a Orders,
        stage: u32,
        detail: Detail,
    ) -> Result<Self> {
        let slice = Slice::of(laid.layout, laid.job.training, laid.job.software);
        let lowered = laid.cut.layers.iter().map(|layer| lower(layer, &slice)).collect();
        let mut graph = StepGraph::new();
        let mut queue = |name: &str, kind| graph.add_queue(name, kind);
        let compute = queue("compute", QueueKind::Stream);
        let beside = queue("communication beside kernels", QueueKind::Stream);
        let exchange = queue("replicas", QueueKind::Stream);
        let sends =
            [queue("send activations", QueueKind::Link), queue("send gradients", QueueKind::Link)];
        graph.meta.rank = stage;
        graph.meta.world_size = u32::try_from(laid.layout.devices()).unwrap_or(u32::MAX);
        graph.meta.device.clone_from(&laid.job.machine.cluster().node.device.name);
        graph.meta.source = format!("{} as {}", laid.job.model.name, laid.layout);
        Ok(Self {
            laid,
            orders,
            stage,
            detail,
            graph,
            lowered: Rc::new(lowered),
            compute,
            beside,
            exchange,
            sends,
            groups: BTreeMap::new(),
            sequences: BTreeMap::new(),
            last: BTreeMap::new(),
            waits: Vec::new(),
            arrivals: BTreeMap::new(),
            results: BTreeMap::new(),
            gathers: BTreeMap::new(),
        })
    }

    pub(super) fn build(mut self) -> Result<StepGraph> {
        self.receives();
        self.gather_updated();
        let tasks = &self.orders.stages[self.stage as usize];
        let chunks = self.orders.chunks as usize;
        // A chunk's gradients are complete after the last pass that adds to them.
        let mut left = vec![0_u32; chunks];
        for task in tasks.iter().filter(|task| task.kind != Kind::Forward) {
            left[task.chunk as usize] += 1;
        }
        for &task in tasks {
            let last = task.kind != Kind::Forward && {
                left[task.chunk as usize] -= 1;
                left[task.chunk as usize] == 0
            };
            self.task(task, last)?;
        }
        self.finish();
        Ok(self.graph)
    }

    /// The model's chunk that one of this stage's chunks is.
    pub(super) fn chunk_of(&self, chunk: u32) -> usize {
        self.laid.chunk_at(self.orders, Place { stage: self.stage, chunk })
    }

    /// A node on a queue, after the one before it there.
    pub(super) fn push(&mut self, node: Node) -> NodeId {
        let queue = node.queue;
        let id = self.graph.add_node(node);
        if let Some(&before) = self.last.get(&queue) {
            self.graph.add_edge(Edge::new(before, id, EdgeKind::StreamOrder));
        }
        if queue == self.compute {
            for wait in std::mem::take(&mut self.waits) {
                self.graph.add_edge(Edge::new(wait, id, EdgeKind::EventWait));
            }
        }
        self.last.insert(queue, id);
        id
    }

    pub(super) fn wait_for(&mut self, node: NodeId) {
        self.waits.push(node);
    }

    pub(super) fn last_of(&self, queue: QueueId) -> Option<NodeId> {
        self.last.get(&queue).copied()
    }

    pub(super) fn after(&mut self, before: NodeId, node: NodeId, lag: Nanos) {
        self.graph.add_edge(Edge::new(before, node, EdgeKind::EventWait).with_lag(lag));
    }

    pub(super) fn name(&mut self, text: &str) -> NameId {
        self.graph.names.intern(text)
    }

    /// A collective of a group with this name and role.
    pub(super) fn collective(
        &mut self,
        queue: QueueId,
        (kind, bytes, time): (CollectiveKind, Bytes, Nanos),
        (group, role, size): (&str, &str, u32),
        phase: Phase,
    ) -> NodeId {
        let known = self.groups.get(group).copied();
        let group = known.unwrap_or_else(|| {
            let of = Group { name: group.into(), role: role.into(), size, ranks: Vec::new() };
            let id = self.graph.add_group(of);
            self.groups.insert(group.to_owned(), id);
            id
        });
        let sequence = self.sequences.entry((group, kind)).or_default();
        let name = self.graph.names.intern(kind.as_str());
        let point_to_point = kind == CollectiveKind::SendRecv && role == "pipeline-parallel";
        let node = Node {
            phase,
            group: Some(group),
            collective: Some(kind),
            sequence: *sequence,
            bytes: Some(bytes),
            ..Node::new(
                if point_to_point { NodeKind::PointToPoint } else { NodeKind::Collective },
                name,
                queue,
                time,
            )
        };
        *sequence += 1;
        self.push(node)
    }

    /// Nodes at which results of other stages arrive, in the order in which those send them.
    fn receives(&mut self) {
        let mut queues: BTreeMap<(u32, Kind), QueueId> = BTreeMap::new();
        for sender in 0..self.laid.layout.pipeline {
            if sender == self.stage {
                continue;
            }
            for &task in &self.orders.stages[sender as usize] {
                let from = Place { stage: sender, chunk: task.chunk };
                let Some(to) = self.destination(from, task.kind) else { continue };
                if to.stage != self.stage {
                    continue;
                }
                let queue = *queues.entry((sender, task.kind)).or_insert_with(|| {
                    let what = if task.kind == Kind::Forward { "activations" } else { "gradients" };
                    let name = format!("receive {what} of stage {sender}");
                    self.graph.add_queue(name, QueueKind::Link)
                });
                let node = self.transfer(queue, from, to, task);
                self.arrivals.insert((task.kind, to.chunk, task.micro_batch), node);
            }
        }
    }

    /// Where a task's result goes; `None` if nowhere.
    fn destination(&self, from: Place, kind: Kind) -> Option<Place> {
        match kind {
            Kind::Forward => self.orders.after(from),
            Kind::Backward => self.orders.before(from),
            Kind::Weights => None,
        }
    }

    fn transfer(&mut self, queue: QueueId, from: Place, to: Place, task: Task) -> NodeId {
        let (what, phase) = match task.kind {
            Kind::Forward => ("activations", Phase::Forward),
            _ => ("gradients", Phase::Backward),
        };
        let group = format!("{what} from stage {} to {}", from.stage, to.stage);
        let chunk = &self.laid.chunks[self.laid.chunk_at(self.orders, from)];
        let call = (CollectiveKind::SendRecv, chunk.boundary, self.laid.transfer);
        self.collective(queue, call, (&group, "pipeline-parallel", 0), phase)
    }

    fn task(&mut self, task: Task, last: bool) -> Result<()> {
        let place = Place { stage: self.stage, chunk: task.chunk };
        let key = (task.kind, task.chunk, task.micro_batch);
        if let Some(&arrival) = self.arrivals.get(&key).or_else(|| self.results.get(&key)) {
            self.wait_for(arrival);
        }
        let ends = self.pass(task, last)?;
        let Some(to) = self.destination(place, task.kind) else { return Ok(()) };
        if to.stage == self.stage {
            self.results.insert((task.kind, to.chunk, task.micro_batch), ends);
            return Ok(());
        }
        let queue = self.sends[usize::from(task.kind != Kind::Forward)];
        let sent = self.transfer(queue, place, to, task);
        self.after(ends, sent, Nanos::ZERO);
        if !self.laid.job.software.overlap_pipeline {
            self.wait_for(sent);
        }
        Ok(())
    }

    /// Updated parameters, gathered from the step's start on.
    fn gather_updated(&mut self) {
        if !self.laid.job.software.overlap_parameters {
            return;
        }
        for chunk in 0..self.orders.chunks {
            let at = self.chunk_of(chunk);
            let gathers = self.laid.syncs[at].gathers.clone();
            for bucket in gathers {
                let node = self.bucket(&bucket, Phase::Forward);
                self.gathers.insert((at, bucket.unit), node);
            }
        }
    }

    pub(super) fn bucket(&mut self, bucket: &Bucket, phase: Phase) -> NodeId {
        let ranks = self.laid.layout.gradient_ranks();
        let call = (bucket.kind, bucket.bytes, bucket.time);
        let group = format!("replicas of stage {}", self.stage);
        self.collective(self.exchange, call, (&group, "data-parallel", ranks), phase)
    }

    /// Synchronisation that nothing hides, the wait for all stages, the update.
    fn finish(&mut self) {
        let chunks: Vec<usize> =
            (0..self.orders.chunks).map(|chunk| self.chunk_of(chunk)).collect();
        if !self.laid.job.software.overlap_gradients {
            for &chunk in &chunks {
                for bucket in self.laid.syncs[chunk].buckets.clone() {
                    let node = self.bucket(&bucket, Phase::Sync);
                    if let Some(computed) = self.last_of(self.compute) {
                        self.after(computed, node, Nanos::ZERO);
                    }
                }
            }
        }
        if let Some(exchanged) = self.last_of(self.exchange) {
            self.wait_for(exchanged);
        }
        let apart = matches!(
            self.laid.layout.schedule,
            crate::layout::Schedule::ZbH2 | crate::layout::Schedule::ZbV
        );
        if self.laid.layout.pipeline > 1 && !apart {
            let call = (CollectiveKind::AllReduce, Bytes::new(4), Nanos::ZERO);
            let all = ("norm of gradients", "all", 0);
            self.collective(self.compute, call, all, Phase::Sync);
        }
        let update = chunks.iter().map(|&chunk| self.laid.syncs[chunk].update).sum();
        let name = self.name("update");
        let node = Node::new(NodeKind::Optimizer, name, self.compute, update);
        let mut updated = self.push(Node { phase: Phase::Optimizer, ..node });
        let between = self.laid.between_steps();
        if between > Nanos::ZERO {
            let name = self.name("host between steps");
            updated = self.push(Node::new(NodeKind::Sync, name, self.compute, between));
        }
        if self.laid.job.software.overlap_parameters {
            return;
        }
        for chunk in chunks {
            for bucket in self.laid.syncs[chunk].gathers.clone() {
                let node = self.bucket(&bucket, Phase::Sync);
                self.after(updated, node, Nanos::ZERO);
            }
        }
    }
}
