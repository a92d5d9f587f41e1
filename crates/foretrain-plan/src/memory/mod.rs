//! What each stage's devices must hold, item by item.

mod in_flight;
mod items;

pub use in_flight::{Held as HeldBatches, fullest_moments, peak_in_flight};
pub use items::{Fit, Item, MemoryRange, StageMemory};

use foretrain_core::{Bytes, DType, Result};

use crate::layout::{Layout, Sharding};
use crate::lower::times;
use crate::pipeline::Orders;
use crate::step::{Laid, LayerCost, Shares};

/// Context of the driver, its libraries and their kernels: measured on NVIDIA data-centre devices
/// between 0.4 and 0.9 GiB.
const CONTEXT: Bytes = Bytes::from_mib(640);
/// Buffers of one communicator: 16 to 32 channels of some 10 MiB of staging buffers.
const COMMUNICATOR: Bytes = Bytes::from_mib(200);
/// Workspace of the matrix library per stream.
const WORKSPACE: Bytes = Bytes::from_mib(64);
/// What a caching allocator reserves beyond what is allocated: between these shares of what is not
/// allocated once and for all.
const SLACK: (f64, f64) = (0.02, 0.25);

impl Laid<'_> {
    /// Memory of every stage.
    ///
    /// # Errors
    /// If the schedule has no form for the number of micro-batches.
    pub fn memory(&self) -> Result<Vec<StageMemory>> {
        let orders = self.orders_for_memory()?;
        (0..self.layout.pipeline).map(|stage| self.stage_memory(&orders, stage)).collect()
    }

    fn stage_memory(&self, orders: &Orders, stage: u32) -> Result<StageMemory> {
        let layout = self.layout;
        let precision = self.job.training.precision;
        let size = |dtype: DType, numbers: u64| Bytes::new(dtype.bytes_of(numbers));
        let mut memory = StageMemory::new(stage, self.job.machine.cluster().node.device.memory);
        let held = self.held(orders, stage);
        let (own, trained) = (held.shares, held.trained);

        // Parameters, gradients and states, whole or divided among replicas.
        let divide = |shares: Shares, from: Sharding| {
            if layout.sharding < from {
                return shares.total();
            }
            let shards = match layout.sharding {
                Sharding::Parameters => layout.shards(),
                _ => layout.gradient_ranks(),
            };
            shares.dense.div_ceil(u64::from(shards.max(1)))
                + shares.expert.div_ceil(u64::from(layout.expert_gradient_ranks().max(1)))
        };
        let parameters = divide(own, Sharding::Parameters);
        memory.add(Item::Parameters, size(precision.weights, parameters));
        memory
            .add(Item::Gradients, size(precision.gradients, divide(trained, Sharding::Gradients)));
        if !layout.offload_optimiser {
            let states = divide(trained, Sharding::Optimiser);
            let master = precision.master.map_or(Bytes::ZERO, |dtype| size(dtype, states));
            let moments = self.job.training.optimiser.moments();
            memory.add(Item::Optimiser, master);
            memory.add(Item::Optimiser, size(precision.moments, states * moments));
        }

        // Parameters gathered for the layer at work, those ahead of it, and its gradients.
        if layout.sharding == Sharding::Parameters {
            let units = GATHERED_UNITS.min(held.layers);
            let live = self.job.software.live_parameters.min(held.shares.total());
            let (weights, gradients) = (
                size(precision.weights, held.largest.total()),
                size(precision.gradients, held.largest_trained.total()),
            );
            let gathered = times(weights, units).max(size(precision.weights, live));
            memory.add(Item::Gathered, gathered);
            // Where parameters stay gathered by number (DeepSpeed), gradients are reduced by number
            // too; else unit by unit.
            let by_number = self.job.software.live_parameters > 0;
            let reduced = if by_number { self.job.software.bucket } else { gradients };
            memory.add(Item::Buckets, reduced);
        } else if layout.sharding == Sharding::Gradients {
            memory.add(Item::Buckets, self.job.software.bucket);
        }

        // Activations in flight.
        let kept: Vec<Bytes> = self
            .chunks_of(orders, stage)
            .into_iter()
            .map(|chunk| self.chunks[chunk].kept)
            .collect();
        let peak = peak_in_flight(orders.fullest(stage), &kept);
        if layout.offload_activations {
            // One micro-batch at work, one on its way.
            let largest = kept.iter().copied().max().unwrap_or(Bytes::ZERO);
            memory.add(Item::Activations, times(largest, 2).min(peak));
        } else {
            memory.add(Item::Activations, peak);
        }
        memory.add(Item::Recomputed, held.recomputed);
        memory.add(Item::Transient, held.transient);
        if layout.pipeline > 1 {
            memory.add(Item::Transfers, times(held.boundary, 2 * u64::from(orders.chunks)));
        }
        memory.add(Item::Workspace, WORKSPACE);

        // Beside the allocator.
        let device = self.job.machine.cluster().node.device.kind;
        if device == foretrain_hardware::DeviceKind::Gpu {
            memory.add(Item::Context, CONTEXT);
        }
        memory.add(Item::Communicators, times(COMMUNICATOR, self.communicators()));
        memory.close(SLACK);
        Ok(memory)
    }

    /// Communicators that a rank takes part in.
    fn communicators(&self) -> u64 {
        let layout = self.layout;
        [
            layout.tensor > 1,
            layout.gradient_ranks() > 1,
            layout.context > 1,
            layout.expert > 1,
            layout.expert > 1 && layout.expert_gradient_ranks() > 1,
            layout.pipeline > 1,
        ]
        .into_iter()
        .map(u64::from)
        .sum()
    }

    fn orders_for_memory(&self) -> Result<std::rc::Rc<Orders>> {
        self.job.orders_of(self.layout, self.played_first())
    }

    /// What a stage's layers hold together.
    fn held(&self, orders: &Orders, stage: u32) -> Held {
        let mut held = Held::default();
        for chunk in self.chunks_of(orders, stage) {
            for run in &self.cut.chunks[chunk] {
                held.add(&self.layers[run.layer], run.count, self.layout);
            }
            held.boundary = held.boundary.max(self.chunks[chunk].boundary);
            // The head's copy of a tied embedding, where the embedding is on another stage.
            let input = self.cut.chunks[chunk]
                .iter()
                .any(|run| self.layers[run.layer].role == foretrain_workload::model::Role::Input);
            for run in &self.cut.chunks[chunk] {
                let tied = self.layers[run.layer].shares.tied;
                if tied > 0 && !input && self.layout.pipeline > 1 {
                    held.shares.dense += tied;
                    held.trained.dense += tied;
                }
            }
        }
        held
    }
}

/// Layers whose gathered parameters are held at once: the one at work and those ahead.
const GATHERED_UNITS: u64 = 3;

/// Sums and maxima over a stage's layers.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    shares: Shares,
    trained: Shares,
    largest: Shares,
    largest_trained: Shares,
    layers: u64,
    /// What one recomputed layer keeps while its backward pass runs.
    recomputed: Bytes,
    transient: Bytes,
    boundary: Bytes,
}

impl Held {
    fn add(&mut self, layer: &LayerCost, count: u32, layout: &Layout) {
        self.shares = self.shares + layer.shares * u64::from(count);
        self.trained = self.trained + layer.trained * u64::from(count);
        if layer.shares.total() > self.largest.total() {
            (self.largest, self.largest_trained) = (layer.shares, layer.trained);
        }
        self.layers += u64::from(count);
        let formed = layer.kept - layer.kept(layout.recompute, 0);
        self.recomputed = self.recomputed.max(formed);
        self.transient = self.transient.max(layer.transient);
    }
}
