//! Times of single kernels from their shapes, against measured tables.

mod attention;
mod gemm;
mod memory;
mod table;

use std::collections::BTreeMap;

use foretrain_core::{Nanos, Result};
use foretrain_cost::kernels::{KernelModel, Operation};
use foretrain_hardware::Catalogue;

use super::ValidationSet;
use super::corpus::Corpus;
use super::report::{Row, SetOutcome, Skipped};

pub(super) use attention::{ATTENTION, ATTENTION_UNSEEN};
pub(super) use gemm::{GEMM, GEMM_OTHER_SOURCES, GEMM_UNSEEN};
pub(super) use memory::{MEMORY, MEMORY_OTHER_SOURCES, MEMORY_UNSEEN};

/// Tables to score, with the curves of the device itself or as if it had none.
pub(super) struct Kernels {
    name: &'static str,
    about: &'static str,
    curves: Curves,
    cases: fn(&Corpus<'_>, &mut Vec<Case>) -> Result<()>,
}

#[derive(Clone, Copy)]
enum Curves {
    Own,
    Relatives,
}

/// One measured kernel.
struct Case {
    device: &'static str,
    /// What is told apart in the report, beside the device.
    group: String,
    operations: Vec<Operation>,
    measured: Nanos,
    /// Whether the source measures more than the kernel, as it does for the curve's own rows.
    around: bool,
}

/// Shorter kernels are a matter of launches and clocks; they are counted apart.
const SHORT: Nanos = Nanos::from_micros(20);
/// Share of its limits that the reference gives every kernel.
const CONSTANT: f64 = 0.75;

impl Kernels {
    /// The same tables as if nothing had been measured on their devices.
    const fn by_relatives(&self, name: &'static str, about: &'static str) -> Self {
        Self { name, about, curves: Curves::Relatives, cases: self.cases }
    }
}

impl ValidationSet for Kernels {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn unit(&self) -> &'static str {
        "us"
    }

    fn score(&self, corpus: &Corpus<'_>) -> SetOutcome {
        let mut outcome = SetOutcome::default();
        let mut cases = Vec::new();
        if let Err(error) = (self.cases)(corpus, &mut cases) {
            let what = corpus.root().label().to_owned();
            outcome.skipped.push(Skipped { what, why: error.to_string() });
        }
        let mut models = BTreeMap::new();
        let mut impossible = 0;
        for case in cases {
            let model = models.entry(case.device).or_insert_with(|| self.model(case.device));
            let Some(model) = model else { continue };
            let bound: Nanos = case.operations.iter().map(|part| model.bound(part)).sum();
            // Out of a warm cache a kernel may beat its bound a little.
            if case.measured.scale(1.25) < bound {
                impossible += 1;
                continue;
            }
            outcome.rows.push(case.row(model, bound));
        }
        if impossible > 0 {
            outcome.skipped.push(Skipped {
                what: format!("{impossible} rows"),
                why: "faster than the device's limits allow: out of a warm cache, or the source \
                      measured something else"
                    .into(),
            });
        }
        outcome.rows.sort_by(|a, b| a.group.cmp(&b.group));
        outcome.reference = Some("75 % of the roofline".into());
        outcome
    }
}

impl Kernels {
    fn model(&self, device: &str) -> Option<KernelModel> {
        let device = Catalogue::builtin().device(device).ok()?;
        Some(match self.curves {
            Curves::Own => KernelModel::for_device(device),
            Curves::Relatives => KernelModel::by_relatives(device),
        })
    }
}

impl Case {
    fn row(&self, model: &KernelModel, bound: Nanos) -> Row {
        let (mut time, mut around, mut error) = (Nanos::ZERO, Nanos::ZERO, 0.0);
        for part in &self.operations {
            let found = model.time(part);
            time += found.time;
            error += found.time.micros_f64() * found.relative_spread;
            if self.around {
                around += model.around(part);
            }
        }
        let predicted = (time + around).micros_f64();
        let short = if self.measured < SHORT { ", under 20 us" } else { "" };
        Row {
            group: format!("{} {}{short}", self.device, self.group),
            what: self.operations.iter().map(|part| format!("{part:?}")).collect(),
            predicted,
            measured: self.measured.micros_f64(),
            low: Some(predicted - error),
            high: Some(predicted + error),
            reference: Some(bound.micros_f64() / CONSTANT),
        }
    }
}
