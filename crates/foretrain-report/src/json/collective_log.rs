//! The JSON of `inspect` on logs of collective benchmarks.

use foretrain_core::{Bandwidth, DType, Ledger};
use foretrain_ingest::collective_log::{Check, CollectiveLog, Row, Run, Timing};
use schemars::JsonSchema;
use serde::Serialize;

use super::common::{LedgerReport, finite};
use super::nccl::NcclReport;

/// What is in logs of collective benchmarks.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CollectiveLogReport {
    /// `foretrain/inspect-log/1`.
    pub schema: String,
    /// Runs in the order of the files and within them.
    pub runs: Vec<CollectiveRunReport>,
    /// What NCCL or RCCL said of itself, one entry per file in which it did.
    pub nccl: Vec<NcclReport>,
    /// What reading met.
    pub ledger: LedgerReport,
}

/// One sweep over sizes.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CollectiveRunReport {
    /// File.
    pub path: String,
    /// First line of the table.
    pub first_line: u64,
    /// Last line of the table.
    pub last_line: u64,
    /// Operation (`all-reduce`), or `unknown`.
    pub kind: String,
    /// How the operation is known.
    pub kind_source: String,
    /// Devices that took part, if the log tells.
    pub ranks: Option<u32>,
    /// How the number of ranks is known.
    pub ranks_source: Option<String>,
    /// Whether it was deduced rather than stated.
    pub ranks_inferred: bool,
    /// Hosts that took part, if the log names them all.
    pub nodes: Option<u32>,
    /// Device, if all ranks had the same.
    pub device: Option<String>,
    /// Element type.
    pub dtype: Option<String>,
    /// Reduction, where there is one.
    pub redop: Option<String>,
    /// Root rank, where there is one.
    pub root: Option<u32>,
    /// Times are those of the issuing thread.
    pub cpu_time: bool,
    /// Times were not printed, but computed from sizes and bandwidths.
    pub time_inferred: bool,
    /// Sizes in order.
    pub rows: Vec<CollectiveRowReport>,
}

/// One size.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CollectiveRowReport {
    /// Line of the file; 0 in a JSON document.
    pub line: u64,
    /// The larger of a rank's input and output buffer.
    pub size_bytes: u64,
    /// Elements, if printed.
    pub count: Option<u64>,
    /// With separate buffers.
    pub out_of_place: Option<TimingReport>,
    /// With one buffer.
    pub in_place: Option<TimingReport>,
}

/// Figures of one placement as printed; bandwidths in decimal gigabytes per second.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TimingReport {
    /// Mean time of one operation.
    pub time_ns: i64,
    /// Size over time.
    pub algbw_gb_per_s: Option<f64>,
    /// The same times the factor of the operation.
    pub busbw_gb_per_s: Option<f64>,
    /// Elements found wrong; `null` if that was not counted.
    pub wrong: Option<u64>,
    /// Largest deviation of an element, of old tools.
    pub deviation: Option<f64>,
}

impl CollectiveLogReport {
    /// A report of these logs.
    pub fn new(logs: &[CollectiveLog], ledger: &Ledger) -> Self {
        let runs = logs.iter().flat_map(|log| log.runs.iter().map(|run| run_report(log, run)));
        Self {
            schema: "foretrain/inspect-log/1".into(),
            runs: runs.collect(),
            nccl: logs.iter().filter_map(NcclReport::new).collect(),
            ledger: ledger.into(),
        }
    }
}

fn run_report(log: &CollectiveLog, run: &Run) -> CollectiveRunReport {
    CollectiveRunReport {
        path: log.source.clone(),
        first_line: run.lines.0,
        last_line: run.lines.1,
        kind: run.kind.value.to_string(),
        kind_source: run.kind.how.clone(),
        ranks: run.ranks.as_ref().map(|ranks| ranks.value),
        ranks_source: run.ranks.as_ref().map(|ranks| ranks.how.clone()),
        ranks_inferred: run.ranks.as_ref().is_some_and(|ranks| ranks.inferred),
        nodes: run.nodes,
        device: run.device.clone(),
        dtype: run.dtype.map(|dtype: DType| dtype.to_string()),
        redop: run.redop.clone(),
        root: run.root,
        cpu_time: run.cpu_time,
        time_inferred: run.time_inferred,
        rows: run.rows.iter().map(row_report).collect(),
    }
}

fn row_report(row: &Row) -> CollectiveRowReport {
    CollectiveRowReport {
        line: row.line,
        size_bytes: row.size.get(),
        count: row.count,
        out_of_place: row.out_of_place.as_ref().map(Into::into),
        in_place: row.in_place.as_ref().map(Into::into),
    }
}

impl From<&Timing> for TimingReport {
    fn from(timing: &Timing) -> Self {
        let rate = |rate: Option<Bandwidth>| rate.map(|rate| finite(rate.gb_per_sec()));
        let (wrong, deviation) = match timing.check {
            Check::None => (None, None),
            Check::Wrong(elements) => (Some(elements), None),
            Check::Deviation(deviation) => (None, Some(finite(deviation))),
        };
        Self {
            time_ns: timing.time.nanos(),
            algbw_gb_per_s: rate(timing.algbw),
            busbw_gb_per_s: rate(timing.busbw),
            wrong,
            deviation,
        }
    }
}
