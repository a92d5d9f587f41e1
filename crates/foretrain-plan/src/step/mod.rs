//! A step of a layout: passes, pipeline, synchronisation and update put together.

mod chunk;
mod host;
mod layer;
mod shares;
pub mod spread;
mod sync;
mod whole;

pub(crate) use chunk::AHEAD;
pub use chunk::{ChunkCost, Unit};
pub use host::Host;
pub use layer::LayerCost;
pub use shares::Shares;
pub use sync::{Bucket, ChunkSync};
pub use whole::{StageTime, Step};

use std::cell::RefCell;
use std::rc::Rc;

use foretrain_core::{Bytes, InputError, Nanos, Result};
use foretrain_graph::CollectiveKind;
use foretrain_workload::model::Model;
use rustc_hash::FxHashMap;

use crate::cut::Cut;
use crate::layout::{Layout, Ranks, Schedule, Sharding};
use crate::lower::Slice;
use crate::pipeline::{Durations, Orders, PipelineTimes, Place, evaluate, orders};
use crate::software::Software;
use crate::times::Machine;
use crate::training::Training;

use layer::Pace;

/// A model on a machine, and what is known of its layers so far. Layouts that divide layers alike
/// share their costs; one value serves one thread.
#[derive(Debug)]
pub struct Job<'a> {
    /// The model.
    pub model: &'a Model,
    /// What is trained.
    pub training: &'a Training,
    /// How software runs it.
    pub software: &'a Software,
    /// Where.
    pub machine: &'a Machine<'a>,
    layers: RefCell<FxHashMap<LayersKey, Rc<Vec<LayerCost>>>>,
    orders: RefCell<FxHashMap<OrdersKey, Rc<Orders>>>,
}

/// Schedule, stages, chunks per stage and micro-batches.
type OrdersKey = (Schedule, u32, u32, u32);
/// All that a layer's cost depends on beside the job.
type LayersKey = (Slice, Ranks, Sharding, u32, u32);

/// A layout's costs before they are put in order.
#[derive(Debug)]
pub struct Laid<'a> {
    /// The job.
    pub job: &'a Job<'a>,
    /// The layout.
    pub layout: &'a Layout,
    /// Micro-batches of one replica.
    pub micro_batches: u64,
    /// Which layers go where.
    pub cut: Cut,
    /// Costs of the layers that differ.
    pub layers: Rc<Vec<LayerCost>>,
    /// Costs of the chunks, in the order in which a micro-batch meets them.
    pub chunks: Vec<Rc<ChunkCost>>,
    /// What replicas exchange for them.
    pub syncs: Vec<Rc<ChunkSync>>,
    /// Activations between stages.
    pub transfer: Nanos,
}

impl<'a> Job<'a> {
    /// A job of which nothing is known yet.
    pub fn new(
        model: &'a Model,
        training: &'a Training,
        software: &'a Software,
        machine: &'a Machine<'a>,
    ) -> Self {
        let (layers, orders) = (RefCell::default(), RefCell::default());
        Self { model, training, software, machine, layers, orders }
    }

    /// Micro-batches of one replica under `layout`.
    ///
    /// # Errors
    /// If the global batch cannot be dealt out evenly.
    pub fn micro_batches(&self, layout: &Layout) -> Result<u64> {
        let per_round = u64::from(layout.data) * layout.micro_batch;
        let batch = self.training.global_batch;
        if per_round == 0 || !batch.is_multiple_of(per_round) || batch == 0 {
            return Err(InputError::new(format!(
                "a global batch of {batch} cannot be dealt out to dp = {} replicas in \
                 micro-batches of {}",
                layout.data, layout.micro_batch
            ))
            .hint("choose a batch that is a multiple of dp x mbs"));
        }
        Ok(batch / per_round)
    }

    /// Costs of the model's differing layers under `layout`.
    fn layers(&self, cut: &Cut, layout: &Layout) -> Result<Rc<Vec<LayerCost>>> {
        let slice = Slice::of(layout, self.training, self.software);
        let groups = (layout.shards(), layout.expert_gradient_ranks());
        let key = (slice, Ranks::of(layout), layout.sharding, groups.0, groups.1);
        if let Some(known) = self.layers.borrow().get(&key) {
            return Ok(Rc::clone(known));
        }
        let of = |layer| LayerCost::of(layer, &slice, layout, self.training, self.machine);
        let costs = cut.layers.iter().map(|layer| of(layer)).collect::<Result<Vec<_>>>()?;
        let costs = Rc::new(costs);
        self.layers.borrow_mut().insert(key, Rc::clone(&costs));
        Ok(costs)
    }

    pub(crate) fn orders_of(&self, layout: &Layout, micro_batches: u64) -> Result<Rc<Orders>> {
        self.orders(layout, count(micro_batches)?)
    }

    fn orders(&self, layout: &Layout, micro_batches: u32) -> Result<Rc<Orders>> {
        let chunks = layout.chunks_per_stage();
        let key = (layout.schedule, layout.pipeline, chunks, micro_batches);
        if let Some(known) = self.orders.borrow().get(&key) {
            return Ok(Rc::clone(known));
        }
        let made = Rc::new(orders(layout.schedule, layout.pipeline, chunks, micro_batches)?);
        self.orders.borrow_mut().insert(key, Rc::clone(&made));
        Ok(made)
    }

    /// What `layout` costs, part by part.
    ///
    /// # Errors
    /// If the layout does not go with the model, the batch or the cluster.
    pub fn lay(&'a self, layout: &'a Layout) -> Result<Laid<'a>> {
        let micro_batches = self.micro_batches(layout)?;
        let cut = Cut::new(self.model, layout)?;
        let layers = self.layers(&cut, layout)?;
        let host = self.machine.host();
        let pace = Pace::of(self.software, host.pace * self.machine.factors().host);
        let chunk = |runs: &Vec<_>| ChunkCost::of(runs, &layers, layout, pace, &host);
        let mut chunks: Vec<Rc<ChunkCost>> = Vec::with_capacity(cut.chunks.len());
        for (at, runs) in cut.chunks.iter().enumerate() {
            // Most chunks are alike.
            let same = at.checked_sub(1).filter(|&before| cut.chunks[before] == *runs);
            chunks.push(same.map_or_else(|| Rc::new(chunk(runs)), |at| Rc::clone(&chunks[at])));
        }
        let mut syncs: Vec<Rc<ChunkSync>> = Vec::with_capacity(chunks.len());
        for (at, chunk) in chunks.iter().enumerate() {
            let same = at.checked_sub(1).filter(|&before| Rc::ptr_eq(&chunks[before], chunk));
            if let Some(same) = same {
                syncs.push(Rc::clone(&syncs[same]));
                continue;
            }
            let asked = sync::Chunk {
                cost: chunk,
                layers: &layers,
                layout,
                training: self.training,
                software: self.software,
                machine: self.machine,
            };
            syncs.push(Rc::new(asked.sync()?));
        }
        let transfer = self.transfer(&chunks, layout)?;
        Ok(Laid { job: self, layout, micro_batches, cut, layers, chunks, syncs, transfer })
    }

    /// Activations from a stage to the next. Where every tensor-parallel rank holds all of them,
    /// each sends its part and the receivers gather the parts (Narayanan et al., 2021, 4.1).
    fn transfer(&self, chunks: &[Rc<ChunkCost>], layout: &Layout) -> Result<Nanos> {
        if layout.pipeline <= 1 {
            return Ok(Nanos::ZERO);
        }
        let ranks = Ranks::of(layout);
        let bytes = chunks.iter().map(|chunk| chunk.boundary).max().unwrap_or(Bytes::ZERO);
        let whole = layout.tensor > 1 && !layout.sequence_parallel;
        let parts = if whole { u64::from(layout.tensor) } else { 1 };
        let part = Bytes::new(bytes.get().div_ceil(parts));
        let send = self.machine.collective(CollectiveKind::SendRecv, part, &ranks.neighbours())?;
        if !whole {
            return Ok(send.time);
        }
        let gather = self.machine.collective(CollectiveKind::AllGather, bytes, &ranks.tensor())?;
        let at_once =
            self.machine.collective(CollectiveKind::SendRecv, bytes, &ranks.neighbours())?;
        Ok((send.time + gather.time).min(at_once.time))
    }

    /// The step time of `layout`, by parts.
    ///
    /// # Errors
    /// As [`lay`](Self::lay), and if the schedule has no form for the number of micro-batches.
    pub fn step(&self, layout: &Layout) -> Result<Step> {
        let laid = self.lay(layout)?;
        laid.step()
    }
}

impl Laid<'_> {
    /// Which chunk of the model sits at `place`.
    pub fn chunk_at(&self, orders: &Orders, place: Place) -> usize {
        orders.position(place) as usize
    }

    /// Times of the passes at each stage's chunks.
    fn durations(&self, orders: &Orders, transfer: Nanos) -> Vec<Durations> {
        let places = (0..self.layout.pipeline)
            .flat_map(|stage| (0..orders.chunks).map(move |chunk| Place { stage, chunk }));
        let of = |place: Place| {
            let at = self.chunk_at(orders, place);
            let (chunk, sync) = (&self.chunks[at], &self.syncs[at]);
            Durations {
                forward: chunk.forward.parts.total(),
                backward: chunk.backward.parts.total(),
                weights: chunk.weights.parts.total(),
                send_forward: transfer,
                send_backward: transfer,
                gate: sync.gate,
                sync: if self.job.software.overlap_gradients {
                    sync.gradients
                } else {
                    crate::pipeline::Sync::default()
                },
            }
        };
        places.map(of).collect()
    }
}

/// Plays this many micro-batches at first, in stages of the pipeline; once the busiest stage sets the
/// pace, more follow the same rhythm.
const ROUNDS_PLAYED: u64 = 3;

impl Laid<'_> {
    /// No step of this layout is shorter: the busiest chunk's stage has this much to do.
    pub fn least(&self) -> Nanos {
        let passes = self.micro_batches;
        let per_chunk = self.chunks.iter().map(|chunk| {
            let parts = [&chunk.forward, &chunk.backward, &chunk.weights];
            parts.into_iter().map(|pass| pass.parts.total()).sum::<Nanos>()
        });
        // A stage of several chunks has at least as much as the mean of all.
        let (mut sum, mut most) = (Nanos::ZERO, Nanos::ZERO);
        for time in per_chunk {
            sum += time;
            most = most.max(time);
        }
        let mean = sum.scale(1.0 / f64::from(self.layout.pipeline.max(1)));
        // Each direction of a two-way pipeline has half of the micro-batches.
        let two_way = self.layout.schedule == Schedule::DualPipe;
        (if two_way { mean } else { mean.max(most) }).scale(passes as f64)
    }

    /// Puts the step together.
    ///
    /// # Errors
    /// If the schedule has no form for the number of micro-batches.
    pub fn step(&self) -> Result<Step> {
        let blocking = !self.job.software.overlap_pipeline;
        let stuck = || InputError::new("the stages of this schedule wait for each other for ever");
        let mut rounds = ROUNDS_PLAYED;
        loop {
            let (first, second) = self.played(rounds);
            let orders = self.job.orders(self.layout, count(first)?)?;
            let durations = self.durations(&orders, self.transfer);
            let times = evaluate(&orders, &durations, blocking).ok_or_else(stuck)?;
            let Some(second) = second else {
                return Ok(Step::of(self, &orders, &times, 0, None));
            };
            let longer = self.job.orders(self.layout, count(second)?)?;
            let later = evaluate(&longer, &durations, blocking).ok_or_else(stuck)?;
            if has_settled(&times, &later) {
                let rounds = (self.micro_batches - second) / (second - first);
                return Ok(Step::of(self, &orders, &times, rounds + 1, Some(&later)));
            }
            rounds *= 2;
        }
    }

    /// Micro-batches of the shortest play that shows every stage at its fullest.
    pub(crate) fn played_first(&self) -> u64 {
        self.played(ROUNDS_PLAYED).0
    }

    /// How many micro-batches are played: all, or two numbers a round apart, the first so many
    /// rounds long, whose difference repeats.
    fn played(&self, rounds: u64) -> (u64, Option<u64>) {
        let depth = u64::from(self.layout.pipeline);
        let round = match self.layout.schedule {
            Schedule::DualPipe => 2 * depth,
            _ => depth,
        };
        let least = rounds * round;
        if self.micro_batches <= least + 2 * round {
            return (self.micro_batches, None);
        }
        let first = least + self.micro_batches % round;
        (first, Some(first + round))
    }
}

/// Whether a round more takes as long as the busiest stage needs for it. Before that, slack of the
/// first rounds is still being used up.
fn has_settled(first: &PipelineTimes, later: &PipelineTimes) -> bool {
    let end = |times: &PipelineTimes| times.computed.iter().max().copied().unwrap_or_default();
    let busy = first.busy.iter().zip(&later.busy).map(|(first, later)| *later - *first);
    end(later) - end(first) >= busy.max().unwrap_or_default()
}

fn count(micro_batches: u64) -> Result<u32> {
    u32::try_from(micro_batches).map_err(|_| {
        InputError::new(format!("{micro_batches} micro-batches are more than can be played"))
    })
}
