//! A chunk's passes: its layers one after the other.

use foretrain_core::{Bytes, Nanos};
use foretrain_workload::model::Role;

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
    /// Its layers in forward order, with their shares of the passes.
    pub units: Vec<Unit>,
    /// Kept from forward to backward.
    pub kept: Bytes,
    /// What leaves it for the next chunk.
    pub boundary: Bytes,
}

/// One layer of a chunk. Times include its share of waiting for launches, but neither gathers nor
/// reductions of divided parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unit {
    /// Which of the differing layers.
    pub layer: usize,
    /// How many body layers of the chunk come before it.
    pub nth: u32,
    /// Forward.
    pub forward: Nanos,
    /// Backward, with what is formed again.
    pub backward: Nanos,
    /// Gradients of the weights, where they are apart.
    pub weights: Nanos,
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
            let is_body = layer.role == Role::Body;
            for within in 0..run.count {
                let nth = body + if is_body { within } else { 0 };
                let mut again = layer.again(layout.recompute, nth);
                again.parts = again.parts.as_recompute();
                chunk.units.push(Unit {
                    layer: run.layer,
                    nth,
                    forward: layer.forward.parts.total(),
                    backward: backward.parts.total() + again.parts.total(),
                    weights: if splits { layer.weights.parts.total() } else { Nanos::ZERO },
                });
                // The interpreter drives these, not the backward pass.
                paused += pace.forward.scale(again.launches as f64);
                again.launches = 0;
                chunk.backward += again;
                if layer.is_formed_again(layout.recompute, nth) {
                    paused += pace.per_checkpoint;
                }
                chunk.kept += layer.kept(layout.recompute, nth);
            }
            if is_body {
                body += run.count;
                chunk.boundary = layer.boundary;
            }
        }
        chunk.forward = chunk.forward.paced(pace.forward, pace.per_pass);
        chunk.backward = chunk.backward.paced(pace.backward, pace.per_pass + paused);
        if splits {
            chunk.weights = chunk.weights.paced(pace.backward, Nanos::ZERO);
        }
        chunk.stretch_units();
        if layout.sharding >= Sharding::Gradients {
            chunk.gather(layers, splits);
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

    /// Spreads waiting for launches over the layers in proportion to their own time.
    fn stretch_units(&mut self) {
        let stretch = |units: &mut [Unit], whole: Nanos, of: fn(&mut Unit) -> &mut Nanos| {
            let sum: Nanos = units.iter_mut().map(|unit| *of(unit)).sum();
            if whole > sum && sum > Nanos::ZERO {
                let factor = whole.nanos() as f64 / sum.nanos() as f64;
                for unit in units {
                    let time = of(unit);
                    *time = time.scale(factor);
                }
            }
        };
        let units = &mut self.units;
        stretch(units, self.forward.parts.total(), |unit| &mut unit.forward);
        stretch(units, self.backward.parts.total(), |unit| &mut unit.backward);
        stretch(units, self.weights.parts.total(), |unit| &mut unit.weights);
    }

    /// Adds what gathering parameters layer by layer, and reducing their gradients, leaves exposed.
    fn gather(&mut self, layers: &[LayerCost], splits: bool) {
        let exposed = gathered_forward(&self.units, layers);
        self.forward.parts[Part::ParameterGather] += exposed;
        let (gather, scatter) = gathered_backward(&self.units, layers, splits);
        self.backward.parts[Part::ParameterGather] += gather;
        let last = if splits { &mut self.weights } else { &mut self.backward };
        last.parts[Part::GradientSync] += scatter;
    }
}

/// Layers whose parameters may be gathered ahead of the one at work.
pub(crate) const AHEAD: usize = 2;

/// Waiting of a forward pass for its parameters. Gathers follow each other, at most [`AHEAD`] of
/// the layer at work.
fn gathered_forward(units: &[Unit], layers: &[LayerCost]) -> Nanos {
    let (mut gathered, mut done, mut waited) = (Nanos::ZERO, Nanos::ZERO, Nanos::ZERO);
    let mut ends = [Nanos::ZERO; AHEAD];
    for (nth, unit) in units.iter().enumerate() {
        gathered = gathered.max(ends[nth % AHEAD]) + layers[unit.layer].gather;
        waited += (gathered - done).clamp_positive();
        done = done.max(gathered) + unit.forward;
        ends[nth % AHEAD] = done;
    }
    waited
}

/// Waiting of a backward pass for its parameters, and what the reductions run on after it. The two
/// share a queue: the next layer's gather goes before this layer's reduction. Where gradients of
/// weights are apart, reductions belong to their pass.
fn gathered_backward(units: &[Unit], layers: &[LayerCost], splits: bool) -> (Nanos, Nanos) {
    let (mut queue, mut done, mut waited) = (Nanos::ZERO, Nanos::ZERO, Nanos::ZERO);
    let mut gathered = units.last().map_or(Nanos::ZERO, |unit| layers[unit.layer].gather);
    queue += gathered;
    for (at, unit) in units.iter().enumerate().rev() {
        waited += (gathered - done).clamp_positive();
        let start = done.max(gathered);
        done = start + unit.backward;
        let next = at.checked_sub(1).map(|next| &layers[units[next].layer]);
        if let Some(next) = next.filter(|next| next.gather > Nanos::ZERO) {
            queue = queue.max(start) + next.gather;
            gathered = queue;
        }
        if !splits {
            queue = queue.max(done) + layers[unit.layer].scatter;
        }
    }
    if splits {
        return (waited, reduced_after(units, layers));
    }
    (waited, (queue - done).clamp_positive())
}

/// What reductions run on after a pass of weight gradients alone.
fn reduced_after(units: &[Unit], layers: &[LayerCost]) -> Nanos {
    let (mut queue, mut done) = (Nanos::ZERO, Nanos::ZERO);
    for unit in units.iter().rev() {
        done += unit.weights;
        queue = queue.max(done) + layers[unit.layer].scatter;
    }
    (queue - done).clamp_positive()
}
