//! One run, asked and scored.

use std::sync::Arc;

use foretrain_core::stats::median;
use foretrain_core::{Estimate, Nanos, Result};
use foretrain_cost::kernels::KernelModel;
use foretrain_hardware::Cluster;
use foretrain_plan::times::Machine;
use foretrain_plan::{Job, Layout, Software, Training};
use foretrain_workload::model::Model;
use rayon::prelude::*;

use crate::validate::report::{Row, SetOutcome, Skipped};

/// A run and its measured step time.
pub(super) struct Case {
    /// Rows of one group are summed up together.
    pub(super) group: String,
    pub(super) what: String,
    pub(super) model: Arc<Model>,
    pub(super) training: Training,
    pub(super) software: Software,
    pub(super) cluster: Arc<Cluster>,
    pub(super) layout: Layout,
    /// Seconds.
    pub(super) measured: f64,
    /// Somebody else's prediction, seconds.
    pub(super) reference: Option<f64>,
}

impl Case {
    /// The step time from the catalogue alone, seconds.
    pub(super) fn predict(&self) -> Result<Estimate<f64>> {
        let kernels = KernelModel::for_device(&self.cluster.node.device);
        let machine = Machine::new(&self.cluster, kernels);
        let job = Job::new(&self.model, &self.training, &self.software, &machine);
        let step = job.step(&self.layout)?;
        Ok(step.estimate().map(|nanos| Nanos::from_nanos_f64(nanos).secs_f64()))
    }
}

/// Predictions of all cases, in their order.
pub(super) fn predict(cases: &[Case]) -> Vec<Result<Estimate<f64>>> {
    cases.par_iter().map(Case::predict).collect()
}

/// Rows of cases with their predictions.
pub(super) fn score(cases: &[Case], outcome: &mut SetOutcome) {
    for (case, predicted) in cases.iter().zip(predict(cases)) {
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
    key: impl Fn(&Case) -> K,
    calibrates: impl Fn(usize, &Case) -> bool,
    outcome: &mut SetOutcome,
) {
    let predicted = predict(cases);
    let mut ratios = std::collections::BTreeMap::<K, Vec<f64>>::new();
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
