//! What a validation run reports.

use foretrain_core::Result;
use foretrain_core::stats::median;
use serde::Serialize;

use super::metrics::{Scores, scores};
use super::roots::Root;
use super::{ValidationSet, error_percent};

/// One prediction beside its measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Row {
    /// File or run it belongs to, relative to the data directory.
    pub group: String,
    /// What was predicted, within the group.
    pub what: String,
    /// Predicted value, in the set's unit.
    pub predicted: f64,
    /// Measured value, in the set's unit.
    pub measured: f64,
    /// Lower end of the predicted 80 % interval, if the prediction states one.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// What the set's reference predicts for this row, if it does.
    pub reference: Option<f64>,
}

/// Something left out, and why.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Skipped {
    /// File, step or run, relative to the data directory.
    pub what: String,
    /// Reason, a lowercase fragment.
    pub why: String,
}

/// Somebody else's error on the same rows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reference {
    /// Whose.
    pub who: String,
    /// Mean absolute error in percent.
    pub mape: f64,
    /// Median absolute error in percent, if known.
    pub median_ape: Option<f64>,
}

/// The rows of one file or run, summed up.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Group {
    /// File or run, relative to the data directory.
    pub what: String,
    /// Scores of its rows.
    pub scores: Scores,
    /// The row with the largest error.
    pub worst: String,
    /// That error in percent, signed.
    pub worst_error: f64,
}

/// What a set hands back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SetOutcome {
    /// All rows, in a stable order, rows of one group together.
    pub rows: Vec<Row>,
    /// Everything left out.
    pub skipped: Vec<Skipped>,
    /// Who predicts [`Row::reference`], if anybody.
    pub reference: Option<String>,
    /// What else was counted, as sentences without a stop.
    pub notes: Vec<String>,
}

impl SetOutcome {
    /// Of what a reader found: nothing where its files are not there, the reason where they cannot be
    /// read.
    pub(super) fn of<T>(
        what: &str,
        found: Result<Option<T>>,
        score: impl FnOnce(T) -> Self,
    ) -> Self {
        match found {
            Ok(Some(found)) => score(found),
            Ok(None) => Self::default(),
            Err(error) => {
                let skipped = Skipped { what: what.into(), why: error.to_string() };
                Self { skipped: vec![skipped], ..Self::default() }
            }
        }
    }
}

/// One set on one root.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SetReport {
    /// The set's name.
    pub name: String,
    /// Which data: `data`, or the last part of an extra directory's name.
    pub on: String,
    /// What is predicted from what.
    pub about: String,
    /// Unit of the rows.
    pub unit: String,
    /// Error measures; `None` without rows.
    pub scores: Option<Scores>,
    /// Somebody else's error on the same rows.
    pub reference: Option<Reference>,
    /// The rows summed up by file or run.
    pub groups: Vec<Group>,
    /// What else was counted, as sentences without a stop.
    pub notes: Vec<String>,
    /// Everything left out.
    pub skipped: Vec<Skipped>,
    /// All rows, if asked for.
    pub rows: Vec<Row>,
}

/// The whole run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ValidationReport {
    /// Every set on the data directory, then on each extra one.
    pub sets: Vec<SetReport>,
}

impl SetReport {
    pub(super) fn new(
        set: &dyn ValidationSet,
        root: &Root,
        outcome: SetOutcome,
        keep_rows: bool,
    ) -> Self {
        let SetOutcome { rows, mut skipped, reference, notes } = outcome;
        let (rows, unusable): (Vec<Row>, Vec<Row>) =
            rows.into_iter().partition(|row| error_percent(row.predicted, row.measured).is_some());
        skipped.extend(unusable.into_iter().map(|row| Skipped {
            what: format!("{}: {}", row.group, row.what),
            why: "no positive measurement".into(),
        }));
        skipped.sort();
        Self {
            name: set.name().into(),
            on: root.label().into(),
            about: set.about().into(),
            unit: set.unit().into(),
            scores: scores(&rows),
            reference: reference.and_then(|who| score_reference(who, &rows)),
            groups: rows.chunk_by(|a, b| a.group == b.group).filter_map(group).collect(),
            notes,
            skipped,
            rows: if keep_rows { rows } else { Vec::new() },
        }
    }
}

impl SetReport {
    /// Median of the groups' MAPE, percent: each file or machine counts once, however many rows it
    /// has. `None` for fewer than two groups.
    pub fn group_median(&self) -> Option<f64> {
        let each: Vec<f64> = self.groups.iter().map(|group| group.scores.mape).collect();
        if each.len() < 2 { None } else { median(&each) }
    }
}

/// Scores the reference, if it predicts every row: else the errors would not compare.
fn score_reference(who: String, rows: &[Row]) -> Option<Reference> {
    let theirs: Option<Vec<Row>> =
        rows.iter().map(|row| Some(Row { predicted: row.reference?, ..row.clone() })).collect();
    let scores = scores(&theirs?)?;
    Some(Reference { who, mape: scores.mape, median_ape: Some(scores.median_ape) })
}

fn group(rows: &[Row]) -> Option<Group> {
    let errors =
        rows.iter().filter_map(|row| Some((row, error_percent(row.predicted, row.measured)?)));
    let (worst, worst_error) = errors.max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))?;
    Some(Group {
        what: worst.group.clone(),
        scores: scores(rows)?,
        worst: worst.what.clone(),
        worst_error,
    })
}
