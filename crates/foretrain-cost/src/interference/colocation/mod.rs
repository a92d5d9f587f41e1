//! Whole jobs that share one device.
//!
//! A job launches about as many kernels per step whatever its batch, so the time that launching
//! takes (its step time at the smallest batch, where the device idles) counts its kernels, and the
//! device time of a step over it tells how long a kernel is compared with those of other jobs.
//! Where kernels of several jobs take turns, each kernel of one waits for one of the other: the
//! victim's device time grows by as many *aggressor* kernels as it has kernels itself. Idle time
//! of the victim absorbs that first.

mod family;
mod fit;
#[cfg(test)]
mod tests;

use foretrain_core::Nanos;
use serde::{Deserialize, Serialize};

use super::other_features;
use crate::boost::Regressor;

pub use family::loads_of_family;
pub use fit::{Measured, fit};

/// One job as it runs alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JobLoad {
    /// Time of a step.
    pub step: Nanos,
    /// Part of it in which the device works, 0 to 1: its utilisation.
    pub busy: f64,
    /// The least a step of this model takes on the device, however small the batch.
    pub launch: Nanos,
}

/// How the device is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sharing {
    /// Processes get slices of time in turn, as without MPS.
    TimeSliced,
    /// Kernels of all processes are queued together, as under NVIDIA's MPS.
    Mps,
}

/// The two constants of the formula.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turns {
    /// How much longer busy jobs of equal kernels take beside each other: 1 for twice as long.
    pub cost: f64,
    /// How much the relative length of kernels counts: 0 where turns are equally long whatever
    /// the kernels, 1 where a turn is a kernel.
    pub size_exponent: f64,
}

/// A model of co-located jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColocationModel {
    /// Where processes share in slices of time.
    pub time_sliced: Turns,
    /// Where their kernels are queued together.
    pub mps: Turns,
    features: Vec<String>,
    /// What the formula leaves over in slices of time.
    trees: Regressor,
}

/// What the trees see of a victim and its aggressor, in order. No time is among them: of a device
/// that nobody measured they are as good.
const FEATURES: [&str; 4] = ["log_formula", "busy", "busy_other", "log_kernel_ratio"];

/// Nobody waits longer than this many times: beyond it measurements tell of other causes.
const MOST_SLOWDOWN: f64 = 16.0;

impl ColocationModel {
    /// How many times longer `victim`'s step takes while `others` run on its device, at least 1.
    pub fn slowdown(&self, victim: &JobLoad, others: &[JobLoad], sharing: Sharing) -> f64 {
        let turns = match sharing {
            Sharing::TimeSliced => self.time_sliced,
            Sharing::Mps => self.mps,
        };
        let by_formula = turns.slowdown(victim, others);
        if sharing == Sharing::Mps {
            return by_formula;
        }
        // The trees know pairs: they see the aggressor that costs most.
        let cost = |other: &&JobLoad| turns.slowdown(victim, std::slice::from_ref(*other));
        let worst = others.iter().max_by(|a, b| cost(a).total_cmp(&cost(b)));
        let Some(worst) = worst else { return 1.0 };
        let over = self.trees.predict(&features(victim, worst, by_formula));
        (by_formula * over.exp()).clamp(1.0, MOST_SLOWDOWN)
    }

    /// The formula without trees.
    pub fn by_formula(&self, victim: &JobLoad, others: &[JobLoad], sharing: Sharing) -> f64 {
        match sharing {
            Sharing::TimeSliced => self.time_sliced.slowdown(victim, others),
            Sharing::Mps => self.mps.slowdown(victim, others),
        }
    }

    /// What cannot be used, a lowercase fragment.
    pub(super) fn defect(&self) -> Option<String> {
        if let Some(defect) = other_features(&self.features, &FEATURES) {
            return Some(defect);
        }
        for turns in [self.time_sliced, self.mps] {
            if !(0.0..=10.0).contains(&turns.cost) || !(0.0..=2.0).contains(&turns.size_exponent) {
                return Some(format!(
                    "turns cost {} with exponent {}; expected 0 to 10 and 0 to 2",
                    turns.cost, turns.size_exponent
                ));
            }
        }
        self.trees.check(FEATURES.len()).err().map(|error| error.message().to_owned())
    }
}

impl Turns {
    fn slowdown(&self, victim: &JobLoad, others: &[JobLoad]) -> f64 {
        let wait =
            |other: &JobLoad| self.cost * kernel_ratio(victim, other).powf(self.size_exponent);
        let waits: f64 = others.iter().map(wait).sum();
        let busy = clean(victim.busy);
        (busy * (1.0 + waits)).clamp(1.0, MOST_SLOWDOWN)
    }
}

/// Length of the other's kernels over the victim's.
fn kernel_ratio(victim: &JobLoad, other: &JobLoad) -> f64 {
    let kernel = |job: &JobLoad| {
        let step = job.step.nanos().max(1) as f64;
        let launch = (job.launch.nanos().max(1) as f64).min(step);
        clean(job.busy).max(1e-3) * step / launch
    };
    kernel(other) / kernel(victim)
}

fn clean(busy: f64) -> f64 {
    if busy.is_finite() { busy.clamp(0.0, 1.0) } else { 1.0 }
}

fn features(victim: &JobLoad, other: &JobLoad, by_formula: f64) -> [f64; FEATURES.len()] {
    [by_formula.ln(), clean(victim.busy), clean(other.busy), kernel_ratio(victim, other).ln()]
}
