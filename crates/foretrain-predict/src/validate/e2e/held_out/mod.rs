//! Constants of estimates that come from measured runs, found again without the runs that they
//! score.
//!
//! A source is what one publisher measured. Runs of a source are predicted with constants that the
//! other sources give, so that no run has a part in its own prediction.

mod best;
mod rates;
mod spreads;

use rates::Rates;
use spreads::Residual;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use foretrain_core::Result;
use foretrain_core::stats::quantile;
use foretrain_cost::kernels::{Sustained, Width};
use foretrain_hardware::Device;
use foretrain_plan::step::spread::{Causes, SHIPPED};
use foretrain_plan::times::Factors;
use rayon::prelude::*;

use super::case::{Case, Quantity};
use super::runs::Read;
use crate::validate::roots::Root;

/// Where a source's runs are read.
#[derive(Clone, Copy)]
pub(super) struct Reader {
    pub(super) source: &'static str,
    pub(super) read: fn(&Root) -> Result<Option<Read>>,
}

/// A source's runs.
struct Source {
    name: &'static str,
    steps: Vec<Case>,
}

/// All sources under a root, and what was found of them so far.
pub(in crate::validate) struct Sources {
    all: Vec<Source>,
    best: Mutex<BTreeMap<Asked, Option<f64>>>,
    /// Errors of the runs, by source.
    residuals: OnceLock<Vec<Vec<Residual>>>,
    held_out: Mutex<BTreeMap<Option<String>, Arc<HeldOut>>>,
}

/// Runs of a source that its errors are taken from, spread evenly over all of them.
const ASKED: usize = 128;

/// Source, generation, width, and the bits of the values that were held while it was asked.
type Asked = (usize, String, Width, Vec<u64>);

/// What runs are predicted with.
#[derive(Clone, Debug)]
pub(super) struct Constants {
    /// What matrix units keep up under power.
    rates: Rates,
    /// Half-widths of intervals by cause.
    pub(super) spreads: Causes,
}

impl Constants {
    /// What is shipped, for runs that no constant comes from.
    pub(super) fn shipped() -> Self {
        Self { rates: Rates::shipped(), spreads: SHIPPED }
    }

    /// What the device's matrix units keep up.
    pub(super) fn sustained(&self, device: &Device) -> Sustained {
        self.rates.of(device)
    }
}

/// Constants found without one source, and in words.
pub(super) struct HeldOut {
    pub(super) constants: Constants,
    /// The same for runs whose group was calibrated by its first run.
    pub(super) calibrated: Constants,
    found: Vec<Found>,
}

/// What runs tell of one generation and width.
struct Found {
    generation: &'static str,
    width: Width,
    /// Each source's own best value, the one left out not among them.
    from: Vec<(&'static str, f64)>,
}

impl Sources {
    /// Reads all of them; what cannot be read is reported by the set that scores it.
    pub(super) fn read(root: &Root, readers: impl Iterator<Item = Reader>) -> Self {
        let mut cases = BTreeMap::<&'static str, Vec<Case>>::new();
        for Reader { source, read } in readers {
            if let Ok(Some(read)) = read(root) {
                let steps = read.cases.into_iter().filter(|case| case.quantity == Quantity::Step);
                cases.entry(source).or_default().extend(steps);
            }
        }
        let all = cases.into_iter().map(|(name, mut steps)| {
            steps.sort_by(|a, b| (&a.group, &a.what).cmp(&(&b.group, &b.what)));
            Source { name, steps }
        });
        Self {
            all: all.collect(),
            best: Mutex::default(),
            residuals: OnceLock::new(),
            held_out: Mutex::default(),
        }
    }

    /// What all sources but one tell, remembered.
    pub(super) fn without(&self, source: Option<&str>) -> Arc<HeldOut> {
        let key = source.map(str::to_owned);
        if let Some(known) = locked(&self.held_out).get(&key) {
            return Arc::clone(known);
        }
        let (rates, found) = self.rates_without(source);
        let others = self.all.iter().zip(self.residuals());
        let others = others.filter(|(other, _)| source != Some(other.name));
        let plain: Vec<&[Residual]> = others.map(|(_, residuals)| &residuals[..]).collect();
        let after: Vec<Vec<Residual>> =
            plain.iter().map(|rows| spreads::calibrated(rows)).collect();
        let with = |spreads| Constants { rates: rates.clone(), spreads };
        let constants = with(spreads::fit(plain.into_iter()));
        let calibrated = with(spreads::fit(after.iter().map(Vec::as_slice)));
        let fresh = Arc::new(HeldOut { constants, calibrated, found });
        Arc::clone(locked(&self.held_out).entry(key).or_insert(fresh))
    }

    /// Errors of every source's runs, predicted with the others' rates.
    fn residuals(&self) -> &[Vec<Residual>] {
        self.residuals.get_or_init(|| {
            let of = |source: &Source| source.residuals(&self.rates_without(Some(source.name)).0);
            self.all.iter().map(of).collect()
        })
    }

    /// The wide factors first: runs with narrow ones have wide ones too.
    fn rates_without(&self, source: Option<&str>) -> (Rates, Vec<Found>) {
        let (mut rates, mut found) = (Rates::shipped(), Vec::new());
        for generation in Sustained::FROM_RUNS {
            rates.forget(generation);
            for width in Width::ALL {
                let best = |(at, other): (usize, &Source)| {
                    let is_other = source != Some(other.name);
                    let best = is_other.then(|| self.best(at, generation, width, &rates))?;
                    Some((other.name, best?))
                };
                let from: Vec<_> = self.all.iter().enumerate().filter_map(best).collect();
                if let Some(value) = ceiling(&from) {
                    rates.set(generation, width, value);
                }
                found.push(Found { generation, width, from });
            }
        }
        (rates, found)
    }

    /// A source's own best value, remembered.
    fn best(&self, at: usize, generation: &str, width: Width, rates: &Rates) -> Option<f64> {
        let held = Width::ALL.into_iter().filter_map(|width| rates.get(generation, width));
        let asked = (at, generation.to_owned(), width, held.map(f64::to_bits).collect());
        if let Some(known) = locked(&self.best).get(&asked) {
            return *known;
        }
        let found = self.all[at].best(generation, width, rates);
        locked(&self.best).insert(asked, found);
        found
    }
}

/// What a panic elsewhere left is whole: entries are made at once.
fn locked<T>(memory: &Mutex<T>) -> MutexGuard<'_, T> {
    memory.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Source {
    fn residuals(&self, rates: &Rates) -> Vec<Residual> {
        let every = self.steps.len().div_ceil(ASKED).max(1);
        let asked: Vec<&Case> = self.steps.iter().step_by(every).collect();
        let residual = |case: &Case| {
            let sustained = rates.of(&case.cluster.node.device);
            let step = case.step(sustained, Factors::default()).ok()?;
            let error = (case.measured / step.time.secs_f64()).ln();
            let group = case.group.clone();
            error.is_finite().then_some(Residual { group, causes: step.causes, error })
        };
        asked.into_par_iter().filter_map(residual).collect()
    }
}

impl HeldOut {
    /// In words, of the generations and widths that these runs use.
    pub(super) fn notes(&self, cases: &[Case], calibrated: bool) -> Vec<String> {
        let uses = |found: &&Found| {
            cases.iter().any(|case| {
                let device = &case.cluster.node.device;
                device.architecture.as_deref() == Some(found.generation)
                    && Width::of(case.training.precision.compute) == Some(found.width)
            })
        };
        let rates = self.found.iter().filter(uses).map(Found::note);
        let constants = if calibrated { &self.calibrated } else { &self.constants };
        rates.chain([spreads::note(&constants.spreads)]).collect()
    }
}

impl Found {
    fn note(&self) -> String {
        let Self { generation, width, from } = self;
        let bits = width.bits();
        let shipped = Sustained::shipped(generation).map_or(f64::INFINITY, |all| all.at(*width));
        let what = format!("{generation} under power, {bits}-bit factors, TFLOP/s per watt");
        let Some(value) = ceiling(from) else {
            return format!(
                "{what}: no other source tells, so the next width's times the ratio of the peaks; \
                 shipped {shipped:.2}"
            );
        };
        let each: Vec<String> =
            from.iter().map(|(source, best)| format!("{source} {best:.2}")).collect();
        format!("{what}: {value:.2} from {}; shipped {shipped:.2}", each.join(", "))
    }
}

/// The share of sources that stay below the ceiling.
const GOOD_SOFTWARE: f64 = 0.75;

/// What software reaches that leaves little on the table: power is a ceiling, which the libraries of
/// some sources stay below.
fn ceiling(from: &[(&'static str, f64)]) -> Option<f64> {
    let values: Vec<f64> = from.iter().map(|(_, best)| *best).collect();
    quantile(&values, GOOD_SOFTWARE)
}

#[cfg(test)]
mod tests;
