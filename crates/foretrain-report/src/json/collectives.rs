//! The JSON of `collectives`.

use foretrain_core::{Bandwidth, Bytes, Estimate, Ledger};
use foretrain_predict::collectives::{
    Choice, CollectivesAnswer, ComparedRow, Comparison, LeftOut, Plateau, Point, Setting, Step,
    StepPoint, Sweep, Uncompared, bus_range, dominating_term, latency_share,
};
use foretrain_predict::validate::Scores;
use schemars::JsonSchema;
use serde::Serialize;

use super::common::{EvidenceReport, LedgerReport, Range, RangeNs, finite};

/// Collectives on a cluster.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CollectivesReport {
    /// `foretrain/collectives/1`.
    pub schema: String,
    /// The cluster.
    pub cluster: String,
    /// Its device.
    pub device: String,
    /// Devices on a node.
    pub devices_per_node: u32,
    /// What-if: bytes that a connection may have in flight.
    pub window_bytes: Option<u64>,
    /// What-if: links of a ring that have the added latency; `null` if all have it.
    pub late_links: Option<u32>,
    /// By operation, then ranks, then added latency, as asked.
    pub sweeps: Vec<SweepReport>,
    /// Numbers of ranks that could not be answered.
    pub left_out: Vec<LeftOutReport>,
    /// Measured runs beside the model.
    pub comparisons: Vec<ComparisonReport>,
    /// Measured runs that could not be put beside it.
    pub uncompared: Vec<UncomparedReport>,
    /// What the times rest on.
    pub evidence: Vec<EvidenceReport>,
    /// What reading the logs met.
    pub ledger: LedgerReport,
}

/// One operation on one group over sizes.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SweepReport {
    /// Of what.
    pub setting: SettingReport,
    /// By size.
    pub rows: Vec<PredictedRowReport>,
    /// What-ifs of the network, each on top of those before it.
    pub what_ifs: Vec<StepReport>,
    /// The fastest way from each size on.
    pub choices: Vec<ChoiceReport>,
    /// From this size on launch and propagation take less than a tenth of the time; `null` if
    /// they always take more.
    pub latency_minor_from_bytes: Option<u64>,
    /// What the bus bandwidth rises to.
    pub plateau: PlateauReport,
    /// What may look wrong and is not.
    pub notes: Vec<String>,
}

/// An operation on a group.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SettingReport {
    /// Operation (`all-reduce`).
    pub kind: String,
    /// Ranks of the group.
    pub ranks: u32,
    /// Nodes they are on.
    pub nodes: u32,
    /// Most of them on one node.
    pub ranks_per_node: u32,
    /// Payload rate of a rank to others of its node.
    pub intra_gb_per_s: f64,
    /// Payload rate that the group has between nodes, per node; a window's cap included.
    pub inter_gb_per_s: f64,
    /// What-if: added to each hop between nodes, or to some, one way.
    pub extra_latency_ns: i64,
}

/// One predicted size; bandwidths in decimal gigabytes per second.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PredictedRowReport {
    /// The larger of a rank's input and output buffer.
    pub size_bytes: u64,
    /// How long it takes.
    pub time: RangeNs,
    /// Size over time.
    pub algbw_gb_per_s: f64,
    /// The same times the factor of the operation.
    pub busbw_gb_per_s: Range,
    /// Algorithm (`Ring`).
    pub algorithm: String,
    /// Protocol (`LL128`), with NCCL and RCCL.
    pub protocol: Option<String>,
    /// From the call to the first byte.
    pub launch_ns: i64,
    /// Latency of the hops.
    pub propagation_ns: i64,
    /// Bytes over the narrowest link.
    pub transfer_ns: i64,
    /// Arithmetic that the transfer does not hide.
    pub reduction_ns: i64,
    /// The largest of these four: `launch`, `propagation`, `transfer` or `reduction`.
    pub dominates: String,
    /// Launch and propagation over the time, 0 to 1.
    pub latency_share: f64,
}

/// A what-if of the network on top of those before it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct StepReport {
    /// What it changes: `topology`, `scatter`, `concurrent` or `degrade`.
    pub kind: String,
    /// The change in words.
    pub what: String,
    /// By size, as the rows of the sweep.
    pub rows: Vec<StepRowReport>,
}

/// A size under a what-if.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct StepRowReport {
    /// The larger of a rank's input and output buffer.
    pub size_bytes: u64,
    /// How long it takes; of several groups the slowest.
    pub time: RangeNs,
    /// Time over that of the cluster as it is.
    pub times: f64,
    /// As nccl-tests defines it.
    pub busbw_gb_per_s: f64,
    /// The link that holds it back longest; `null` if the library alone does.
    pub bottleneck: Option<String>,
}

/// The way that is fastest from a size on.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ChoiceReport {
    /// Smallest size.
    pub from_bytes: u64,
    /// Algorithm.
    pub algorithm: String,
    /// Protocol, with NCCL and RCCL.
    pub protocol: Option<String>,
}

/// The bus bandwidth of messages so large that nothing else matters.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PlateauReport {
    /// How high it is.
    pub busbw_gb_per_s: f64,
    /// What keeps it there: `links` in a node, `nics`, `oversubscription` of a level, `window`,
    /// `reduction`, a CPU `thread`; `none` if nothing is moved.
    pub limit: String,
}

/// A number of ranks without an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LeftOutReport {
    /// How many were asked.
    pub ranks: u32,
    /// Why not.
    pub why: String,
}

/// A measured run beside the model.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ComparisonReport {
    /// File.
    pub path: String,
    /// First line of the table.
    pub first_line: u64,
    /// Last line of the table.
    pub last_line: u64,
    /// Of what.
    pub setting: SettingReport,
    /// Whether this operation and number of ranks were asked too.
    pub asked: bool,
    /// In the order of the log.
    pub rows: Vec<ComparedRowReport>,
    /// Errors of the predicted times; `null` if no row has a size.
    pub scores: Option<ComparisonScores>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// One measured size.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ComparedRowReport {
    /// Line of the file; 0 in a JSON document.
    pub line: u64,
    /// The shorter of the times in and out of place.
    pub measured_ns: i64,
    /// Size over that time, times the factor of the operation.
    pub measured_busbw_gb_per_s: f64,
    /// Predicted over measured time, less one, in percent.
    pub error_percent: f64,
    /// Whether the measured time is in the predicted 80 % interval.
    pub inside: bool,
    /// The model's answer.
    pub predicted: PredictedRowReport,
}

/// Errors over a run, in percent of the measured times.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ComparisonScores {
    /// Rows.
    pub n: usize,
    /// Median of the absolute errors.
    pub median_ape: f64,
    /// Mean of the absolute errors.
    pub mape: f64,
    /// Largest absolute error.
    pub max_ape: f64,
    /// Mean of the signed errors; above zero where predictions are too long.
    pub bias: f64,
    /// Share of measured times in the predicted 80 % interval.
    pub coverage80: Option<f64>,
}

/// A measured run without a prediction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UncomparedReport {
    /// File.
    pub path: String,
    /// First line of the table.
    pub first_line: u64,
    /// Last line of the table.
    pub last_line: u64,
    /// Rows in it.
    pub rows: usize,
    /// Why.
    pub why: String,
}

impl CollectivesReport {
    /// A report of the answer; `ledger` is what reading the logs met.
    pub fn new(answer: &CollectivesAnswer, ledger: &Ledger) -> Self {
        Self {
            schema: "foretrain/collectives/1".into(),
            cluster: answer.cluster.clone(),
            device: answer.device.clone(),
            devices_per_node: answer.devices_per_node,
            window_bytes: answer.window.map(Bytes::get),
            late_links: answer.late_links,
            sweeps: answer.sweeps.iter().map(Into::into).collect(),
            left_out: answer.left_out.iter().map(Into::into).collect(),
            comparisons: answer.comparisons.iter().map(Into::into).collect(),
            uncompared: answer.uncompared.iter().map(Into::into).collect(),
            evidence: answer.evidence.iter().map(Into::into).collect(),
            ledger: ledger.into(),
        }
    }
}

fn gb(rate: Bandwidth) -> f64 {
    finite(rate.gb_per_sec())
}

impl From<&Sweep> for SweepReport {
    fn from(sweep: &Sweep) -> Self {
        Self {
            setting: (&sweep.setting).into(),
            rows: sweep.points.iter().map(Into::into).collect(),
            what_ifs: sweep.steps.iter().map(|step| StepReport::new(step, sweep)).collect(),
            choices: sweep.choices.iter().map(Into::into).collect(),
            latency_minor_from_bytes: sweep.latency_minor_from.map(Bytes::get),
            plateau: (&sweep.plateau).into(),
            notes: sweep.notes.clone(),
        }
    }
}

impl From<&Setting> for SettingReport {
    fn from(setting: &Setting) -> Self {
        Self {
            kind: setting.kind.to_string(),
            ranks: setting.ranks,
            nodes: setting.nodes,
            ranks_per_node: setting.ranks_per_node,
            intra_gb_per_s: gb(setting.intra_bandwidth),
            inter_gb_per_s: gb(setting.inter_bandwidth),
            extra_latency_ns: setting.extra_latency.nanos(),
        }
    }
}

impl From<&Point> for PredictedRowReport {
    fn from(point: &Point) -> Self {
        let predicted = &point.predicted;
        let bus = bus_range(predicted);
        Self {
            size_bytes: point.size.get(),
            time: predicted.time.into(),
            algbw_gb_per_s: gb(predicted.algorithm_bandwidth),
            busbw_gb_per_s: Range::from(Estimate {
                value: bus.value.gb_per_sec(),
                low: bus.low.gb_per_sec(),
                high: bus.high.gb_per_sec(),
            }),
            algorithm: predicted.algorithm.as_str().into(),
            protocol: predicted.protocol.map(|protocol| protocol.as_str().into()),
            launch_ns: predicted.terms.launch.nanos(),
            propagation_ns: predicted.terms.propagation.nanos(),
            transfer_ns: predicted.terms.transfer.nanos(),
            reduction_ns: predicted.terms.reduction.nanos(),
            dominates: dominating_term(&predicted.terms).as_str().into(),
            latency_share: finite(latency_share(&predicted.terms)),
        }
    }
}

impl StepReport {
    fn new(step: &Step, sweep: &Sweep) -> Self {
        let row = |(point, now): (&Point, &StepPoint)| StepRowReport {
            size_bytes: point.size.get(),
            time: now.time.into(),
            times: finite(now.times),
            busbw_gb_per_s: gb(now.bus_bandwidth),
            bottleneck: now.bottleneck.clone(),
        };
        Self {
            kind: step.kind.as_str().into(),
            what: step.what.clone(),
            rows: sweep.points.iter().zip(&step.points).map(row).collect(),
        }
    }
}

impl From<&Choice> for ChoiceReport {
    fn from(choice: &Choice) -> Self {
        Self {
            from_bytes: choice.from.get(),
            algorithm: choice.algorithm.as_str().into(),
            protocol: choice.protocol.map(|protocol| protocol.as_str().into()),
        }
    }
}

impl From<&Plateau> for PlateauReport {
    fn from(plateau: &Plateau) -> Self {
        Self { busbw_gb_per_s: gb(plateau.bus_bandwidth), limit: plateau.limit.code().into() }
    }
}

impl From<&LeftOut> for LeftOutReport {
    fn from(left_out: &LeftOut) -> Self {
        Self { ranks: left_out.ranks, why: left_out.why.clone() }
    }
}

impl From<&Comparison> for ComparisonReport {
    fn from(comparison: &Comparison) -> Self {
        Self {
            path: comparison.source.clone(),
            first_line: comparison.lines.0,
            last_line: comparison.lines.1,
            setting: (&comparison.setting).into(),
            asked: comparison.asked,
            rows: comparison.rows.iter().map(Into::into).collect(),
            scores: comparison.scores.as_ref().map(Into::into),
            notes: comparison.notes.clone(),
        }
    }
}

impl From<&ComparedRow> for ComparedRowReport {
    fn from(row: &ComparedRow) -> Self {
        Self {
            line: row.line,
            measured_ns: row.measured.nanos(),
            measured_busbw_gb_per_s: gb(row.measured_bus_bandwidth),
            error_percent: finite(row.error_percent),
            inside: row.inside,
            predicted: (&Point { size: row.size, predicted: row.predicted.clone() }).into(),
        }
    }
}

impl From<&Scores> for ComparisonScores {
    fn from(scores: &Scores) -> Self {
        Self {
            n: scores.n,
            median_ape: finite(scores.median_ape),
            mape: finite(scores.mape),
            max_ape: finite(scores.max_ape),
            bias: finite(scores.bias),
            coverage80: scores.coverage80.map(finite),
        }
    }
}

impl From<&Uncompared> for UncomparedReport {
    fn from(run: &Uncompared) -> Self {
        Self {
            path: run.source.clone(),
            first_line: run.lines.0,
            last_line: run.lines.1,
            rows: run.rows,
            why: run.why.clone(),
        }
    }
}
