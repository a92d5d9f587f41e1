//! Between replicas: gradients, parameters and the update.

use foretrain_core::{Bytes, DType, Nanos, Result};
use foretrain_cost::GroupPlacement;
use foretrain_cost::kernels::{Memory, MemoryKind, Operation};
use foretrain_graph::CollectiveKind;

use super::chunk::{ChunkCost, Unit};
use super::layer::LayerCost;
use crate::layout::{Layout, Ranks, Sharding};
use crate::pipeline::{Gate, Sync};
use crate::software::Software;
use crate::times::{Machine, Part};
use crate::training::Training;

/// What replicas exchange for one chunk.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChunkSync {
    /// Buckets of gradients in the order in which they close.
    pub buckets: Vec<Bucket>,
    /// Buckets of updated parameters in the order of the forward pass.
    pub gathers: Vec<Bucket>,
    /// Gradients, as the last backward pass hands them over.
    pub gradients: Sync,
    /// Parameters that must be there for the first forward pass.
    pub gate: Gate,
    /// Parameters gathered after the update, when nothing else runs.
    pub gather_after: Nanos,
    /// The update of this chunk's parameters.
    pub update: Nanos,
}

/// Tensors that are synchronised at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// The layer (of the chunk's) that closes a bucket of gradients, or the first that needs a
    /// bucket of parameters.
    pub unit: usize,
    /// Which collective.
    pub kind: CollectiveKind,
    /// Dense and expert gradients or parameters together.
    pub bytes: Bytes,
    /// How long they take.
    pub time: Nanos,
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
    pub(super) cost: &'a ChunkCost,
    pub(super) layers: &'a [LayerCost],
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
        // Divided gradients are reduced after every micro-batch, with its passes.
        if self.layout.sharding != Sharding::Gradients {
            sync.buckets = self.buckets()?;
            sync.gradients = self.gradients(&sync.buckets);
        }
        if self.layout.sharding != Sharding::None {
            sync.gathers = self.gathers()?;
            if self.software.overlap_parameters {
                sync.gate = self.gate(&sync.gathers);
            } else {
                sync.gather_after = sync.gathers.iter().map(|bucket| bucket.time).sum();
            }
        }
        Ok(sync)
    }

    fn splits(&self) -> bool {
        self.layout.schedule.splits_backward()
    }

    /// Buckets close once they hold enough, in the order in which gradients become complete.
    fn buckets(&self) -> Result<Vec<Bucket>> {
        let precision = self.training.precision;
        let dtype = if self.software.reduce_in_activations {
            precision.activations
        } else {
            precision.gradients
        };
        let kind = match self.layout.sharding {
            Sharding::None => CollectiveKind::AllReduce,
            _ => CollectiveKind::ReduceScatter,
        };
        let units = self.cost.units.iter().enumerate().rev();
        self.bucketed(kind, dtype, units, |_, closing| closing)
    }

    /// Updated parameters on their way to the first forward pass, in its order.
    fn gathers(&self) -> Result<Vec<Bucket>> {
        let units = self.cost.units.iter().enumerate();
        let weights = self.training.precision.weights;
        self.bucketed(CollectiveKind::AllGather, weights, units, |first, _| first)
    }

    /// Trained tensors of `units` in buckets; `named` chooses between a bucket's first and last unit.
    fn bucketed<'b>(
        &self,
        kind: CollectiveKind,
        dtype: DType,
        units: impl Iterator<Item = (usize, &'b Unit)>,
        named: impl Fn(usize, usize) -> usize,
    ) -> Result<Vec<Bucket>> {
        let ranks = Ranks::of(self.layout);
        let lane = |group| Lane { kind, group, machine: self.machine };
        let (dense, expert) = (lane(ranks.gradient()), lane(ranks.expert_data()));
        let cap = self.software.bucket.get().max(1);
        let mut buckets = Vec::new();
        let mut held = (0_u64, 0_u64);
        let mut open: Option<(usize, usize)> = None;
        let mut close = |held: &mut (u64, u64), open: &mut Option<(usize, usize)>| -> Result<()> {
            let Some((first, last)) = open.take() else { return Ok(()) };
            let time = dense.time(held.0)? + expert.time(held.1)?;
            let bytes = Bytes::new(held.0 + held.1);
            *held = (0, 0);
            if time > Nanos::ZERO {
                buckets.push(Bucket { unit: named(first, last), kind, bytes, time });
            }
            Ok(())
        };
        for (at, unit) in units {
            let trained = self.layers[unit.layer].trained;
            open = Some((open.map_or(at, |(first, _)| first), at));
            held.0 += dtype.bytes_of(trained.dense);
            held.1 += dtype.bytes_of(trained.expert);
            if held.0 + held.1 >= cap {
                close(&mut held, &mut open)?;
            }
        }
        close(&mut held, &mut open)?;
        Ok(buckets)
    }

    /// What buckets that take turns leave of a last backward pass.
    fn gradients(&self, buckets: &[Bucket]) -> Sync {
        let time = |unit: &Unit| if self.splits() { unit.weights } else { unit.backward };
        let total = buckets.iter().map(|bucket| bucket.time).sum();
        let (mut ready, mut end) = (Nanos::ZERO, Nanos::ZERO);
        let mut closing = buckets.iter().peekable();
        for (at, unit) in self.cost.units.iter().enumerate().rev() {
            ready += time(unit);
            while let Some(bucket) = closing.next_if(|bucket| bucket.unit == at) {
                end = end.max(ready) + bucket.time;
            }
        }
        Sync { total, from_start: end }
    }

    /// When the first forward pass can end at the earliest, parameters arriving from the start on.
    fn gate(&self, gathers: &[Bucket]) -> Gate {
        // Copies of activations that the pass does not hide come at its end.
        let copies = self.cost.forward.parts[Part::Offload];
        let mut rest = self.cost.units.iter().map(|unit| unit.forward).sum::<Nanos>() + copies;
        let (mut arrived, mut earliest_end) = (Nanos::ZERO, Nanos::ZERO);
        let mut needed = gathers.iter().peekable();
        for (at, unit) in self.cost.units.iter().enumerate() {
            while let Some(bucket) = needed.next_if(|bucket| bucket.unit == at) {
                arrived += bucket.time;
                earliest_end = earliest_end.max(arrived + rest);
            }
            rest -= unit.forward;
        }
        Gate { earliest_end }
    }

    /// Norm of the gradients, the update of this rank's part, and clearing.
    fn update(&self) -> Result<Nanos> {
        let layout = self.layout;
        let precision = self.training.precision;
        let trained = self.cost.units.iter().fold((0, 0), |(dense, expert), unit| {
            let layer = self.layers[unit.layer].trained;
            (dense + layer.dense, expert + layer.expert)
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
            let widened = size(DType::F32, own);
            let moved = 2 * (base + states) + weights + 5 * widened;
            return Ok(clear + self.update_on_host(gradients, weights, moved));
        }
        Ok(norm + clear + kernel(MemoryKind::Optimiser, gradients + base + states, written))
    }

    /// Gradients down, parameters up, and the host's memory in between, which the devices of a
    /// node share. Gradients pass it five times: widened to f32, read for their norm, scaled (a read
    /// and a write) and read for the update.
    fn update_on_host(&self, gradients: u64, weights: u64, moved: u64) -> Nanos {
        let host = self.machine.host();
        let copies = Bytes::new(gradients + weights) / host.copy_bandwidth;
        copies + Bytes::new(moved) / host.memory_bandwidth_per_device
    }
}

#[cfg(test)]
mod tests {
    use foretrain_cost::kernels::KernelModel;
    use foretrain_hardware::Catalogue;
    use foretrain_workload::load;

    use crate::layout::Wish;
    use crate::software::Software;
    use crate::step::Host;
    use crate::times::{Machine, Part};
    use crate::training::{Precision, Training};
    use crate::{Job, Layout};

    #[test]
    fn an_update_on_the_host_passes_its_memory_and_the_bus() {
        let cluster = Catalogue::builtin().cluster("dgx-a100").unwrap();
        let machine = Machine::new(&cluster, KernelModel::for_device(&cluster.node.device));
        let model = load("gpt-3-1.3b").unwrap();
        let (software, precision) = (Software::named("deepspeed").unwrap(), Precision::BF16);
        let training = Training { precision, ..Training::of(8, 1024) };
        let job = Job::new(&model, &training, &software, &machine);
        let update = |layout: &str| {
            let layout: Layout = layout.parse::<Wish>().unwrap().complete(8).unwrap();
            job.answer(&layout).unwrap().step.parts[Part::Optimiser].secs_f64()
        };
        let own = model.parameters() as f64 / 8.0;
        let host = Host::of(&cluster);
        // Gradients in f32 down and weights in bf16 up; then the master copy and two moments read and
        // written, weights written, and gradients passed five times.
        let copied = own * (4.0 + 2.0) / host.copy_bandwidth.get();
        let moved = own * (2.0 * 12.0 + 2.0 + 5.0 * 4.0) / host.memory_bandwidth_per_device.get();
        let there = update("zero=3,offload=optimiser");
        let clearing = 1e-3;
        assert!(there > copied + moved && there < copied + moved + clearing, "{there}");
        assert!(update("zero=3") < 0.05 * there);
    }
}
