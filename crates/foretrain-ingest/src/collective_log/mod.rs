//! Logs of collective benchmarks: nccl-tests and rccl-tests of every generation, `nccom-test`,
//! scripts on top of `torch.distributed`; and what NCCL says of itself in any log.
//!
//! ```text
//! lines ──prefix──▶ text tables (table, columns, row) ─┐
//!       ──sweep, csv, json────────────────────────────┴─▶ drafts ──assemble, ranks, derive, check──▶ runs
//!       ──nccl─────────────────────────────────────────────────────────────────────────────────▶ facts
//! ```
//!
//! People keep such logs as their shells, launchers and schedulers left them. So nothing is
//! assumed about what stands around a table, and everything about a row: a row is taken only if
//! it is complete and its figures belong together. A row that other output has torn apart is
//! lost, with its line in the ledger, and never put together from parts that lay apart.
//!
//! Times in such logs are microseconds, bandwidths decimal gigabytes per second.

mod assemble;
mod check;
mod columns;
mod context;
mod csv;
mod derive;
mod draft;
mod facts;
mod find;
mod json;
mod kind;
mod lines;
mod long;
mod nccl;
mod number;
mod prefix;
mod ranks;
mod row;
mod sweep;
mod table;

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use foretrain_core::{Bandwidth, Bytes, DType, InputError, Ledger, Nanos, Result};
use foretrain_graph::CollectiveKind;

use crate::source::{open, open_bytes, read_up_to, sniff::SNIFF_BYTES};

pub(crate) use csv::fields;
pub use find::{EXPECTED, find, logs_among, looks_like};
pub use kind::kind_of;
pub(crate) use lines::for_each_line;
pub use nccl::{
    ChannelGraph, Channels, Choice, Communicator, Enabled, NcclFacts, Network, Pattern, TunedCost,
};

/// The runs of one log, in order.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectiveLog {
    /// Where it was read from.
    pub source: String,
    /// One entry per sweep over sizes.
    pub runs: Vec<Run>,
    /// What the library said of itself under `NCCL_DEBUG=INFO`; empty if it said nothing.
    pub nccl: NcclFacts,
}

/// A value and how it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known<T> {
    /// The value.
    pub value: T,
    /// How it is known, for people ("rank lines", "file name").
    pub how: String,
    /// Deduced by a rule that is usually right, instead of stated in the log.
    pub inferred: bool,
}

impl<T> Known<T> {
    fn stated(value: T, how: &str) -> Self {
        Self { value, how: how.to_owned(), inferred: false }
    }

    fn inferred(value: T, how: &str) -> Self {
        Self { value, how: how.to_owned(), inferred: true }
    }
}

/// One sweep of one operation on one element type.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The operation; [`CollectiveKind::Unknown`] if the log does not tell.
    pub kind: Known<CollectiveKind>,
    /// Devices that took part; `None` if the log does not tell.
    pub ranks: Option<Known<u32>>,
    /// Hosts that took part; `None` if the log does not name them all.
    pub nodes: Option<u32>,
    /// The device as its driver names it, if all ranks had the same.
    pub device: Option<String>,
    /// Element type.
    pub dtype: Option<DType>,
    /// Reduction ("sum"), where there is one.
    pub redop: Option<String>,
    /// Root rank, where there is one.
    pub root: Option<u32>,
    /// Times are those of the issuing thread, not of the operation.
    pub cpu_time: bool,
    /// Times were not printed, but computed from sizes and bandwidths.
    pub time_inferred: bool,
    /// First and last line of the run's table in the text, counted from one.
    pub lines: (u64, u64),
    /// In the order of the log.
    pub rows: Vec<Row>,
}

/// One size.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Line of the text, counted from one.
    pub line: u64,
    /// The larger of a rank's input and output buffer.
    pub size: Bytes,
    /// Elements of the call, if printed.
    pub count: Option<u64>,
    /// With separate buffers.
    pub out_of_place: Option<Timing>,
    /// With one buffer.
    pub in_place: Option<Timing>,
    /// Processor time that one call took of each rank, where the table tells.
    pub processor: Option<Nanos>,
}

/// Figures of one size in one placement, as printed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timing {
    /// Mean time of one operation.
    pub time: Nanos,
    /// Size over time; `None` if it was no number.
    pub algbw: Option<Bandwidth>,
    /// The same times the operation's factor; `None` if it was no number.
    pub busbw: Option<Bandwidth>,
    /// What the tool's check of the results said.
    pub check: Check,
}

impl Timing {
    /// Whether the tool found wrong results: then the time may mean nothing.
    pub fn is_wrong(&self) -> bool {
        matches!(self.check, Check::Wrong(elements) if elements > 0)
    }
}

/// Outcome of a benchmark's check of its results.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Check {
    /// There was none.
    None,
    /// Elements that were wrong.
    Wrong(u64),
    /// Largest deviation of an element (tools before 2022).
    Deviation(f64),
}

/// How to read a log.
#[derive(Clone, Debug, Default)]
pub struct LogOptions {
    /// The operation, for logs that do not name theirs; overrides those that do.
    pub kind: Option<CollectiveKind>,
}

/// Reads one log, plain or packed.
///
/// # Errors
/// If the file cannot be read or holds no table of a collective benchmark.
pub fn read(path: &Path, options: &LogOptions) -> Result<(CollectiveLog, Ledger)> {
    let text = open(path, false, &Arc::default())?;
    read_text(text, &path.display().to_string(), options)
}

/// Reads one log from memory, plain or packed. `path` is for messages and for what its name tells.
///
/// # Errors
/// As [`read`].
pub fn read_bytes(
    bytes: &[u8],
    path: &str,
    options: &LogOptions,
) -> Result<(CollectiveLog, Ledger)> {
    let text = open_bytes(bytes).map_err(|error| InputError::io(&error, path))?;
    read_text(text, path, options)
}

fn read_text(
    mut text: impl Read,
    path: &str,
    options: &LogOptions,
) -> Result<(CollectiveLog, Ledger)> {
    let mut ledger = Ledger::new();
    let head = read_up_to(&mut text, SNIFF_BYTES);
    let is_document = json::looks_like_document(&head);
    let whole = head.as_slice().chain(text);
    let (drafts, nccl) = if is_document {
        (json::read_document(whole, path, &mut ledger)?, NcclFacts::default())
    } else {
        table::read(whole, path, options.kind, &mut ledger)?
    };
    let runs = assemble::runs(drafts, path, options, &mut ledger);
    if runs.is_empty() && ledger.is_empty() && nccl.is_empty() {
        return Err(InputError::new("found no table of a collective benchmark")
            .in_file(path)
            .hint(
                "expected the output of nccl-tests or rccl-tests (text, CSV or JSON), a table with \
                 titles and units, or what NCCL prints under NCCL_DEBUG=INFO",
            ));
    }
    Ok((CollectiveLog { source: path.to_owned(), runs, nccl }, ledger))
}
