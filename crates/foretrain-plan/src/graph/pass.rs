//! One pass of one micro-batch over one chunk.

use std::rc::Rc;

use foretrain_core::{Nanos, Result};
use foretrain_cost::kernels::Operation;
use foretrain_graph::attributes::well_known;
use foretrain_graph::{Node, NodeId, NodeKind, Phase};

use super::Detail;
use super::stage::StageGraph;
use crate::layout::{Ranks, Recompute, Sharding};
use crate::lower::{Comm, Group, Lowered, Owner, Work};
use crate::pipeline::{Kind, Task};
use crate::step::Unit;
use crate::times::Part;

impl StageGraph<'_> {
    /// Adds a pass; returns the node at which its result is ready.
    pub(super) fn pass(&mut self, task: Task, last: bool) -> Result<NodeId> {
        let at = self.chunk_of(task.chunk);
        let chunk = Rc::clone(&self.laid.chunks[at]);
        let units = &chunk.units;
        let start = self.mark("start of pass", task);
        let reduced = self.laid.layout.sharding >= Sharding::Gradients;
        let divided = self.laid.layout.sharding == Sharding::Parameters;
        let first_forward = task.kind == Kind::Forward && task.micro_batch == self.first_of(task);
        let mut ends = vec![None; units.len()];
        let order: Vec<usize> = match task.kind {
            Kind::Forward => (0..units.len()).collect(),
            Kind::Backward | Kind::Weights => (0..units.len()).rev().collect(),
        };
        let mut gathered = self.gather_first(&order, units, task, start, divided);
        for (turn, &unit) in order.iter().enumerate() {
            if first_forward && let Some(&arrived) = self.gathers.get(&(at, unit)) {
                self.wait_for(arrived);
            }
            if let Some(node) = gathered.take() {
                self.wait_for(node);
            }
            let begins = self.last_of(self.compute);
            let end = self.unit(&units[unit], at, task)?;
            ends[unit] = Some(end);
            if divided {
                gathered =
                    self.gather_next(&order, units, turn, task, begins.unwrap_or(start), &ends);
            }
            if reduced {
                self.scatter(&units[unit], task, end);
            }
            if last && self.laid.job.software.overlap_gradients {
                let sync = Rc::clone(&self.laid.syncs[at]);
                for bucket in sync.buckets.iter().filter(|bucket| bucket.unit == unit) {
                    let node = self.bucket(bucket, Phase::Sync);
                    self.after(end, node, Nanos::ZERO);
                }
            }
        }
        self.rest(at, task);
        let scattered = reduced && task.kind != Kind::Forward;
        if (divided || scattered)
            && let Some(exchanged) = self.last_of(self.exchange)
        {
            self.wait_for(exchanged);
        }
        Ok(self.mark("end of pass", task))
    }

    /// The micro-batch that a chunk sees first.
    fn first_of(&self, task: Task) -> u32 {
        let tasks = &self.orders.stages[self.stage as usize];
        let same = |other: &&Task| other.kind == task.kind && other.chunk == task.chunk;
        tasks.iter().find(same).map_or(0, |first| first.micro_batch)
    }

    fn mark(&mut self, what: &str, task: Task) -> NodeId {
        let name = self.name(what);
        let node = Node::new(NodeKind::Mark, name, self.compute, Nanos::ZERO);
        self.push(Node { phase: phase(task.kind), ..node })
    }

    /// Offloading that a pass does not hide.
    fn rest(&mut self, at: usize, task: Task) {
        let cost = &self.laid.chunks[at];
        let parts = match task.kind {
            Kind::Forward => &cost.forward.parts,
            Kind::Backward => &cost.backward.parts,
            Kind::Weights => &cost.weights.parts,
        };
        let exposed = parts[Part::Offload];
        if exposed > Nanos::ZERO {
            let name = self.name("copies of activations");
            let node = Node::new(NodeKind::Copy, name, self.compute, exposed);
            self.push(Node { phase: phase(task.kind), ..node });
        }
    }

    /// One layer's share of a pass; returns its last node.
    fn unit(&mut self, unit: &Unit, at: usize, task: Task) -> Result<NodeId> {
        let layer = std::sync::Arc::clone(&self.laid.cut.layers[unit.layer]);
        let whole = match task.kind {
            Kind::Forward => unit.forward,
            Kind::Backward => unit.backward,
            Kind::Weights => unit.weights,
        };
        let module = self.name(&format!("chunk {at}, {} {}", layer.name, unit.nth));
        let name = self.name(&layer.name);
        if self.detail == Detail::Layers {
            let node = Node::new(NodeKind::Kernel, name, self.compute, whole);
            return Ok(self.push(Node { phase: phase(task.kind), module, ..node }));
        }
        let before = self.graph.node_count();
        let mut spent = Nanos::ZERO;
        let lowered = Rc::clone(&self.lowered);
        for work in self.works(&lowered[unit.layer], unit, task) {
            spent += self.work(&work, phase(task.kind), module)?;
        }
        let pause = whole - spent;
        if pause > Nanos::ZERO || self.graph.node_count() == before {
            let name = self.name("waiting for launches");
            let pause = pause.clamp_positive();
            let node = Node::new(NodeKind::Sync, name, self.compute, pause);
            self.push(Node { phase: phase(task.kind), module, ..node });
        }
        Ok(self.last_of(self.compute).unwrap_or(NodeId::from_index(0)))
    }

    fn works(&self, lowered: &Lowered, unit: &Unit, task: Task) -> Vec<Work> {
        let layout = self.laid.layout;
        let copies = &self.laid.layers[unit.layer].copies;
        let with = |work: &[Work], copies: &[Option<Work>]| {
            work.iter().chain(copies.iter().flatten()).cloned().collect()
        };
        match task.kind {
            Kind::Forward => with(&lowered.forward, &copies[..1]),
            Kind::Weights => with(&lowered.weights, &copies[2..]),
            Kind::Backward => {
                let layer = &self.laid.layers[unit.layer];
                let again: &[Work] = match layout.recompute {
                    Recompute::Selective => &lowered.core,
                    recompute if layer.is_formed_again(recompute, unit.nth) => &lowered.forward,
                    _ => &[],
                };
                let splits = layout.schedule.splits_backward();
                let backward = if splits { &lowered.inputs } else { &lowered.backward };
                let copies = if splits { &copies[1..2] } else { &copies[1..] };
                let all: Vec<Work> = again.iter().chain(backward).cloned().collect();
                with(&all, copies)
            }
        }
    }

    /// A piece of work; returns how long it takes on the compute stream.
    fn work(&mut self, work: &Work, phase: Phase, module: foretrain_core::NameId) -> Result<Nanos> {
        let ranks = Ranks::of(self.laid.layout);
        match work {
            Work::Kernel { operation, owner, times, .. } => {
                let time = self.laid.job.machine.kernel(operation).time.scale(f64::from(*times));
                self.kernel(operation, *owner, time, f64::from(*times), (phase, module));
                Ok(time)
            }
            Work::Comm(comm) => {
                let time = self.laid.job.machine.comm(comm, &ranks)?.time;
                self.comm(self.compute, comm, time, phase);
                Ok(time)
            }
            Work::Beside { comm, kernels, pieces } => {
                let time = self.laid.job.machine.comm(comm, &ranks)?.time;
                let slow = self.laid.job.machine.beside(time, kernels);
                let parts = f64::from((*pieces).max(1));
                let first = if *pieces > 1 { time.scale(1.0 / parts) } else { Nanos::ZERO };
                let begins = self.comm(self.compute, comm, first, phase);
                let mut computed = Nanos::ZERO;
                for (operation, owner) in kernels {
                    let time = self.laid.job.machine.kernel(operation).time.scale(slow);
                    self.kernel(operation, *owner, time, 1.0, (phase, module));
                    computed += time;
                }
                let rest = self.comm(self.beside, comm, time - first, phase);
                // The second piece waits for its share of the kernels.
                let lag = if *pieces > 1 { computed.scale(1.0 / parts) } else { Nanos::ZERO };
                self.after(begins, rest, lag);
                self.wait_for(rest);
                Ok(computed + crate::times::exposed(time, computed, *pieces))
            }
        }
    }

    fn kernel(
        &mut self,
        operation: &Operation,
        owner: Owner,
        time: Nanos,
        times: f64,
        (phase, module): (Phase, foretrain_core::NameId),
    ) {
        let name = self.name(Part::from(owner).as_str());
        let node = Node {
            phase,
            module,
            dtype: operation.dtype(),
            ..Node::new(NodeKind::Kernel, name, self.compute, time)
        };
        let id = self.push(node);
        let attributes = &mut self.graph.node_attributes;
        let flops = operation.flops().get() * times;
        if flops > 0.0 {
            attributes.set_f64(well_known::FLOPS, id.index(), flops);
        }
        let bytes = operation.bytes().as_f64() * times;
        attributes.set_i64(well_known::BYTES_MOVED, id.index(), bytes as i64);
    }

    fn comm(
        &mut self,
        queue: foretrain_graph::QueueId,
        comm: &Comm,
        time: Nanos,
        phase: Phase,
    ) -> NodeId {
        let layout = self.laid.layout;
        let (role, size) = match comm.group {
            Group::Tensor => ("tensor-parallel", layout.tensor),
            Group::Context => ("context-parallel", layout.context),
            Group::Expert => ("expert-parallel", layout.expert),
            Group::ExpertTensor => ("expert-tensor-parallel", layout.expert_tensor),
        };
        let group = format!(
            "{role} of stage {}{}",
            self.stage,
            if queue == self.beside { ", beside" } else { "" }
        );
        self.collective(queue, (comm.kind, comm.bytes, time), (&group, role, size), phase)
    }
}

/// Divided parameters: gathered ahead, gradients reduced behind.
impl StageGraph<'_> {
    fn gather_first(
        &mut self,
        order: &[usize],
        units: &[Unit],
        task: Task,
        start: NodeId,
        divided: bool,
    ) -> Option<NodeId> {
        if !divided || task.kind == Kind::Weights {
            return None;
        }
        let first = *order.first()?;
        let node = self.gather(&units[first], task);
        self.after(start, node, Nanos::ZERO);
        Some(node)
    }

    /// The next layer's gather: forward at most two layers ahead of the one at work, backward when
    /// the layer before it begins.
    fn gather_next(
        &mut self,
        order: &[usize],
        units: &[Unit],
        turn: usize,
        task: Task,
        begins: NodeId,
        ends: &[Option<NodeId>],
    ) -> Option<NodeId> {
        if task.kind == Kind::Weights {
            return None;
        }
        let next = *order.get(turn + 1)?;
        let node = self.gather(&units[next], task);
        if task.kind == Kind::Backward {
            self.after(begins, node, Nanos::ZERO);
        } else if let Some(before) = (turn + 1).checked_sub(crate::step::AHEAD)
            && let Some(end) = ends[order[before]]
        {
            self.after(end, node, Nanos::ZERO);
        }
        Some(node)
    }

    fn gather(&mut self, unit: &Unit, task: Task) -> NodeId {
        use foretrain_graph::CollectiveKind::AllGather;
        let layer = &self.laid.layers[unit.layer];
        let numbers = layer.shares.total();
        let bytes = self.laid.job.training.precision.weights.bytes_of(numbers);
        let bucket = crate::step::Bucket {
            unit: 0,
            kind: AllGather,
            bytes: foretrain_core::Bytes::new(bytes),
            time: layer.gather,
        };
        self.bucket(&bucket, phase(task.kind))
    }

    fn scatter(&mut self, unit: &Unit, task: Task, end: NodeId) {
        use foretrain_graph::CollectiveKind::ReduceScatter;
        let splits = self.laid.layout.schedule.splits_backward();
        let complete = if splits { Kind::Weights } else { Kind::Backward };
        if task.kind != complete {
            return;
        }
        let layer = &self.laid.layers[unit.layer];
        let numbers = layer.trained.total();
        let bytes = self.laid.job.training.precision.gradients.bytes_of(numbers);
        let bucket = crate::step::Bucket {
            unit: 0,
            kind: ReduceScatter,
            bytes: foretrain_core::Bytes::new(bytes),
            time: layer.scatter,
        };
        let node = self.bucket(&bucket, Phase::Sync);
        self.after(end, node, Nanos::ZERO);
    }
}

const fn phase(kind: Kind) -> Phase {
    match kind {
        Kind::Forward => Phase::Forward,
        Kind::Backward | Kind::Weights => Phase::Backward,
    }
}
