//! `foretrain inspect` on logs of collective benchmarks.

use std::path::PathBuf;

use foretrain::core::InputError;
use foretrain::graph::CollectiveKind;
use foretrain::ingest::collective_log::{self, LogOptions};
use foretrain::report::json::{self, CollectiveLogReport};
use foretrain::report::text;

use super::{Answer, logs};
use crate::failure::Result;
use crate::output::Output;

/// Answers if the inputs are such logs: "no" if neither a row nor a fact could be read from them.
pub(crate) fn run(
    inputs: &[PathBuf],
    kind: Option<CollectiveKind>,
    output: &Output<'_>,
) -> Result<Option<Answer>> {
    let Some(paths) = collective_log::find(inputs)? else {
        return match kind {
            None => Ok(None),
            Some(_) => Err(InputError::new("--collective is for logs of collective benchmarks")
                .hint("a trace names its collectives itself")
                .into()),
        };
    };
    let report = read(&paths, &LogOptions { kind })?;
    give(&report, output)?;
    Ok(Some(if report.runs.is_empty() && report.nccl.is_empty() {
        Answer::No
    } else {
        Answer::Yes
    }))
}

/// Reads logs and says what is in them.
pub(super) fn read(paths: &[PathBuf], options: &LogOptions) -> Result<CollectiveLogReport> {
    let (logs, ledger) = logs::read_all(paths, options)?;
    Ok(CollectiveLogReport::new(&logs, &ledger))
}

/// Gives what is said of logs as the answer.
pub(super) fn give(report: &CollectiveLogReport, output: &Output<'_>) -> Result<()> {
    output.give(|| json::to_text(report), |style| text::collective_logs(report, style))
}
