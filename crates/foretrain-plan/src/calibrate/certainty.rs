//! Factors from measured steps, and how sure they make the step of another layout.
//!
//! The logarithm of each factor is taken for normal with the spread that it has without any
//! measurement. A measured step tells their sum over the parts of that step (a Kalman update), so a
//! layout that spends its time as the measured ones do is known best, and one that communicates
//! where they computed is hardly better known than before.

use std::path::Path;

use foretrain_core::estimate::Z80;
use foretrain_core::{Estimate, Evidence, EvidenceKind, InputError, Nanos, Result};
use foretrain_cost::kernels::KernelModel;
use foretrain_hardware::Cluster;
use foretrain_workload::model::Model;
use serde::Serialize;

use super::fit::{NOISE, SPREADS, fit};
use crate::estimate::Answer;
use crate::layout::Layout;
use crate::times::{Factors, Machine, Part};
use crate::{Job, Software, Step, Training};

/// What was run for a measured step.
#[derive(Clone, Debug)]
pub struct Run<'a> {
    /// The model.
    pub model: &'a Model,
    /// What was trained of it.
    pub training: Training,
    /// By what.
    pub software: Software,
    /// How it was laid out.
    pub layout: Layout,
    /// The measured time of a step.
    pub time: Nanos,
    /// Where the measurement stands, for messages.
    pub place: String,
}

/// Further error, as a standard deviation of the logarithm, of steps of a model that was not among the
/// measured ones: held out by model, medians of 8 to 13 % remain on H100s and A100s, and 3 to 4 % on
/// other sizes and sequences of the same models (MosaicML's table, see docs/estimate.md).
const OTHER_MODEL: f64 = 0.10;

/// A measured step beside its estimate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MeasuredRow {
    /// The model.
    pub model: String,
    /// The layout.
    pub layout: String,
    /// Devices.
    pub devices: u64,
    /// Samples of the step.
    pub global_batch: u64,
    /// Its measured time.
    pub measured: Nanos,
    /// Estimated over measured time less one, without factors.
    pub before: f64,
    /// The same with them.
    pub after: f64,
}

/// A machine's times as measured steps correct them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Calibrated {
    /// The file of the steps.
    pub source: String,
    /// The cluster they were measured on.
    pub cluster: String,
    /// Factors on its times.
    pub factors: Factors,
    /// The steps.
    pub rows: Vec<MeasuredRow>,
    /// Covariance of the factors' logarithms that the steps leave.
    covariance: [[f64; 4]; 4],
    /// What factors cannot explain: standard deviation of a step's log error.
    noise: f64,
}

impl Calibrated {
    /// Fits factors on the times of `cluster` to `runs`.
    ///
    /// # Errors
    /// Without runs, and for a run whose layout does not go with its model, batch or the cluster,
    /// with its place.
    pub fn by(
        runs: &[Run<'_>],
        cluster: &Cluster,
        kernels: &KernelModel,
        source: &Path,
    ) -> Result<Self> {
        let step = |run: &Run<'_>, factors: Factors| -> Result<Step> {
            let machine = Machine::new(cluster, kernels.clone()).with_factors(factors);
            let job = Job::new(run.model, &run.training, &run.software, &machine);
            job.step(&run.layout)
        };
        let placed = |error: InputError, run: &Run<'_>| error.at(&run.place).in_file(source);
        for run in runs {
            let machine = Machine::new(cluster, kernels.clone());
            let job = Job::new(run.model, &run.training, &run.software, &machine);
            let answer = cluster
                .nodes_for(run.layout.devices())
                .and_then(|_| job.answer(&run.layout))
                .map_err(|error| placed(error, run))?;
            refuse_slips(run.time, answer.step.time).map_err(|error| placed(error, run))?;
        }
        let measured: Vec<f64> = runs.iter().map(|run| run.time.secs_f64()).collect();
        let predict = |at: usize, factors| Ok(step(&runs[at], factors)?.time.secs_f64());
        let fitted = fit(&measured, &predict).map_err(|error| error.in_file(source))?;
        let rows = runs.iter().zip(fitted.before.iter().zip(&fitted.after));
        let rows: Vec<MeasuredRow> = rows
            .map(|(run, (before, after))| MeasuredRow {
                model: run.model.name.clone(),
                layout: run.layout.to_string(),
                devices: run.layout.devices(),
                global_batch: run.training.global_batch,
                measured: run.time,
                before: *before,
                after: *after,
            })
            .collect();
        let noise = noise(&fitted.after);
        let mut covariance = [[0.0; 4]; 4];
        for (at, spread) in SPREADS.into_iter().enumerate() {
            covariance[at][at] = spread * spread;
        }
        for run in runs {
            let time = |factors| Ok(step(run, factors)?.time);
            learn(&mut covariance, elasticities(fitted.factors, &time)?, noise);
        }
        let name = source.file_name().unwrap_or(source.as_os_str()).to_string_lossy().into_owned();
        let (cluster, factors) = (cluster.name.clone(), fitted.factors);
        Ok(Self { source: name, cluster, factors, rows, covariance, noise })
    }

    /// Standard deviation of the log error that a step of this model has under the factors.
    pub fn spread(&self, model: &str, step: &Step) -> f64 {
        let shares = shares(step);
        let known = times(&self.covariance, shares);
        let variance: f64 = shares.iter().zip(known).map(|(share, known)| share * known).sum();
        let is_known = self.rows.iter().any(|row| row.model == model);
        let other = if is_known { 0.0 } else { OTHER_MODEL };
        (variance.max(0.0) + self.noise * self.noise + other * other).sqrt()
    }

    /// A step's time with its 80 % interval: the narrower of what its kernels and collectives leave
    /// and of what the measured steps leave.
    pub fn estimate(&self, model: &str, step: &Step) -> Estimate<Nanos> {
        let left = (Z80 * self.spread(model, step)).exp();
        let factor = left.min(1.0 + step.relative_spread);
        Estimate::between(step.time, step.time.scale(1.0 / factor), step.time.scale(factor))
    }

    /// What the factors rest on, for the step of an answer.
    fn evidence(&self, model: &str, step: &Step) -> Evidence {
        let Factors { products, memory, communication, host } = self.factors;
        let steps = if self.rows.len() == 1 { "step" } else { "steps" };
        let source = format!(
            "{} {steps} in {}: factors of {products:.2} on products, {memory:.2} on memory-bound \
             kernels, {communication:.2} on communication, {host:.2} on the host's pace",
            self.rows.len(),
            self.source
        );
        Evidence::new(EvidenceKind::Measured, "step times", source, self.spread(model, step))
    }
}

impl Answer {
    /// The answer as measurements of the machine make it: of its kernels, and of whole steps, whose
    /// factors are in its times already.
    #[must_use]
    pub(crate) fn measured(
        mut self,
        calibrated: Option<&Calibrated>,
        model: &str,
        kernels: &KernelModel,
    ) -> Self {
        let corrections = kernels.calibration().into_iter().flat_map(|calibration| {
            calibration.corrections().iter().map(move |correction| {
                let what = format!("matrix products of {}", correction.types());
                let source = format!(
                    "{} shapes measured on {} ({}): {:.2} of the shipped curve's time",
                    correction.rows, calibration.device, calibration.source, correction.factor
                );
                Evidence::new(EvidenceKind::Calibrated, what, source, correction.spread / Z80)
            })
        });
        let mut evidence: Vec<Evidence> = corrections.collect();
        if let Some(calibrated) = calibrated {
            self.time = calibrated.estimate(model, &self.step);
            evidence.insert(0, calibrated.evidence(model, &self.step));
        }
        evidence.append(&mut self.evidence);
        self.evidence = evidence;
        self
    }
}

/// A step so far from its estimate is another job's, or a slip of units.
fn refuse_slips(measured: Nanos, estimated: Nanos) -> Result<()> {
    const MOST: f64 = 10.0;
    let ratio = measured.secs_f64() / estimated.secs_f64().max(1e-12);
    if (1.0 / MOST..=MOST).contains(&ratio) {
        return Ok(());
    }
    let why = format!("a step of {measured} was measured where {estimated} are estimated");
    Err(InputError::new(why)
        .hint("check its unit, model, layout and batch: no machine is off by a factor of ten"))
}

/// Where a few steps are met by chance, another is met no better than a good model meets one.
fn noise(after: &[f64]) -> f64 {
    let square: f64 = after.iter().map(|error| error.ln_1p().powi(2)).sum();
    (square / after.len().max(1) as f64).sqrt().max(NOISE)
}

/// By how many per cent a step grows with each factor, per per cent of it. Where launches hold kernels
/// up, that is more of the host and less of the kernels than parts of the step tell.
fn elasticities(at: Factors, time: &dyn Fn(Factors) -> Result<Nanos>) -> Result<[f64; 4]> {
    const CHANGE: f64 = 1.05;
    let base = time(at)?.secs_f64();
    let mut found = [0.0; 4];
    for (index, elasticity) in found.iter_mut().enumerate() {
        let mut changed = at.to_array();
        changed[index] *= CHANGE;
        let ratio = time(Factors::from_array(changed))?.secs_f64() / base.max(1e-12);
        *elasticity = ratio.max(1e-12).ln() / CHANGE.ln();
    }
    Ok(found)
}

/// Parts of a step that each factor is on. Bubbles are other stages' passes, and divided as these.
fn shares(step: &Step) -> [f64; 4] {
    let mut shares = [0.0; 4];
    for (part, time) in step.parts.iter() {
        let at = match part {
            Part::Gemm | Part::Attention | Part::Expert | Part::Convolution | Part::Recompute => 0,
            Part::Elementwise | Part::Vocabulary | Part::Optimiser => 1,
            Part::TensorComm
            | Part::ContextComm
            | Part::ExpertComm
            | Part::PipelineComm
            | Part::GradientSync
            | Part::ParameterGather
            | Part::Offload => 2,
            Part::Launch => 3,
            Part::Bubble => continue,
        };
        shares[at] += time.nanos() as f64;
    }
    let sum: f64 = shares.iter().sum();
    shares.map(|share| share / sum.max(1.0))
}

/// What is left to know after one more step with these shares was measured.
fn learn(covariance: &mut [[f64; 4]; 4], shares: [f64; 4], noise: f64) {
    let known = times(covariance, shares);
    let told: f64 = shares.iter().zip(known).map(|(share, known)| share * known).sum();
    let scale = 1.0 / (told + noise * noise);
    for (row, a) in covariance.iter_mut().zip(known) {
        for (cell, b) in row.iter_mut().zip(known) {
            *cell -= scale * a * b;
        }
    }
}

fn times(matrix: &[[f64; 4]; 4], vector: [f64; 4]) -> [f64; 4] {
    matrix.map(|row| row.iter().zip(vector).map(|(cell, value)| cell * value).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prior() -> [[f64; 4]; 4] {
        let mut covariance = [[0.0; 4]; 4];
        for (at, spread) in SPREADS.into_iter().enumerate() {
            covariance[at][at] = spread * spread;
        }
        covariance
    }

    fn variance(covariance: &[[f64; 4]; 4], shares: [f64; 4]) -> f64 {
        times(covariance, shares).iter().zip(shares).map(|(known, share)| known * share).sum()
    }

    /// What was measured is known better, what was not is as unknown as before.
    #[test]
    fn a_step_tells_of_its_own_parts_only() {
        let mut covariance = prior();
        let computing = [0.9, 0.1, 0.0, 0.0];
        for _ in 0..4 {
            learn(&mut covariance, computing, NOISE);
        }
        let before = variance(&prior(), computing);
        assert!(variance(&covariance, computing) < 0.1 * before);
        let talking = [0.0, 0.0, 1.0, 0.0];
        assert_eq!(variance(&covariance, talking), variance(&prior(), talking));
        // Against the closed form: 1 / (1 / prior + n / noise^2) along the one direction.
        let expected = 1.0 / (1.0 / before + 4.0 / (NOISE * NOISE));
        assert!((variance(&covariance, computing) / expected - 1.0).abs() < 1e-9);
    }

    #[test]
    fn steps_that_are_missed_make_others_less_sure() {
        assert_eq!(noise(&[0.0, 0.01]), NOISE);
        assert!(noise(&[0.3, -0.2]) > 0.2);
    }
}
