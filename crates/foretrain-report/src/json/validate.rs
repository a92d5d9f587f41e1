//! The JSON of `validate`. Errors are in percent of the measured value.

use foretrain_predict::validate::{Group, Row, SetReport, ValidationReport};
use schemars::JsonSchema;
use serde::Serialize;

use super::common::finite;
use crate::text::validation_title;

/// How far predictions are from measurements.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ValidateReport {
    /// One entry per data set.
    pub sets: Vec<ValidationSetReport>,
}

/// The scores of one data set.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ValidationSetReport {
    /// Name; with `:NAME` of the extra directory, if it is on one.
    pub name: String,
    /// Rows scored.
    pub n: usize,
    /// Mean absolute error; `null` without rows, like the measures below.
    pub mape: Option<f64>,
    /// Median absolute error.
    pub median_ape: Option<f64>,
    /// 0.9 quantile of the absolute errors.
    pub p90_ape: Option<f64>,
    /// Largest absolute error.
    pub max_ape: Option<f64>,
    /// Mean signed error; above zero where predictions are too long.
    pub bias: Option<f64>,
    /// Share of measurements inside the predicted 80 % interval, in percent; `null` if no row
    /// states one.
    pub coverage80: Option<f64>,
    /// Somebody else's error on the same rows.
    pub reference: Option<ReferenceReport>,
    /// Median of the groups' MAPE; `null` for fewer than two groups.
    pub group_median_mape: Option<f64>,
    /// The rows summed up by file or machine.
    pub groups: Vec<GroupScores>,
    /// What else was counted, as sentences.
    pub notes: Vec<String>,
    /// What was left out.
    pub skipped: Vec<SkippedReport>,
    /// All rows, if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<Vec<RowReport>>,
}

/// The rows of one file or machine.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct GroupScores {
    /// File, run or machine.
    pub what: String,
    /// Rows.
    pub n: usize,
    /// Mean absolute error.
    pub mape: f64,
    /// Median absolute error.
    pub median_ape: f64,
    /// Mean signed error.
    pub bias: f64,
    /// Share of measurements inside the predicted 80 % interval, in percent.
    pub coverage80: Option<f64>,
    /// The row with the largest error.
    pub worst: String,
    /// That error, signed.
    pub worst_error: f64,
}

impl From<&Group> for GroupScores {
    fn from(group: &Group) -> Self {
        let scores = &group.scores;
        Self {
            what: group.what.clone(),
            n: scores.n,
            mape: finite(scores.mape),
            median_ape: finite(scores.median_ape),
            bias: finite(scores.bias),
            coverage80: scores.coverage80.map(finite),
            worst: group.worst.clone(),
            worst_error: finite(group.worst_error),
        }
    }
}

/// Somebody else's error.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ReferenceReport {
    /// Whose.
    pub who: String,
    /// Mean absolute error.
    pub mape: f64,
}

/// Something left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SkippedReport {
    /// What.
    pub what: String,
    /// Why.
    pub why: String,
}

/// One prediction beside its measurement.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RowReport {
    /// File or run, relative to the data directory.
    pub group: String,
    /// What, within it.
    pub what: String,
    /// Unit of the values.
    pub unit: String,
    /// Predicted value.
    pub predicted: f64,
    /// Measured value.
    pub measured: f64,
    /// Lower end of the predicted 80 % interval, if stated.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
}

impl ValidateReport {
    /// The report of a run; `rows` says whether it holds them.
    pub fn new(report: &ValidationReport, rows: bool) -> Self {
        Self { sets: report.sets.iter().map(|set| ValidationSetReport::new(set, rows)).collect() }
    }
}

impl ValidationSetReport {
    fn new(set: &SetReport, rows: bool) -> Self {
        let scores = set.scores.as_ref();
        let reference = set.reference.as_ref();
        Self {
            name: validation_title(set),
            n: scores.map_or(0, |s| s.n),
            mape: scores.map(|s| finite(s.mape)),
            median_ape: scores.map(|s| finite(s.median_ape)),
            p90_ape: scores.map(|s| finite(s.p90_ape)),
            max_ape: scores.map(|s| finite(s.max_ape)),
            bias: scores.map(|s| finite(s.bias)),
            coverage80: scores.and_then(|s| s.coverage80).map(finite),
            reference: reference
                .map(|r| ReferenceReport { who: r.who.clone(), mape: finite(r.mape) }),
            group_median_mape: set.group_median().map(finite),
            groups: set.groups.iter().map(Into::into).collect(),
            notes: set.notes.clone(),
            skipped: set
                .skipped
                .iter()
                .map(|s| SkippedReport { what: s.what.clone(), why: s.why.clone() })
                .collect(),
            rows: rows.then(|| set.rows.iter().map(|row| RowReport::new(row, &set.unit)).collect()),
        }
    }
}

impl RowReport {
    fn new(row: &Row, unit: &str) -> Self {
        Self {
            group: row.group.clone(),
            what: row.what.clone(),
            unit: unit.to_owned(),
            predicted: finite(row.predicted),
            measured: finite(row.measured),
            low: row.low.map(finite),
            high: row.high.map(finite),
        }
    }
}
