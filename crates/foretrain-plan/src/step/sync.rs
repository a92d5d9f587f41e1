//! Between replicas: gradients, parameters and the update.

use foretrain_core::{Bytes, DType, Nanos, Result};
use foretrain_cost::GroupPlacement;
use foretrain_cost::kernels::{Memory, MemoryKind, Operation};
use foretrain_graph::CollectiveKind;

use super::chunk::Stretch;
use super::layer::LayerCost;
use crate::cut::Run;
use crate::layout::{Layout, Ranks, Sharding};
use crate::pipeline::{Gate, Sync};
use crate::software::Software;
use crate::times::{Machine, PassTime};
use crate::training::Training;

/// What replicas exchange for one chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ChunkSync {
    /// Gradients, as the last backward pass hands them over.
    pub gradients: Sync,
    /// Parameters that must be there for the first forward pass.
    pub gate: Gate,
    /// Parameters gathered after the update, when nothing else runs.
    pub gather_after: Nanos,
    /// The update of this chunk's parameters.
    pub update: Nanos,
}

/// A kind of collective over one group, for buckets of gradients or parameters.
struct Lane<'a> {
    kind: CollectiveKind,
    group: GroupPlacement,
    machine: &'a Machine<'a>,
}

impl Lane<'_> {
    fn time(&self, bytes: u64) -> Result<Nanos> {
        Ok(self.machine.collective(self.kind, Bytes::new(bytes), &self.group)?.time)
    }
}

/// What is asked about a chunk.
pub(super) struct Chunk<'a> {
    pub(super) runs: &'a [Run],
    pub(super) layers: &'a [LayerCost],
    /// The pass in which gradients become complete.
    pub(super) last: &'a PassTime,
    pub(super) forward: &'a PassTime,
    pub(super) layout: &'a Layout,
    pub(super) training: &'a Training,
    pub(super) software: &'a Software,
    pub(super) machine: &'a Machine<'a>,
}

impl Chunk<'_> {
    pub(super) fn sync(&self) -> Result<ChunkSync> {
        let mut sync = ChunkSync { update: self.update()?, ..ChunkSync::default() };
        if self.layout.sharding == Sharding::Parameters {
            return Ok(sync);
        }
        sync.gradients = self.gradients()?;
        if self.layout.sharding != Sharding::None {
            let gate = self.gathers()?;
            if self.software.overlap_parameters {
                sync.gate = Gate { earliest_end: gate.earliest_end };
            } else {
                sync.gather_after = gate.total;
            }
        }
        Ok(sync)
    }

    fn splits(&self) -> bool {
        self.layout.schedule.splits_backward()
    }

    /// Buckets close once they hold enough, in the order in which gradients become complete.
    fn gradients(&self) -> Result<Sync> {
        let precision = self.training.precision;
        let dtype = if self.software.reduce_in_activations {
            precision.activations
        } else {
            precision.gradients
        };
        let ranks = Ranks::of(self.layout);
        let kind = match self.layout.sharding {
            Sharding::None => CollectiveKind::AllReduce,
            _ => CollectiveKind::ReduceScatter,
        };
        let lane = |group| Lane { kind, group, machine: self.machine };
        let (dense, expert) = (lane(ranks.gradient()), lane(ranks.expert_data()));
        let own = |layer: &LayerCost| {
            if self.splits() { layer.weights.parts.total() } else { layer.backward.parts.total() }
        };
        let time = Stretch::of(self.last, self.layers, self.runs, own);
        let size = |numbers: u64| dtype.bytes_of(numbers);
        let cap = self.software.bucket.get().max(1);
        let mut queue = Queue::default();
        let (mut ready, mut held) = (Nanos::ZERO, (0_u64, 0_u64));
        for run in self.runs.iter().rev() {
            let layer = &self.layers[run.layer];
            for _ in 0..run.count {
                ready += time.time(layer);
                held.0 += size(layer.trained.dense);
                held.1 += size(layer.trained.expert);
                if held.0 + held.1 >= cap {
                    queue.push(ready, dense.time(held.0)? + expert.time(held.1)?);
                    held = (0, 0);
                }
            }
        }
        queue.push(ready, dense.time(held.0)? + expert.time(held.1)?);
        if self.software.overlap_gradients {
            Ok(Sync { total: queue.total(), from_start: queue.end() })
        } else {
            // Nothing before the whole pass has ended.
            let whole = self.last.parts.total();
            Ok(Sync { total: queue.total(), from_start: whole + queue.total() })
        }
    }

    /// Updated parameters on their way to the first forward pass, in its order.
    fn gathers(&self) -> Result<Arrivals> {
        let precision = self.training.precision;
        let ranks = Ranks::of(self.layout);
        let lane = |group| Lane { kind: CollectiveKind::AllGather, group, machine: self.machine };
        let (dense, expert) = (lane(ranks.gradient()), lane(ranks.expert_data()));
        let own = |layer: &LayerCost| layer.forward.parts.total();
        let time = Stretch::of(self.forward, self.layers, self.runs, own);
        let whole = self.forward.parts.total();
        let size = |numbers: u64| precision.weights.bytes_of(numbers);
        let cap = self.software.bucket.get().max(1);
        let mut arrivals = Arrivals::default();
        let (mut before, mut held) = (Nanos::ZERO, (0_u64, 0_u64));
        // Work from the first layer of the open bucket on.
        let mut rest = whole;
        for run in self.runs {
            let layer = &self.layers[run.layer];
            for _ in 0..run.count {
                if held == (0, 0) {
                    rest = whole - before;
                }
                held.0 += size(layer.trained.dense);
                held.1 += size(layer.trained.expert);
                before += time.time(layer);
                if held.0 + held.1 >= cap {
                    arrivals.push(dense.time(held.0)? + expert.time(held.1)?, rest);
                    held = (0, 0);
                }
            }
        }
        arrivals.push(dense.time(held.0)? + expert.time(held.1)?, rest);
        Ok(arrivals)
    }

    /// Norm of the gradients, the update of this rank's part, and clearing.
    fn update(&self) -> Result<Nanos> {
        let layout = self.layout;
        let precision = self.training.precision;
        let trained = self.runs.iter().fold((0, 0), |(dense, expert), run| {
            let layer = self.layers[run.layer].trained;
            let count = u64::from(run.count);
            (dense + layer.dense * count, expert + layer.expert * count)
        });
        let divided = layout.sharding != Sharding::None;
        let part = |numbers: u64, ranks: u32| {
            if divided { numbers.div_ceil(u64::from(ranks.max(1))) } else { numbers }
        };
        let shards = if layout.sharding == Sharding::Parameters {
            layout.shards()
        } else {
            layout.gradient_ranks()
        };
        let own = part(trained.0, shards) + part(trained.1, layout.expert_gradient_ranks());
        let held = match layout.sharding {
            Sharding::Parameters | Sharding::Gradients => own,
            _ => trained.0 + trained.1,
        };
        let size = |dtype: DType, numbers: u64| dtype.bytes_of(numbers);
        let master = precision.master.map_or(0, |dtype| size(dtype, own));
        let states = self.training.optimiser.moments() * size(precision.moments, own);
        let weights = size(precision.weights, own);
        let gradients = size(precision.gradients, own);
        let base = if master > 0 { master } else { weights };
        let written = base + states + if master > 0 { weights } else { 0 };
        let kernel = |kind, read, written| {
            let memory = Memory { kind, read: Bytes::new(read), written: Bytes::new(written) };
            self.machine.kernel(&Operation::Memory(memory)).time
        };
        if own == 0 {
            return Ok(Nanos::ZERO);
        }
        let norm = kernel(MemoryKind::Reduction, gradients, 4);
        let clear = kernel(MemoryKind::Copy, 0, size(precision.gradients, held));
        if layout.offload_optimiser {
            return Ok(norm + clear + self.update_on_host(gradients, weights, base + states));
        }
        Ok(norm + clear + kernel(MemoryKind::Optimiser, gradients + base + states, written))
    }

    /// Gradients down, parameters up, and the host's memory in between, which the devices of a
    /// node share.
    fn update_on_host(&self, gradients: u64, weights: u64, states: u64) -> Nanos {
        let host = super::host::Host::of(self.machine.cluster());
        let copies = Bytes::new(gradients + weights) / host.copy_bandwidth;
        copies + Bytes::new(2 * states + gradients) / host.memory_bandwidth_per_device
    }
}

/// Buckets that take turns.
#[derive(Default)]
struct Queue {
    end: Nanos,
    total: Nanos,
}

impl Queue {
    fn push(&mut self, ready: Nanos, time: Nanos) {
        self.end = self.end.max(ready) + time;
        self.total += time;
    }
    fn end(&self) -> Nanos {
        self.end
    }
    fn total(&self) -> Nanos {
        self.total
    }
}

/// Buckets of parameters that arrive one after the other from a step's start.
#[derive(Default)]
struct Arrivals {
    total: Nanos,
    earliest_end: Nanos,
}

impl Arrivals {
    /// A bucket; after its arrival `rest` of the pass remains.
    fn push(&mut self, time: Nanos, rest: Nanos) {
        self.total += time;
        if time > Nanos::ZERO {
            self.earliest_end = self.earliest_end.max(self.total + rest);
        }
    }
}
