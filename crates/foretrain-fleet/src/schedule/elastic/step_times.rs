//! How long a step takes at a size.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

use foretrain_core::{InputError, Result};

use super::fit::{Curve, fit};

/// One measured step.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// GPUs on each node.
    pub per_node: Vec<u32>,
    /// Samples per GPU.
    pub local: u64,
    /// Seconds of a step, synchronisation included.
    pub step: f64,
    /// Seconds that synchronisation adds to it.
    pub sync: f64,
}

/// Samples per GPU, seconds of a step and of its synchronisation.
type Timed = (u64, f64, f64);
/// GPUs, nodes, samples per GPU.
type Asked = (u32, u32, u64);

/// Steps that were measured, and a curve through them for all other sizes.
#[derive(Debug)]
pub struct StepTimes {
    curve: Curve,
    /// By placement in its normal form: samples per GPU, ascending, with step and synchronisation.
    placed: BTreeMap<Vec<u32>, Vec<Timed>>,
    /// Even placements that were asked for already, by GPUs, nodes and samples: policies ask often.
    even: RwLock<BTreeMap<Asked, (f64, f64)>>,
}

impl StepTimes {
    /// From measured steps.
    ///
    /// # Errors
    /// If there is none, or one has no GPUs, no samples or a time that is not positive.
    pub fn new(steps: &[Measured]) -> Result<Self> {
        let mut placed: BTreeMap<Vec<u32>, Vec<Timed>> = BTreeMap::new();
        for (row, step) in steps.iter().enumerate() {
            let times = step.step.is_finite() && step.step > 0.0 && step.sync >= 0.0;
            let sized = step.per_node.iter().all(|gpus| *gpus > 0) && !step.per_node.is_empty();
            if !times || !sized || step.local == 0 || step.sync > step.step {
                return Err(InputError::new(
                    "a measured step needs GPUs, samples, and a time that is longer than its \
                     synchronisation",
                )
                .at(format!("step {}", row + 1)));
            }
            let times = (step.local, step.step, step.sync);
            placed.entry(normal(&step.per_node)).or_default().push(times);
        }
        for times in placed.values_mut() {
            times.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        }
        let curve = fit(steps).ok_or_else(|| InputError::new("there are no measured steps"))?;
        Ok(Self { curve, placed, even: RwLock::default() })
    }

    /// Seconds of a step and of its synchronisation by the curve.
    pub fn curve(&self, gpus: u32, nodes: u32, local: u64) -> (f64, f64) {
        self.curve.step(gpus, nodes, local)
    }

    /// Seconds of a step and of its synchronisation on GPUs that are placed just so: as measured, on a
    /// line between measured numbers of samples; elsewhere by the curve, as far off as it is at the
    /// nearest size that was measured.
    pub fn placed(&self, per_node: &[u32], local: u64) -> (f64, f64) {
        let own = self.placed.get(&normal(per_node));
        if let Some(times) = own.and_then(|times| between(times, local)) {
            return times;
        }
        let (gpus, nodes) = (per_node.iter().sum::<u32>(), per_node.len() as u32);
        let (step, sync) = self.curve.step(gpus, nodes, local);
        let factor = self.nearest(gpus, nodes).map_or(1.0, |(at, times)| {
            let inside = local.clamp(times[0].0, times[times.len() - 1].0);
            let by_curve = self.curve.step(at.iter().sum(), at.len() as u32, inside).0;
            between(times, inside).map_or(1.0, |(measured, _)| measured / by_curve)
        });
        (step * factor, sync * factor)
    }

    /// The same on GPUs that are spread over nodes as evenly as they can be.
    pub fn even(&self, gpus: u32, nodes: u32, local: u64) -> (f64, f64) {
        let nodes = nodes.clamp(1, gpus.max(1));
        let asked = (gpus, nodes, local);
        let known = self.even.read().unwrap_or_else(PoisonError::into_inner).get(&asked).copied();
        known.unwrap_or_else(|| {
            let share = |node: u32| gpus / nodes + u32::from(node < gpus % nodes);
            let per_node: Vec<u32> = (0..nodes).map(share).collect();
            let times = self.placed(&per_node, local);
            self.even.write().unwrap_or_else(PoisonError::into_inner).insert(asked, times);
            times
        })
    }

    fn nearest(&self, gpus: u32, nodes: u32) -> Option<(&Vec<u32>, &Vec<Timed>)> {
        let distance = |at: &[u32]| {
            let ratio = |a: u32, b: u32| (f64::from(a) / f64::from(b.max(1))).ln().abs();
            // That a job is on one node or on several matters most.
            let crosses = if (at.len() > 1) == (nodes > 1) { 0.0 } else { 10.0 };
            ratio(at.iter().sum(), gpus) + ratio(at.len() as u32, nodes) + crosses
        };
        self.placed.iter().min_by(|a, b| distance(a.0).total_cmp(&distance(b.0)))
    }
}

/// Nodes are alike and in a ring: the smallest rotation stands for all.
fn normal(per_node: &[u32]) -> Vec<u32> {
    let rotations = (0..per_node.len()).map(|first| {
        let (head, tail) = per_node.split_at(first);
        [tail, head].concat()
    });
    rotations.min().unwrap_or_default()
}

/// On the line between two measured numbers of samples; `None` outside of all.
fn between(times: &[Timed], local: u64) -> Option<(f64, f64)> {
    let above = times.partition_point(|(samples, ..)| *samples < local);
    let &(high, step, sync) = times.get(above)?;
    if high == local {
        return Some((step, sync));
    }
    let &(low, step_below, sync_below) = times.get(above.checked_sub(1)?)?;
    let part = (local - low) as f64 / (high - low) as f64;
    Some((step_below + (step - step_below) * part, sync_below + (sync - sync_below) * part))
}
