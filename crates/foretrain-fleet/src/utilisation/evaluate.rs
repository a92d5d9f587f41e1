//! How far off predictions are for jobs that were not learnt from.

use std::collections::BTreeSet;

use foretrain_core::stats::mean;
use rayon::prelude::*;

use super::MeasuredJob;
use super::predictor::Trees;

/// What was told of a job by a model that saw no job of its group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeldOut {
    /// Utilisation, percent.
    pub utilisation: f64,
    /// Memory, bytes, if jobs of other groups tell.
    pub memory: Option<f64>,
    /// The geometric mean of one plus the utilisation of the other groups, less one: what can be
    /// said without looking at the job.
    pub mean: f64,
}

/// Predicts every job from those of all other groups; `None` where there is no other group.
///
/// # Panics
/// If there are not as many groups as jobs.
pub fn held_out(jobs: &[MeasuredJob], groups: &[&str]) -> Vec<Option<HeldOut>> {
    assert_eq!(jobs.len(), groups.len(), "a group for each job");
    let names: BTreeSet<&str> = groups.iter().copied().collect();
    let mut told: Vec<Option<HeldOut>> = vec![None; jobs.len()];
    let scored: Vec<(usize, HeldOut)> = names
        .into_iter()
        .collect::<Vec<_>>()
        .into_par_iter()
        .flat_map_iter(|name| {
            let members = std::iter::zip(jobs, groups).enumerate();
            let (own, others): (Vec<_>, Vec<_>) =
                members.partition(|(_, (_, group))| **group == name);
            let others: Vec<&MeasuredJob> = others.into_iter().map(|(_, (job, _))| job).collect();
            let logs: Vec<f64> = others.iter().map(|job| job.utilisation.ln_1p()).collect();
            let trees = mean(&logs).map(|mean| (mean.exp_m1(), Trees::fit(&others)));
            own.into_iter().filter_map(move |(at, (job, _))| {
                let (mean, trees) = trees.as_ref()?;
                let utilisation = trees.utilisation(&job.features);
                let memory = trees.memory(&job.features);
                Some((at, HeldOut { utilisation, memory, mean: *mean }))
            })
        })
        .collect();
    for (at, one) in scored {
        told[at] = Some(one);
    }
    told
}

/// Errors over jobs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scores {
    /// Jobs.
    pub jobs: usize,
    /// Root of the mean square of `ln(1 + predicted) - ln(1 + measured)`, in percent each.
    pub rmsle: f64,
    /// Mean absolute error in points of a percent.
    pub mae: f64,
    /// The same two of the mean alone.
    pub mean_rmsle: f64,
    /// See above.
    pub mean_mae: f64,
    /// Mean absolute error of the memory in percent, if that was measured.
    pub memory_mape: Option<f64>,
}

/// The errors of what was told; `None` if nothing was.
pub fn scores(jobs: &[MeasuredJob], told: &[Option<HeldOut>]) -> Option<Scores> {
    let pairs: Vec<(&MeasuredJob, HeldOut)> =
        jobs.iter().zip(told).filter_map(|(job, told)| Some((job, (*told)?))).collect();
    let over = |error: &dyn Fn(&MeasuredJob, &HeldOut) -> f64| {
        mean(&pairs.iter().map(|(job, told)| error(job, told)).collect::<Vec<_>>())
    };
    let squared = |told: f64, job: &MeasuredJob| (told.ln_1p() - job.utilisation.ln_1p()).powi(2);
    let memory = pairs.iter().filter_map(|(job, told)| {
        let measured = job.memory?.as_f64();
        Some((told.memory? / measured - 1.0).abs() * 100.0)
    });
    Some(Scores {
        jobs: pairs.len(),
        rmsle: over(&|job, told| squared(told.utilisation, job))?.sqrt(),
        mae: over(&|job, told| (told.utilisation - job.utilisation).abs())?,
        mean_rmsle: over(&|job, told| squared(told.mean, job))?.sqrt(),
        mean_mae: over(&|job, told| (told.mean - job.utilisation).abs())?,
        memory_mape: mean(&memory.collect::<Vec<_>>()),
    })
}
