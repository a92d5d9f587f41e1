//! The JSON of `calibrate collectives`.

use foretrain_core::{Bytes, Ledger};
use foretrain_cost::calibrate::{Fitted, Residual};
use foretrain_hardware::collectives::{Choice, Sweep};
use foretrain_predict::collectives::calibrate::{CalibrateAnswer, LeftOutRows, Reach, UsedRun};
use schemars::JsonSchema;
use serde::Serialize;

use super::common::{LedgerReport, finite};
use crate::text::calibration_findings;

/// A cluster calibrated from logs of collective benchmarks.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CalibrateCollectivesReport {
    /// `foretrain/calibrate-collectives/1`.
    pub schema: String,
    /// The calibrated cluster's name.
    pub name: String,
    /// The cluster or node type of the catalogue that it is otherwise.
    pub base: String,
    /// Whether everybody's catalogue has the base; else its file is needed too.
    pub self_contained: bool,
    /// The file it was written to.
    pub written_to: Option<String>,
    /// Runs that took part.
    pub used: Vec<CalibrateRunReport>,
    /// What did not.
    pub left_out: Vec<CalibrateLeftOutReport>,
    /// What logs say of the library they ran with.
    pub libraries: Vec<CalibrateLibraryReport>,
    /// How the library picks on several nodes: by its cost table (`tuner`) or whatever is `fastest`.
    pub choice: String,
    /// The NCCL version whose cost table fits best; `null` if the cluster's own does.
    pub nccl: Option<String>,
    /// Constants that the rows rest on.
    pub constants: Vec<CalibrateConstantReport>,
    /// What the library is taken to run, by operation, ranks and size.
    pub measured: Vec<CalibrateSweepReport>,
    /// Every row beside the fitted constants.
    pub residuals: Vec<CalibrateResidualReport>,
    /// Median distance of the kept rows from the fitted constants, relative.
    pub typical_residual: f64,
    /// Relative scatter of the rows about the calibrated model.
    pub noise: f64,
    /// What is odd.
    pub findings: Vec<CalibrateFindingReport>,
    /// Where to trust it.
    pub trust: Vec<CalibrateTrustReport>,
    /// What reading the logs met.
    pub ledger: LedgerReport,
}

/// A run that took part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CalibrateRunReport {
    /// File.
    pub path: String,
    /// First line of the table.
    pub first_line: u64,
    /// Last line of the table.
    pub last_line: u64,
    /// Operation (`all-reduce`).
    pub kind: String,
    /// Ranks.
    pub ranks: u32,
    /// Nodes.
    pub nodes: u32,
    /// Rows that count.
    pub rows: usize,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// Rows that took no part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CalibrateLeftOutReport {
    /// File.
    pub path: String,
    /// First line.
    pub first_line: u64,
    /// Last line.
    pub last_line: u64,
    /// How many.
    pub rows: usize,
    /// Why.
    pub why: String,
}

/// What a log says of the library.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CalibrateLibraryReport {
    /// File.
    pub log: String,
    /// `NCCL 2.18.5+cuda12.2`.
    pub version: String,
}

/// A constant of the model. Spreads are standard deviations of its logarithm.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CalibrateConstantReport {
    /// Its key in catalogue files, which ends in its unit.
    pub name: String,
    /// What machines of the kind have.
    pub prior: f64,
    /// How far they lie apart.
    pub prior_spread: f64,
    /// Here.
    pub value: f64,
    /// How sure that is.
    pub spread: f64,
    /// Whether the logs speak of it.
    pub told: bool,
}

/// What is kept of one operation on one number of ranks.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CalibrateSweepReport {
    /// Operation.
    pub kind: String,
    /// Ranks.
    pub ranks: u32,
    /// Nodes.
    pub nodes: u32,
    /// It holds on these ranks only.
    pub odd: bool,
    /// By size.
    pub points: Vec<CalibratePointReport>,
}

/// One size.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CalibratePointReport {
    /// The larger of a rank's buffers.
    pub size_bytes: u64,
    /// Measured over fitted time.
    pub ratio: f64,
    /// Algorithm and protocol (`ring LL128`).
    pub way: Option<String>,
}

/// A row beside the fitted constants.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CalibrateResidualReport {
    /// Operation.
    pub kind: String,
    /// Ranks.
    pub ranks: u32,
    /// Nodes.
    pub nodes: u32,
    /// Size.
    pub size_bytes: u64,
    /// Measured.
    pub measured_ns: i64,
    /// Measured, as bus bandwidth.
    pub measured_busbw_gb_per_s: f64,
    /// Fitted.
    pub fitted_ns: i64,
    /// Part of the fit.
    pub kept: bool,
}

/// Something odd.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CalibrateFindingReport {
    /// `shortfall`, `outlier`, `odd-count`, `cliff`, `two-node-tree` or `drop`.
    pub code: String,
    /// Its rows are kept out of the fit.
    pub kept_out: bool,
    /// For people.
    pub message: String,
    /// What to do.
    pub advice: String,
}

/// Where to trust it for one operation.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CalibrateTrustReport {
    /// Operation.
    pub kind: String,
    /// On several nodes.
    pub many_nodes: bool,
    /// Fewest ranks measured.
    pub least_ranks: u32,
    /// Most ranks measured.
    pub most_ranks: u32,
    /// Smallest size measured.
    pub least_bytes: u64,
    /// Largest size measured.
    pub most_bytes: u64,
    /// Most ranks to which it carries.
    pub ranks_until: u32,
    /// Intervals inside first, then outside.
    pub intervals: Vec<CalibrateIntervalReport>,
}

/// How wide an 80 % interval is.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CalibrateIntervalReport {
    /// Ranks.
    pub ranks: u32,
    /// Size.
    pub size_bytes: u64,
    /// Half of it, relative.
    pub half_width: f64,
}

impl CalibrateCollectivesReport {
    /// A report of the answer; `written_to` is the file that keeps it, `ledger` what reading the
    /// logs met.
    pub fn new(answer: &CalibrateAnswer, written_to: Option<&str>, ledger: &Ledger) -> Self {
        let (report, calibration) = (&answer.report, &answer.file.calibration);
        let libraries = answer.libraries.iter().map(|(log, version)| CalibrateLibraryReport {
            log: log.clone(),
            version: version.clone(),
        });
        let said = calibration_findings(report, &answer.shortfalls);
        let findings = said.into_iter().map(|said| CalibrateFindingReport {
            code: said.code.into(),
            kept_out: said.kept_out,
            message: said.what,
            advice: said.advice,
        });
        Self {
            schema: "foretrain/calibrate-collectives/1".into(),
            name: answer.file.name.clone(),
            base: answer.file.base.name().into(),
            self_contained: answer.is_self_contained,
            written_to: written_to.map(Into::into),
            used: answer.used.iter().map(Into::into).collect(),
            left_out: answer.left_out.iter().map(Into::into).collect(),
            libraries: libraries.collect(),
            choice: match calibration.choice {
                Choice::Tuner => "tuner".into(),
                Choice::Fastest => "fastest".into(),
            },
            nccl: calibration.nccl.map(|(major, minor)| format!("{major}.{minor}")),
            constants: report.constants.iter().map(Into::into).collect(),
            measured: calibration.measured.iter().map(Into::into).collect(),
            residuals: report.residuals.iter().map(Into::into).collect(),
            typical_residual: finite(report.typical_residual),
            noise: finite(report.noise),
            findings: findings.collect(),
            trust: answer.reach.iter().map(Into::into).collect(),
            ledger: ledger.into(),
        }
    }
}

impl From<&UsedRun> for CalibrateRunReport {
    fn from(run: &UsedRun) -> Self {
        Self {
            path: run.source.clone(),
            first_line: run.lines.0,
            last_line: run.lines.1,
            kind: run.kind.to_string(),
            ranks: run.ranks,
            nodes: run.nodes,
            rows: run.rows,
            notes: run.notes.clone(),
        }
    }
}

impl From<&LeftOutRows> for CalibrateLeftOutReport {
    fn from(rows: &LeftOutRows) -> Self {
        Self {
            path: rows.source.clone(),
            first_line: rows.lines.0,
            last_line: rows.lines.1,
            rows: rows.rows,
            why: rows.why.clone(),
        }
    }
}

impl From<&Fitted> for CalibrateConstantReport {
    fn from(fitted: &Fitted) -> Self {
        Self {
            name: fitted.constant.name().into(),
            prior: finite(fitted.prior),
            prior_spread: finite(fitted.prior_spread),
            value: finite(fitted.value),
            spread: finite(fitted.spread),
            told: fitted.is_told(),
        }
    }
}

impl From<&Sweep> for CalibrateSweepReport {
    fn from(sweep: &Sweep) -> Self {
        let points = sweep.sizes.iter().zip(&sweep.ratios).enumerate();
        Self {
            kind: sweep.collective.clone(),
            ranks: sweep.ranks,
            nodes: sweep.nodes,
            odd: sweep.odd,
            points: points
                .map(|(at, (size, &ratio))| CalibratePointReport {
                    size_bytes: size.get(),
                    ratio: finite(ratio),
                    way: sweep.ways.get(at).cloned(),
                })
                .collect(),
        }
    }
}

impl From<&Residual> for CalibrateResidualReport {
    fn from(row: &Residual) -> Self {
        Self {
            kind: row.kind.to_string(),
            ranks: row.ranks,
            nodes: row.nodes,
            size_bytes: row.bytes.get(),
            measured_ns: row.measured.nanos(),
            measured_busbw_gb_per_s: finite(row.bus_bandwidth().gb_per_sec()),
            fitted_ns: row.modelled.nanos(),
            kept: row.kept,
        }
    }
}

impl From<&Reach> for CalibrateTrustReport {
    fn from(Reach { trust, widths }: &Reach) -> Self {
        let intervals = widths.iter().map(|width| CalibrateIntervalReport {
            ranks: width.ranks,
            size_bytes: width.bytes.get(),
            half_width: finite(width.half),
        });
        Self {
            kind: trust.kind.to_string(),
            many_nodes: trust.many_nodes,
            least_ranks: trust.ranks.0,
            most_ranks: trust.ranks.1,
            least_bytes: Bytes::get(trust.sizes.0),
            most_bytes: Bytes::get(trust.sizes.1),
            ranks_until: trust.ranks_until,
            intervals: intervals.collect(),
        }
    }
}
