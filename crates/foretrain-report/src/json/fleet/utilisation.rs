//! The JSON of `fleet utilisation`.

use foretrain_fleet::utilisation::{Interval, Prediction, Scores, TrainedOn};
use schemars::JsonSchema;
use serde::Serialize;

/// How far off predictions of utilisation are; of `train` and `evaluate`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetUtilisationReport {
    /// `foretrain/fleet-utilisation/1`.
    pub schema: String,
    /// Measured jobs.
    pub jobs: usize,
    /// Families of jobs.
    pub families: usize,
    /// Errors, each over jobs that were not learnt from in another way; empty if there is one family
    /// only and nothing could be held out.
    pub splits: Vec<FleetUtilisationSplitReport>,
    /// The file that the predictor was written to, if any.
    pub kept_in: Option<String>,
}

/// Errors over jobs that were not learnt from.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetUtilisationSplitReport {
    /// What was held out.
    pub what: String,
    /// Jobs scored.
    pub jobs: usize,
    /// Root of the mean square of the difference of logarithms of one plus the percentage.
    pub rmsle: f64,
    /// Mean absolute error in points of a percent.
    pub mae_points: f64,
    /// The same as `rmsle` of the geometric mean of the jobs that were learnt from.
    pub mean_rmsle: Option<f64>,
    /// The same as `mae_points` of it.
    pub mean_mae_points: Option<f64>,
    /// Mean absolute error of the memory in percent; `null` if it was not measured.
    pub memory_mape: Option<f64>,
}

/// What to expect of a job.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetUtilisationPredictReport {
    /// `foretrain/fleet-utilisation-predict/1`.
    pub schema: String,
    /// The model.
    pub model: String,
    /// Samples of a step.
    pub batch: u64,
    /// Part of the time in which the GPU runs anything, percent.
    pub utilisation_percent: FleetIntervalReport,
    /// Memory in bytes; `null` if no measured job tells.
    pub memory_bytes: Option<FleetIntervalReport>,
    /// Whether the job is like those that were measured. If not, the value is that of the nearest of
    /// them.
    pub is_inside: bool,
    /// Features outside of what was measured.
    pub outside: Vec<FleetFeatureReport>,
    /// Jobs that were learnt from.
    pub trained_jobs: usize,
    /// Families of them.
    pub trained_families: usize,
    /// What they were.
    pub trained_on: String,
}

/// A value and where 8 of 10 lie.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetIntervalReport {
    /// The value.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end; `null` if nothing bounds it.
    pub high: Option<f64>,
}

/// A feature of a job, and the range of the measured jobs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetFeatureReport {
    /// Its name.
    pub feature: String,
    /// Its value.
    pub value: f64,
    /// The least that was measured.
    pub least: f64,
    /// The most.
    pub most: f64,
}

impl FleetUtilisationReport {
    /// Of so many jobs and families, with the errors under each split.
    pub fn new(
        (jobs, families): (usize, usize),
        splits: &[(String, Scores)],
        kept_in: Option<&str>,
    ) -> Self {
        let splits = splits.iter().map(|(what, scores)| FleetUtilisationSplitReport {
            what: what.clone(),
            jobs: scores.jobs,
            rmsle: scores.rmsle,
            mae_points: scores.mae,
            mean_rmsle: Some(scores.mean_rmsle).filter(|mean| mean.is_finite()),
            mean_mae_points: Some(scores.mean_mae).filter(|mean| mean.is_finite()),
            memory_mape: scores.memory_mape,
        });
        Self {
            schema: "foretrain/fleet-utilisation/1".into(),
            jobs,
            families,
            splits: splits.collect(),
            kept_in: kept_in.map(Into::into),
        }
    }
}

impl From<Interval> for FleetIntervalReport {
    fn from(interval: Interval) -> Self {
        let Interval { value, low, high } = interval;
        Self { value, low, high: Some(high).filter(|high| *high < f64::MAX) }
    }
}

impl FleetUtilisationPredictReport {
    /// Of what a predictor says of a model at a batch.
    pub fn new(model: &str, batch: u64, prediction: &Prediction, trained_on: &TrainedOn) -> Self {
        let outside = prediction.outside.iter().map(|&(feature, value, [least, most])| {
            FleetFeatureReport { feature: feature.into(), value, least, most }
        });
        Self {
            schema: "foretrain/fleet-utilisation-predict/1".into(),
            model: model.into(),
            batch,
            utilisation_percent: prediction.utilisation.into(),
            memory_bytes: prediction.memory.map(Into::into),
            is_inside: prediction.outside.is_empty(),
            outside: outside.collect(),
            trained_jobs: trained_on.jobs,
            trained_families: trained_on.families,
            trained_on: trained_on.about.clone(),
        }
    }
}
