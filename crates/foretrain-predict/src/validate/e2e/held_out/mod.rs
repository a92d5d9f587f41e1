//! Constants of estimates that come from measured runs, found again without the runs that they
//! score.
//!
//! A source is what one publisher measured. Runs of a source are predicted with constants that the
//! other sources give, so that no run has a part in its own prediction.

mod best;
mod rates;

pub(super) use rates::Rates;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use foretrain_core::Result;
use foretrain_core::stats::median;
use foretrain_cost::kernels::{Sustained, Width};

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
}

/// Source, generation, width, and the bits of the values that were held while it was asked.
type Asked = (usize, String, Width, Vec<u64>);

/// Constants found without one source, and in words.
pub(super) struct HeldOut {
    pub(super) rates: Rates,
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
        Self { all: all.collect(), best: Mutex::default() }
    }

    /// What all sources but one tell, the wide factors first: runs with narrow ones have wide ones
    /// too.
    pub(super) fn without(&self, source: Option<&str>) -> HeldOut {
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
                if let Some(value) = middle(&from) {
                    rates.set(generation, width, value);
                }
                found.push(Found { generation, width, from });
            }
        }
        HeldOut { rates, found }
    }

    /// A source's own best value, remembered.
    fn best(&self, at: usize, generation: &str, width: Width, rates: &Rates) -> Option<f64> {
        let held = Width::ALL.into_iter().filter_map(|width| rates.get(generation, width));
        let asked = (at, generation.to_owned(), width, held.map(f64::to_bits).collect());
        let known = |best: &BTreeMap<Asked, Option<f64>>| best.get(&asked).copied();
        if let Some(known) = known(&self.best.lock().unwrap_or_else(PoisonError::into_inner)) {
            return known;
        }
        let found = self.all[at].best(generation, width, rates);
        let mut best = self.best.lock().unwrap_or_else(PoisonError::into_inner);
        best.insert(asked, found);
        found
    }
}

impl HeldOut {
    /// In words, of the generations and widths that these runs use.
    pub(super) fn notes(&self, cases: &[Case]) -> Vec<String> {
        let uses = |found: &&Found| {
            cases.iter().any(|case| {
                let device = &case.cluster.node.device;
                device.architecture.as_deref() == Some(found.generation)
                    && Width::of(case.training.precision.compute) == Some(found.width)
            })
        };
        self.found.iter().filter(uses).map(Found::note).collect()
    }
}

impl Found {
    fn note(&self) -> String {
        let Self { generation, width, from } = self;
        let bits = width.bits();
        let shipped = Sustained::shipped(generation).map_or(f64::INFINITY, |all| all.at(*width));
        let what = format!("{generation} under power, {bits}-bit factors, TFLOP/s per watt");
        let Some(value) = middle(from) else {
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

fn middle(from: &[(&'static str, f64)]) -> Option<f64> {
    let values: Vec<f64> = from.iter().map(|(_, best)| *best).collect();
    median(&values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    /// Sources of the data set, if it is there.
    fn sources() -> Option<Sources> {
        let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");
        let data = std::env::var_os("FORETRAIN_DATA").map_or_else(|| beside.into(), PathBuf::from);
        let root = Root::data(&data).ok().filter(|_| data.join("measured").is_dir())?;
        Some(Sources::read(&root, super::super::readers()))
    }

    #[test]
    fn shipped_values_are_what_all_sources_give() {
        let Some(sources) = sources() else {
            println!("skipped: no validation data (set FORETRAIN_DATA)");
            return;
        };
        let HeldOut { rates, found } = sources.without(None);
        let mut wrong = Vec::new();
        for Found { generation, width, .. } in &found {
            let shipped = Sustained::shipped(generation).expect("shipped").at(*width);
            let value = rates.get(generation, *width).unwrap_or(shipped);
            if (shipped / value - 1.0).abs() > 0.02 {
                wrong.push(format!(
                    "{generation} {width:?}: {shipped} is shipped, {value:.3} found"
                ));
            }
        }
        assert!(found.iter().any(|found| found.from.len() > 2) && wrong.is_empty(), "{wrong:#?}");
    }

    #[test]
    fn a_source_has_no_part_in_what_it_is_scored_with() {
        let Some(sources) = sources() else {
            println!("skipped: no validation data (set FORETRAIN_DATA)");
            return;
        };
        let name = "e2e-llm-dgx-cloud";
        let of = |held_out: HeldOut| -> Vec<&'static str> {
            held_out
                .found
                .iter()
                .flat_map(|found| found.from.iter().map(|(name, _)| *name))
                .collect()
        };
        assert!(of(sources.without(None)).contains(&name));
        assert!(!of(sources.without(Some(name))).contains(&name));
    }
}
