//! The JSON of `calibrate kernels`.

use foretrain_core::Ledger;
use foretrain_cost::kernels::{Correction, OddKernel};
use foretrain_predict::kernels::KernelsAnswer;
use schemars::JsonSchema;
use serde::Serialize;

use super::common::{LedgerReport, finite};

/// Corrections of a device's kernel times.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CalibrateKernelsReport {
    /// `foretrain/calibrate-kernels/1`.
    pub schema: String,
    /// The device, by its name in the catalogue.
    pub device: String,
    /// What was measured.
    pub source: String,
    /// The file they were written to.
    pub written_to: Option<String>,
    /// Measured matrix products.
    pub samples: usize,
    /// One per class of types.
    pub corrections: Vec<KernelCorrectionReport>,
    /// Median error of the shipped curves, relative.
    pub error_before: f64,
    /// The same corrected, each product by a fit to four fifths of the others.
    pub error_after: f64,
    /// Products far off the corrected curve, farthest first.
    pub odd: Vec<OddKernelReport>,
    /// Rows or kernels that were left out.
    pub left_out: Vec<LeftOutKernelsReport>,
    /// What is worth a second look.
    pub notes: Vec<String>,
    /// What reading recordings met.
    pub ledger: LedgerReport,
}

/// How products of some types differ from the shipped curve.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct KernelCorrectionReport {
    /// `f16, bf16`.
    pub types: String,
    /// Measured over shipped time of long kernels.
    pub factor: f64,
    /// What is added to every kernel, in us.
    pub offset_us: f64,
    /// Error that four of five products stay below, relative.
    pub relative_spread: f64,
    /// Products.
    pub products: u32,
}

/// A product far off the curve.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct OddKernelReport {
    /// Line, or shape and kernel.
    pub place: String,
    /// Measured time.
    pub measured_us: f64,
    /// Time by the corrected curve.
    pub expected_us: f64,
}

/// What was left out for one reason.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LeftOutKernelsReport {
    /// The reason.
    pub why: String,
    /// Rows or kernels.
    pub count: usize,
    /// The first of them.
    pub first: String,
}

impl CalibrateKernelsReport {
    /// From an answer. `kept_in` is the file it was written to, `ledger` what reading met.
    pub fn new(answer: &KernelsAnswer, kept_in: Option<&str>, ledger: &Ledger) -> Self {
        let fitted = &answer.fitted;
        let left_out = answer.left_out.iter().map(|(why, met)| LeftOutKernelsReport {
            why: why.clone(),
            count: met.count,
            first: met.first.clone(),
        });
        Self {
            schema: "foretrain/calibrate-kernels/1".into(),
            device: fitted.calibration.device.clone(),
            source: fitted.calibration.source.clone(),
            written_to: kept_in.map(Into::into),
            samples: answer.samples,
            corrections: fitted.calibration.corrections().iter().map(Into::into).collect(),
            error_before: finite(fitted.error_before),
            error_after: finite(fitted.error_after),
            odd: fitted.odd.iter().map(Into::into).collect(),
            left_out: left_out.collect(),
            notes: fitted.notes.clone(),
            ledger: ledger.into(),
        }
    }
}

impl From<&Correction> for KernelCorrectionReport {
    fn from(correction: &Correction) -> Self {
        Self {
            types: correction.types().into(),
            factor: finite(correction.factor),
            offset_us: finite(correction.offset_us),
            relative_spread: finite(correction.spread),
            products: correction.rows,
        }
    }
}

impl From<&OddKernel> for OddKernelReport {
    fn from(odd: &OddKernel) -> Self {
        Self {
            place: odd.place.clone(),
            measured_us: odd.measured.micros_f64(),
            expected_us: odd.expected.micros_f64(),
        }
    }
}
