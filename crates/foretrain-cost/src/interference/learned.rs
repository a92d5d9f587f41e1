//! The formula, corrected by boosted trees.

use foretrain_core::Nanos;
use serde::{Deserialize, Serialize};

use super::activity::Beside;
use super::analytic::{Analytic, bound, kernels_memory_use};
use super::{Activity, DeviceLimits, KernelLoad, SlowdownModel, TransferLoad, other_features};
use crate::boost::{BoostOptions, Regressor, Table};

/// What the trees see of a kernel and the communication beside it, in order.
pub const FEATURES: [&str; 9] = [
    "log_alone_ns",
    "log_blocks",
    "log_fill",
    "memory_share",
    "log_formula",
    "held_share",
    "comm_memory_use",
    "moving",
    "log_comm_ns",
];

/// A kernel that was recorded alone and beside communication.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OverlapSample {
    /// The device.
    pub device: DeviceLimits,
    /// The kernel; its time alone is the median of its isolated runs.
    pub kernel: KernelLoad,
    /// The communication beside it.
    pub beside: TransferLoad,
    /// Part of the recorded run that was overlapped, above 0 to 1.
    pub overlapped: f64,
    /// How long it took.
    pub recorded: Nanos,
}

impl OverlapSample {
    /// The slow-down while overlapped: 1 + (t - t_alone) / (r t_alone). Below 1 where chance made
    /// the overlapped run the shorter one; NaN without a time alone or an overlap.
    pub fn slowdown(&self) -> f64 {
        let alone = self.kernel.alone.nanos() as f64;
        1.0 + (self.recorded.nanos() as f64 - alone) / (self.overlapped * alone)
    }

    /// The time that a slow-down while overlapped gives.
    pub fn time_at(&self, slowdown: f64) -> Nanos {
        self.kernel.alone.scale(1.0 + self.overlapped * (slowdown - 1.0))
    }

    /// The time that a model gives.
    pub fn predict(&self, model: &dyn SlowdownModel) -> Nanos {
        let running = [Activity::Kernel(self.kernel), Activity::Transfer(self.beside)];
        let mut slowdowns = [1.0; 2];
        model.slowdowns(&self.device, &running, &mut slowdowns);
        self.time_at(slowdowns[0])
    }
}

/// The formula times e to the sum of trees, held between no slow-down and serial execution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Learned {
    pub(super) formula: Analytic,
    pub(super) features: Vec<String>,
    pub(super) trees: Regressor,
}

/// Shallow, few and slow: traces that hold a kernel both alone and overlapped are rare, and rows of
/// one trace are alike.
const BOOST: BoostOptions =
    BoostOptions { trees: 60, depth: 2, rate: 0.1, least_rows: 20, ridge: 20.0, bins: 32 };

/// Labels beyond this factor from the formula are cut: a few runs that met something else must not
/// decide.
const MOST_CORRECTION: f64 = 2.0;

impl Learned {
    /// Fits trees to what `formula` leaves over. Each sample counts by its weight.
    ///
    /// # Panics
    /// If there are not as many weights as samples.
    pub fn fit(formula: Analytic, samples: &[OverlapSample], weights: &[f64]) -> Self {
        let mut rows = Table::new(FEATURES.len());
        let mut targets = Vec::with_capacity(samples.len());
        for sample in samples {
            let beside = Beside::of(&sample.device, &[Activity::Transfer(sample.beside)]);
            let by_formula = formula.kernel(&sample.kernel, &beside, &sample.device);
            rows.push(&features(&sample.kernel, &beside, &sample.device, by_formula));
            let most = MOST_CORRECTION.ln();
            // No slow-down is the least a model may say, so it is the least worth learning.
            let over = sample.slowdown().max(1.0).ln() - by_formula.ln();
            targets.push(over.clamp(-most, most));
        }
        let trees = Regressor::fit(&rows, &targets, weights, &BOOST);
        let features = FEATURES.map(str::to_owned).to_vec();
        Self { formula, features, trees }
    }

    /// The formula that the trees correct.
    pub fn formula(&self) -> Analytic {
        self.formula
    }

    /// What cannot be used, a lowercase fragment.
    pub(super) fn defect(&self) -> Option<String> {
        if let Some(defect) = other_features(&self.features, &FEATURES) {
            return Some(defect);
        }
        let trees = self.trees.check(FEATURES.len()).err();
        self.formula.defect().or(trees.map(|error| error.message().to_owned()))
    }

    fn kernel(&self, load: &KernelLoad, beside: &Beside, device: &DeviceLimits) -> f64 {
        let by_formula = self.formula.kernel(load, beside, device);
        if !beside.any {
            return by_formula;
        }
        let over = match self.trees.constant() {
            Some(over) => over,
            None => self.trees.predict(&features(load, beside, device, by_formula)),
        };
        (by_formula * over.exp()).clamp(1.0, bound(load, beside))
    }
}

fn features(
    load: &KernelLoad,
    beside: &Beside,
    device: &DeviceLimits,
    by_formula: f64,
) -> [f64; FEATURES.len()] {
    let held = f64::from(beside.held) / f64::from(device.multiprocessors.max(1));
    [
        (load.alone.nanos().max(1) as f64).ln(),
        f64::from(load.blocks).ln_1p(),
        load.fill(device).ln(),
        load.memory_share(),
        by_formula.ln(),
        if device.multiprocessors == 0 { f64::NAN } else { held.min(1.0) },
        beside.memory_use,
        beside.moving,
        (beside.longest.nanos().max(1) as f64).ln(),
    ]
}

impl SlowdownModel for Learned {
    fn slowdowns(&self, device: &DeviceLimits, running: &[Activity], slowdowns: &mut [f64]) {
        let beside = Beside::of(device, running);
        let kernels = kernels_memory_use(device, running);
        for (activity, slowdown) in running.iter().zip(slowdowns) {
            *slowdown = match activity {
                Activity::Kernel(load) => self.kernel(load, &beside, device),
                Activity::Transfer(load) => self.formula.transfer(load.moving(), kernels),
            };
        }
    }
}
