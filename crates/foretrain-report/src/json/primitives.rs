//! The JSON of `calibrate primitives`.

use foretrain_core::Ledger;
use foretrain_cost::primitives::{FittedLine, Operation};
use foretrain_predict::primitives::PrimitivesAnswer;
use schemars::JsonSchema;
use serde::Serialize;

use super::common::{LedgerReport, finite};

/// The primitives of a machine.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CalibratePrimitivesReport {
    /// `foretrain/calibrate-primitives/1`.
    pub schema: String,
    /// Where the times come from.
    pub source: String,
    /// The file they were written to.
    pub written_to: Option<String>,
    /// Those that were measured.
    pub lines: Vec<PrimitiveLineReport>,
    /// Those that nobody measured, for which usual figures stand in the file.
    pub assumed: Vec<String>,
    /// What the figures are good for, in sentences.
    pub advice: Vec<String>,
    /// What reading tables met.
    pub ledger: LedgerReport,
}

/// What a primitive takes: the larger of its floor and of `offset + bytes x ns_per_byte`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PrimitiveLineReport {
    /// `send`, `encode top-k`.
    pub operation: String,
    /// Where the line meets zero bytes, in us; may be below zero.
    pub offset_us: f64,
    /// Slope.
    pub ns_per_byte: f64,
    /// The slope as a decimal rate in GB/s; `null` if size does not matter.
    pub gb_per_s: Option<f64>,
    /// What even the smallest buffer takes, in us.
    pub floor_us: f64,
    /// Relative standard deviation of a time from the line.
    pub relative_spread: f64,
    /// Median of the relative distances of the points from the line.
    pub median_error: f64,
    /// The largest of them.
    pub worst_error: f64,
    /// What the line was fitted to, by size.
    pub points: Vec<PrimitivePointReport>,
}

/// What was measured of one size.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PrimitivePointReport {
    /// Of the buffer.
    pub size_bytes: u64,
    /// Median time in us.
    pub median_us: f64,
    /// What the line says, in us.
    pub line_us: f64,
    /// Relative standard deviation of the times.
    pub spread: f64,
    /// Measured times.
    pub repeats: u64,
}

impl CalibratePrimitivesReport {
    /// From an answer. `kept_in` is the file it was written to, `ledger` what reading met.
    pub fn new(answer: &PrimitivesAnswer, kept_in: Option<&str>, ledger: &Ledger) -> Self {
        Self {
            schema: "foretrain/calibrate-primitives/1".into(),
            source: answer.fitted.primitives.source.clone(),
            written_to: kept_in.map(Into::into),
            lines: answer.fitted.lines.iter().map(Into::into).collect(),
            assumed: answer.fitted.assumed.iter().copied().map(Operation::describe).collect(),
            advice: answer.advice.clone(),
            ledger: ledger.into(),
        }
    }
}

impl From<&FittedLine> for PrimitiveLineReport {
    fn from(line: &FittedLine) -> Self {
        let cost = line.fit.cost;
        let points = line.points.iter().map(|point| PrimitivePointReport {
            size_bytes: point.bytes.get(),
            median_us: finite(point.median_ns / 1e3),
            line_us: finite(cost.ns(point.bytes.as_f64()) / 1e3),
            spread: finite(point.spread),
            repeats: point.repeats as u64,
        });
        Self {
            operation: line.operation.describe(),
            offset_us: finite(cost.offset_ns / 1e3),
            ns_per_byte: finite(cost.ns_per_byte),
            gb_per_s: (cost.ns_per_byte > 0.0).then(|| finite(1.0 / cost.ns_per_byte)),
            floor_us: finite(cost.floor_ns / 1e3),
            relative_spread: finite(cost.relative_spread),
            median_error: finite(line.fit.median_error),
            worst_error: finite(line.fit.worst),
            points: points.collect(),
        }
    }
}
