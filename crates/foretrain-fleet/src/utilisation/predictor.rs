//! Trees for utilisation and memory, and what they may be asked.

use foretrain_core::stats::quantile;
use foretrain_core::words::{counted, of_number};
use foretrain_core::{Bytes, InputError, Result};
use foretrain_cost::boost::{BoostOptions, Regressor, Table};
use serde::{Deserialize, Serialize};

use super::MeasuredJob;
use super::evaluate::held_out;
use super::features::{COUNT, Features, NAMES};

/// Trees of a fixed, moderate size: they are not tuned to any table.
const BOOST: BoostOptions =
    BoostOptions { trees: 120, depth: 4, rate: 0.1, least_rows: 10, ridge: 1.0, bins: 64 };
/// Fewer jobs tell nothing.
const LEAST_JOBS: usize = 30;

/// What a predictor was fitted to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainedOn {
    /// Jobs.
    pub jobs: usize,
    /// Families of jobs.
    pub families: usize,
    /// What was measured, in words: kinds of models, device.
    pub about: String,
    /// Under which licence the jobs are, empty if that is the user's own affair.
    #[serde(default)]
    pub licence: String,
}

impl TrainedOn {
    /// Why a file was not written by a training, if so.
    pub(super) fn defect(&self) -> Option<String> {
        let Self { jobs, families, .. } = self;
        let is_possible = *jobs >= LEAST_JOBS && (1..=*jobs).contains(families);
        (!is_possible).then(|| {
            format!(
                "{} of {families} {}; expected at least {LEAST_JOBS} jobs of at least one",
                counted(*jobs, "job"),
                of_number(*families, "family", "families")
            )
        })
    }
}

/// Trees with the ranges they were fitted to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Predictor {
    features: Vec<String>,
    least: Vec<f64>,
    most: Vec<f64>,
    /// Of the logarithm of one plus the utilisation in percent.
    utilisation: Regressor,
    /// Of the logarithm of the memory in MiB, if that was measured.
    memory: Option<Regressor>,
    /// What was left of `ln(1 + utilisation)` in families that were not fitted: the 0.1 and 0.9
    /// quantile; `None` where there was one family only.
    left: Option<[f64; 2]>,
    /// The same of the logarithm of the memory.
    memory_left: Option<[f64; 2]>,
}

/// The most likely value and where 8 of 10 values lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The value.
    pub value: f64,
    /// Lower end; the whole range of what is possible where nothing better is known.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// What a predictor says of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// Part of the time in which the GPU runs anything, percent.
    pub utilisation: Interval,
    /// Memory in bytes, if the measured jobs tell.
    pub memory: Option<Interval>,
    /// Features outside of what was measured, with their value and the range. Trees say the same
    /// beyond a range as at its end, so then the interval of the utilisation is all that is
    /// possible.
    pub outside: Vec<(&'static str, f64, [f64; 2])>,
}

/// The two regressors before their errors are known.
pub(super) struct Trees {
    utilisation: Regressor,
    memory: Option<Regressor>,
}

const MIB: f64 = (1 << 20) as f64;
/// Memory of a measured job that is believed, MiB: 2 TiB is several times the largest device.
pub(super) const MOST_MIB: f64 = (1 << 21) as f64;
/// The most that trees may say, MiB: they overshoot what was measured by a small factor.
const MOST_TOLD_MIB: f64 = (1 << 24) as f64;

impl Trees {
    pub(super) fn fit(jobs: &[&MeasuredJob]) -> Self {
        let mut rows = Table::new(COUNT);
        for job in jobs {
            rows.push(&job.features.vector());
        }
        let ones = vec![1.0; jobs.len()];
        let busy: Vec<f64> = jobs.iter().map(|job| job.utilisation.ln_1p()).collect();
        // Jobs whose memory is not known count for nothing.
        let memory =
            |job: &&MeasuredJob| job.memory.map_or(f64::NAN, |bytes| (bytes.as_f64() / MIB).ln());
        let memory: Vec<f64> = jobs.iter().map(memory).collect();
        let is_known = memory.iter().any(|memory| memory.is_finite());
        Self {
            utilisation: Regressor::fit(&rows, &busy, &ones, &BOOST),
            memory: is_known.then(|| Regressor::fit(&rows, &memory, &ones, &BOOST)),
        }
    }

    /// Percent.
    pub(super) fn utilisation(&self, features: &Features) -> f64 {
        self.utilisation.predict(&features.vector()).exp_m1().clamp(0.0, 100.0)
    }

    /// Bytes.
    pub(super) fn memory(&self, features: &Features) -> Option<f64> {
        Some(self.memory.as_ref()?.predict(&features.vector()).exp() * MIB)
    }
}

impl Predictor {
    /// Fits to measured jobs. How far off it is in families that it has not seen is found by
    /// leaving out each in turn.
    ///
    /// # Errors
    /// If there are too few jobs, or trees learn nonsense of them.
    pub fn fit(jobs: &[MeasuredJob]) -> Result<Self> {
        if jobs.len() < LEAST_JOBS {
            let message = {
                let found = counted(jobs.len(), "measured job");
                format!("{found}; expected at least {LEAST_JOBS}")
            };
            return Err(
                InputError::new(message).hint("measure more, of different models and batches")
            );
        }
        let all: Vec<&MeasuredJob> = jobs.iter().collect();
        let trees = Trees::fit(&all);
        let families: Vec<&str> = jobs.iter().map(|job| job.family.as_str()).collect();
        let mut left = (Vec::new(), Vec::new());
        for (job, told) in jobs.iter().zip(held_out(jobs, &families)) {
            let Some(told) = told else { continue };
            left.0.push(job.utilisation.ln_1p() - told.utilisation.ln_1p());
            if let (Some(bytes), Some(told)) = (job.memory, told.memory) {
                left.1.push((bytes.as_f64() / told).ln());
            }
        }
        let ends = |left: &[f64]| Some([quantile(left, 0.1)?, quantile(left, 0.9)?]);
        let column = |at: usize| jobs.iter().map(move |job| job.features.vector()[at]);
        let predictor = Self {
            features: NAMES.map(Into::into).to_vec(),
            least: (0..COUNT).map(|at| column(at).fold(f64::INFINITY, f64::min)).collect(),
            most: (0..COUNT).map(|at| column(at).fold(f64::NEG_INFINITY, f64::max)).collect(),
            utilisation: trees.utilisation,
            memory: trees.memory,
            left: ends(&left.0),
            memory_left: ends(&left.1),
        };
        // What could not be read again is not worth a file.
        match predictor.defect() {
            Some((what, why)) => Err(InputError::new(format!("the jobs teach nothing: {why}"))
                .at(what)
                .hint("look for figures in the table that are off by powers of ten")),
            None => Ok(predictor),
        }
    }

    /// What is to be expected of a job.
    pub fn predict(&self, features: &Features) -> Prediction {
        let vector = features.vector();
        let outside = NAMES.iter().enumerate().filter_map(|(at, &name)| {
            let range = [self.least[at], self.most[at]];
            let is_inside = (range[0]..=range[1]).contains(&vector[at]);
            (!is_inside).then_some((name, vector[at], range))
        });
        let outside: Vec<_> = outside.collect();
        let told = self.utilisation.predict(&vector);
        let percent = |log: f64| log.exp_m1().clamp(0.0, 100.0);
        let [low, high] = match self.left {
            Some([low, high]) if outside.is_empty() => [percent(told + low), percent(told + high)],
            _ => [0.0, 100.0],
        };
        let value = percent(told);
        let utilisation = Interval { value, low: low.min(value), high: high.max(value) };
        let memory = self.memory.as_ref().map(|trees| {
            let value = trees.predict(&vector).exp() * MIB;
            let [low, high] = match self.memory_left {
                Some(ends) if outside.is_empty() => {
                    ends.map(|left| (value * left.exp()).min(MOST_TOLD_MIB * MIB))
                }
                _ => [0.0, f64::MAX],
            };
            Interval { value, low: low.min(value), high: high.max(value) }
        });
        Prediction { utilisation, memory, outside }
    }

    /// Why a predictor from a file cannot be used, if so, and where: a file may hold anything.
    pub(super) fn defect(&self) -> Option<(&'static str, String)> {
        if self.features != NAMES {
            return Some(("features", format!("its features are {}", self.features.join(", "))));
        }
        let is_finite = |list: &[f64]| list.len() == COUNT && list.iter().all(|v| v.is_finite());
        if !is_finite(&self.least) || !is_finite(&self.most) {
            let why = "its ranges are not one finite number for each feature";
            return Some(("least, most", why.into()));
        }
        for ((name, least), most) in NAMES.iter().zip(&self.least).zip(&self.most) {
            if !(0.0..=*most).contains(least) {
                return Some(("least, most", format!("{name} goes from {least} to {most}")));
            }
        }
        let busy = defect_of(&self.utilisation, self.left, &BUSY).map(|why| ("utilisation", why));
        busy.or_else(|| {
            let Some(trees) = &self.memory else {
                let why = || "errors of a memory that it does not tell".into();
                return self.memory_left.map(|_| ("memory_left", why()));
            };
            Some(("memory", defect_of(trees, self.memory_left, &MEMORY)?))
        })
    }
}

/// Logarithms that trees may say, and what they stand for.
struct Bounds {
    /// What measured jobs can have.
    measured: [f64; 2],
    /// What no sum of leaves may leave.
    told: [f64; 2],
    say: fn(f64) -> String,
}

/// Trees that were fitted overshoot the measured jobs by a part of their range. Past the ends it is
/// cut off.
const BUSY: Bounds = Bounds {
    measured: [0.0, 4.615_120_517],
    told: [-4.615_120_517, 2.0 * 4.615_120_517],
    say: |log| match log.exp_m1() {
        percent if percent < 1e9 => format!("{percent:.4} % of utilisation"),
        _ => "over a billion percent of utilisation".into(),
    },
};

/// From one KiB to [`MOST_TOLD_MIB`].
const MEMORY: Bounds = Bounds {
    measured: [0.0, 14.556_090_792],
    told: [-6.931_471_806, 16.635_532_333],
    say: |log| format!("{} of memory", Bytes::from_f64(log.exp() * MIB)),
};

/// Errors, as logarithms, are no larger than what two measured jobs can be apart.
fn defect_of(trees: &Regressor, left: Option<[f64; 2]>, bounds: &Bounds) -> Option<String> {
    if let Err(error) = trees.check(COUNT) {
        return Some(error.message().to_owned());
    }
    let within = |[least, most]: [f64; 2], value: f64| (least..=most).contains(&value);
    if trees.constant().is_some() {
        return Some("it has no trees".into());
    }
    let Bounds { measured, told, say } = bounds;
    // A mean of logarithms that can be measured is one of them. Files hold singles.
    if !within([measured[0] - 1e-5, measured[1] + 1e-5], trees.base()) {
        let [low, high] = measured.map(say);
        return Some(format!("its mean is {}; expected {low} to {high}", say(trees.base())));
    }
    let (least, most) = trees.reach();
    if let Some(wrong) = [least, most].into_iter().find(|end| !within(*told, *end)) {
        let [low, high] = told.map(say);
        return Some(format!("its trees may say {}; expected {low} to {high}", say(wrong)));
    }
    let widest = measured[1] - measured[0];
    let is_sound = |[low, high]: [f64; 2]| {
        low <= high && within([-widest, widest], low) && within([-widest, widest], high)
    };
    let [low, high] = left.filter(|ends| !is_sound(*ends))?;
    Some(format!("its errors go from {low} to {high}; expected at most {widest:.2} either way"))
}
