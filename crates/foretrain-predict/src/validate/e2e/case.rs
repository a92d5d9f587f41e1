//! One run, asked and scored.

use std::collections::BTreeMap;
use std::sync::Arc;

use foretrain_core::stats::median;
use foretrain_core::{Bytes, Estimate, InputError, Nanos, Result};
use foretrain_cost::kernels::{KernelModel, Sustained};
use foretrain_hardware::Cluster;
use foretrain_plan::calibrate::fit;
use foretrain_plan::step::Laid;
use foretrain_plan::times::{Factors, Machine, Part};
use foretrain_plan::{Job, Layout, Software, Step, Training};
use foretrain_workload::model::Model;
use rayon::prelude::*;

use super::held_out::Constants;
use crate::validate::report::{Row, SetOutcome, Skipped};

/// A run and what was measured of it.
#[derive(Clone, Debug)]
pub(super) struct Case {
    /// Rows of one group are summed up together, and calibrated by one factor.
    pub(super) group: String,
    pub(super) what: String,
    pub(super) model: Arc<Model>,
    pub(super) training: Training,
    pub(super) software: Software,
    pub(super) cluster: Arc<Cluster>,
    pub(super) layout: Layout,
    pub(super) quantity: Quantity,
    /// In the quantity's unit.
    pub(super) measured: f64,
    /// Somebody else's prediction, in the same unit.
    pub(super) reference: Option<f64>,
}

/// What was measured of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quantity {
    /// From step to step, seconds.
    Step,
    /// A forward pass on one device, seconds.
    Forward,
    /// A step without its update, seconds.
    Passes,
    /// What the allocator of the fullest device hands out, GiB.
    Memory,
    /// The same of the last stage.
    MemoryOfLastStage,
}

impl Case {
    /// What the catalogue alone tells of the quantity.
    pub(super) fn predict(&self, constants: &Constants) -> Result<Estimate<f64>> {
        self.predict_with(constants, Factors::default())
    }

    /// The same with factors on the machine's times.
    pub(super) fn predict_with(
        &self,
        constants: &Constants,
        factors: Factors,
    ) -> Result<Estimate<f64>> {
        let sustained = constants.sustained(&self.cluster.node.device);
        self.laid(sustained, factors, |laid| self.quantity.of(laid, constants))
    }

    /// The whole step.
    pub(super) fn step(&self, sustained: Sustained, factors: Factors) -> Result<Step> {
        self.laid(sustained, factors, step_of)
    }

    fn laid<T>(
        &self,
        sustained: Sustained,
        factors: Factors,
        ask: impl FnOnce(&Laid<'_>) -> Result<T>,
    ) -> Result<T> {
        let kernels = KernelModel::for_device(&self.cluster.node.device);
        let machine = Machine::new(&self.cluster, kernels);
        let machine = machine.with_sustained(sustained).with_factors(factors);
        let job = Job::new(&self.model, &self.training, &self.software, &machine);
        ask(&job.lay(&self.layout)?)
    }
}

fn step_of(laid: &Laid<'_>) -> Result<Step> {
    laid.step()
}

impl Quantity {
    fn of(self, laid: &Laid<'_>, constants: &Constants) -> Result<Estimate<f64>> {
        if matches!(self, Self::Memory | Self::MemoryOfLastStage) {
            let mut stages = laid.memory()?.into_iter().map(|stage| stage.allocated);
            let stage = match self {
                Self::MemoryOfLastStage => stages.next_back(),
                _ => stages.max_by_key(|range| range.value),
            };
            let stage = stage.ok_or_else(|| InputError::new("the layout has no stage"))?;
            return Ok(Estimate::between(gib(stage.value), gib(stage.low), gib(stage.high)));
        }
        let step = laid.step()?;
        let forward = || laid.chunks.iter().map(|chunk| chunk.forward.parts.total()).sum();
        let time = match self {
            Self::Forward => forward(),
            Self::Passes => step.time - step.parts[Part::Optimiser],
            _ => step.time,
        };
        Ok(as_sure_as(step.causes.spread(&constants.spreads), time))
    }
}

fn gib(bytes: Bytes) -> f64 {
    bytes.as_f64() / f64::from(1_u32 << 30)
}

/// A time of the step's passes, known about as well as the step.
fn as_sure_as(spread: f64, time: Nanos) -> Estimate<f64> {
    let (time, factor) = (time.secs_f64(), 1.0 + spread);
    Estimate::between(time, time / factor, time * factor)
}

/// Predictions of all cases, in their order.
pub(super) fn predict(cases: &[Case], constants: &Constants) -> Vec<Result<Estimate<f64>>> {
    cases.par_iter().map(|case| case.predict(constants)).collect()
}

/// Rows of cases with their predictions.
pub(super) fn score(cases: &[Case], constants: &Constants, outcome: &mut SetOutcome) {
    for (case, predicted) in cases.iter().zip(predict(cases, constants)) {
        push(case, predicted, 1.0, outcome);
    }
}

fn push(case: &Case, predicted: Result<Estimate<f64>>, factor: f64, outcome: &mut SetOutcome) {
    match predicted {
        Ok(estimate) => outcome.rows.push(Row {
            group: case.group.clone(),
            what: case.what.clone(),
            predicted: estimate.value * factor,
            measured: case.measured,
            low: Some(estimate.low * factor),
            high: Some(estimate.high * factor),
            reference: case.reference,
        }),
        Err(error) => outcome.skipped.push(Skipped {
            what: format!("{}: {}", case.group, case.what),
            why: error.to_string(),
        }),
    }
}

/// Rows of the cases that do not calibrate, their predictions scaled by the median ratio of measured
/// to predicted over those that do and share their key.
pub(super) fn score_calibrated<K: Ord>(
    cases: &[Case],
    constants: &Constants,
    key: impl Fn(&Case) -> K,
    calibrates: impl Fn(usize, &Case) -> bool,
    outcome: &mut SetOutcome,
) {
    let predicted = predict(cases, constants);
    let mut ratios = BTreeMap::<K, Vec<f64>>::new();
    for (at, case) in cases.iter().enumerate() {
        if let (true, Ok(estimate)) = (calibrates(at, case), &predicted[at]) {
            ratios.entry(key(case)).or_default().push(case.measured / estimate.value);
        }
    }
    for (at, (case, estimate)) in cases.iter().zip(predicted).enumerate() {
        if calibrates(at, case) {
            continue;
        }
        let factor = ratios.get(&key(case)).and_then(|ratios| median(ratios)).unwrap_or(1.0);
        push(case, estimate, factor, outcome);
    }
}

/// Rows of the cases that do not calibrate, with factors on the machine's times (products,
/// memory-bound kernels, communication, host) that are fitted to those that do.
pub(super) fn score_fitted(
    cases: &[Case],
    constants: &Constants,
    calibrates: impl Fn(&Case) -> bool,
    outcome: &mut SetOutcome,
) {
    let (given, asked): (Vec<&Case>, Vec<&Case>) = cases.iter().partition(|case| calibrates(case));
    let measured: Vec<f64> = given.iter().map(|case| case.measured).collect();
    let predict = |at: usize, factors| Ok(given[at].predict_with(constants, factors)?.value);
    let factors = match fit(&measured, &predict) {
        Ok(fitted) => fitted.factors,
        Err(error) => {
            let what = "calibration".into();
            outcome.skipped.push(Skipped { what, why: error.to_string() });
            return;
        }
    };
    outcome.notes.push(format!(
        "{} rows give factors of {:.2} on products, {:.2} on memory-bound kernels, {:.2} on \
         communication and {:.2} on the host's pace",
        given.len(),
        factors.products,
        factors.memory,
        factors.communication,
        factors.host
    ));
    let predicted: Vec<_> =
        asked.par_iter().map(|case| case.predict_with(constants, factors)).collect();
    for (case, predicted) in asked.into_iter().zip(predicted) {
        push(case, predicted, 1.0, outcome);
    }
}
