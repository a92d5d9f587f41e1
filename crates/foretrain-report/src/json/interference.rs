//! The JSON of `calibrate interference`.

use foretrain_core::Ledger;
use foretrain_predict::interference::calibrate::{Calibration, HeldOut};
use schemars::JsonSchema;
use serde::Serialize;

use super::common::LedgerReport;

/// A fitted interference model. The model itself is in the file that was written.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CalibrateInterferenceReport {
    /// `foretrain/calibrate-interference/1`.
    pub schema: String,
    /// What slows down what: kernels beside communication, or jobs beside jobs.
    pub domain: String,
    /// Rows the model was fitted to.
    pub rows: usize,
    /// Errors by group that was left out; empty if nothing could be.
    pub held_out: Vec<HeldOutReport>,
    /// The same over all rows.
    pub overall: Option<HeldOutReport>,
    /// What was left out.
    pub notes: Vec<String>,
    /// The file it was written to.
    pub written_to: Option<String>,
    /// What reading met.
    pub ledger: LedgerReport,
}

/// Mean absolute errors, percent of the measured time.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct HeldOutReport {
    /// File or device; `all` over all rows.
    pub group: String,
    /// Rows.
    pub rows: usize,
    /// As if nothing slowed down.
    pub none_mape: f64,
    /// With the constant factor 1.3.
    pub constant_mape: f64,
    /// With the formula, its constants from the others.
    pub formula_mape: f64,
    /// With trees fitted to the others.
    pub learned_mape: f64,
}

impl CalibrateInterferenceReport {
    /// The report of a calibration whose model was written to `written_to`.
    pub fn new(calibration: &Calibration, written_to: Option<&str>, ledger: &Ledger) -> Self {
        let overlap = calibration.file.overlap.as_ref().map(|domain| domain.trained_on.rows);
        let jobs = calibration.file.colocation.as_ref().map(|domain| domain.trained_on.rows);
        Self {
            schema: "foretrain/calibrate-interference/1".into(),
            domain: calibration.domain.into(),
            rows: overlap.or(jobs).unwrap_or(0),
            held_out: calibration.held_out.iter().map(held_out).collect(),
            overall: calibration.overall.as_ref().map(held_out),
            notes: calibration.notes.clone(),
            written_to: written_to.map(str::to_owned),
            ledger: ledger.into(),
        }
    }
}

fn held_out(row: &HeldOut) -> HeldOutReport {
    HeldOutReport {
        group: row.group.clone(),
        rows: row.rows,
        none_mape: row.errors.none,
        constant_mape: row.errors.constant,
        formula_mape: row.errors.formula,
        learned_mape: row.errors.learned,
    }
}
