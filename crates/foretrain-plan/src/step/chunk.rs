//! A chunk's passes: its layers one after the other.

use foretrain_core::{Bytes, Nanos};

use super::host::Host;
use super::layer::{LayerCost, Pace};
use crate::cut::Run;
use crate::layout::{Layout, Sharding};
use crate::times::{Part, PassTime};

/// What a chunk of layers costs a rank in one micro-batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChunkCost {
    /// Forward.
    pub forward: PassTime,
    /// Backward: both gradients, or that of the inputs where the schedule splits them, with what is
    /// formed again.
    pub backward: PassTime,
    /// Gradients of the weights, where they are apart.
    pub weights: PassTime,
    /// Kept from forward to backward.
    pub kept: Bytes,
    /// What leaves it for the next chunk.
    pub boundary: Bytes,
}

impl ChunkCost {
    /// Of `runs` of layers.
    pub(super) fn of(
        runs: &[Run],
        layers: &[LayerCost],
        layout: &Layout,
        pace: Pace,
        host: &Host,
    ) -> Self {
        let mut chunk = Self::default();
        let splits = layout.schedule.splits_backward();
        let mut body = 0;
        let mut paused = Nanos::ZERO;
        for run in runs {
            let layer = &layers[run.layer];
            let count = u64::from(run.count);
            let backward = if splits { layer.inputs } else { layer.backward };
            chunk.forward += layer.forward.times(count);
            chunk.backward += backward.times(count);
            if splits {
                chunk.weights += layer.weights.times(count);
            }
            for nth in body..body + run.count {
                let mut again = layer.again(layout.recompute, nth);
                again.parts = again.parts.as_recompute();
                // The interpreter drives these, not the backward pass.
                paused += pace.forward.scale(again.launches as f64);
                again.launches = 0;
                chunk.backward += again;
                if layer.is_formed_again(layout.recompute, nth) {
                    paused += pace.per_checkpoint;
                }
                chunk.kept += layer.kept(layout.recompute, nth);
            }
            if layer.role == foretrain_workload::model::Role::Body {
                body += run.count;
                chunk.boundary = layer.boundary;
            }
        }
        chunk.forward = chunk.forward.paced(pace.forward, pace.per_pass);
        chunk.backward = chunk.backward.paced(pace.backward, pace.per_pass + paused);
        if splits {
            chunk.weights = chunk.weights.paced(pace.backward, Nanos::ZERO);
        }
        if layout.sharding == Sharding::Parameters {
            chunk.gather(runs, layers);
        }
        if layout.offload_activations {
            // Copied out beside the forward pass and back beside the backward pass.
            let copies = chunk.kept / host.copy_bandwidth;
            for pass in [&mut chunk.forward, &mut chunk.backward] {
                let exposed = (copies - pass.parts.total()).clamp_positive();
                pass.parts[Part::Offload] += exposed;
            }
        }
        chunk
    }

    /// Adds what gathering parameters layer by layer, and reducing their gradients, leaves exposed.
    fn gather(&mut self, runs: &[Run], layers: &[LayerCost]) {
        let forward = Stretch::of(&self.forward, layers, runs, |layer| layer.forward.parts.total());
        let units = units(runs);
        let exposed = gathered_forward(units.clone(), layers, forward);
        self.forward.parts[Part::ParameterGather] += exposed;
        let own = |layer: &LayerCost| layer.backward.parts.total();
        let backward = Stretch::of(&self.backward, layers, runs, own);
        let (gather, scatter) = gathered_backward(units, layers, backward);
        self.backward.parts[Part::ParameterGather] += gather;
        self.backward.parts[Part::GradientSync] += scatter;
    }
}

/// Layers one by one.
fn units(runs: &[Run]) -> impl DoubleEndedIterator<Item = usize> + Clone + '_ {
    runs.iter().flat_map(|run| std::iter::repeat_n(run.layer, run.count as usize))
}

/// A pass's time (with recomputation and waiting for launches) in proportion to its layers' own.
#[derive(Clone, Copy)]
pub(super) struct Stretch<F> {
    factor: f64,
    own: F,
}

impl<F: Fn(&LayerCost) -> Nanos> Stretch<F> {
    pub(super) fn of(pass: &PassTime, layers: &[LayerCost], runs: &[Run], own: F) -> Self {
        let sum: Nanos = units(runs).map(|layer| own(&layers[layer])).sum();
        let factor = if sum > Nanos::ZERO {
            pass.parts.total().nanos() as f64 / sum.nanos() as f64
        } else {
            0.0
        };
        Self { factor, own }
    }
    pub(super) fn time(&self, layer: &LayerCost) -> Nanos {
        (self.own)(layer).scale(self.factor)
    }
}

/// Layers whose parameters may be gathered ahead of the one at work.
const AHEAD: usize = 2;

/// Waiting of a forward pass for its parameters. Gathers follow each other, at most [`AHEAD`] of
/// the layer at work.
fn gathered_forward<F: Fn(&LayerCost) -> Nanos>(
    units: impl Iterator<Item = usize>,
    layers: &[LayerCost],
    time: Stretch<F>,
) -> Nanos {
    let (mut gathered, mut done, mut waited) = (Nanos::ZERO, Nanos::ZERO, Nanos::ZERO);
    let mut ends = [Nanos::ZERO; AHEAD];
    for (nth, unit) in units.enumerate() {
        let layer = &layers[unit];
        gathered = gathered.max(ends[nth % AHEAD]) + layer.gather;
        waited += (gathered - done).clamp_positive();
        done = done.max(gathered) + time.time(layer);
        ends[nth % AHEAD] = done;
    }
    waited
}

/// Waiting of a backward pass for its parameters, and what the reductions run on after it. The two
/// share a queue: the next layer's gather goes before this layer's reduction.
fn gathered_backward<F: Fn(&LayerCost) -> Nanos>(
    units: impl DoubleEndedIterator<Item = usize>,
    layers: &[LayerCost],
    time: Stretch<F>,
) -> (Nanos, Nanos) {
    let mut units = units.rev().map(|unit| &layers[unit]).peekable();
    let (mut queue, mut done, mut waited) = (Nanos::ZERO, Nanos::ZERO, Nanos::ZERO);
    let mut gathered = units.peek().map_or(Nanos::ZERO, |layer| layer.gather);
    queue += gathered;
    while let Some(layer) = units.next() {
        waited += (gathered - done).clamp_positive();
        let start = done.max(gathered);
        done = start + time.time(layer);
        if let Some(next) = units.peek() {
            queue = queue.max(start) + next.gather;
            gathered = queue;
        }
        queue = queue.max(done) + layer.scatter;
    }
    (waited, (queue - done).clamp_positive())
}
