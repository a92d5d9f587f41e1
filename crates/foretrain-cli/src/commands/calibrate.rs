//! `foretrain calibrate collectives`.

use std::path::{Path, PathBuf};

use foretrain::core::InputError;
use foretrain::graph::CollectiveKind;
use foretrain::ingest::collective_log::LogOptions;
use foretrain::predict::collectives::calibrate::{
    CalibrateAnswer, CalibrateOptions, calibrate_collectives,
};
use foretrain::report::json::{self, CalibrateCollectivesReport};
use foretrain::report::text;

use super::hardware::catalogue;
use super::{Answer, logs};
use crate::failure::Result;
use crate::output::{Output, write_file};

/// What to calibrate from, and where to keep it.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) on: String,
    pub(crate) logs: Vec<PathBuf>,
    pub(crate) kind: Option<CollectiveKind>,
    pub(crate) asked: CalibrateOptions,
    pub(crate) keep: Option<PathBuf>,
    pub(crate) force: bool,
    pub(crate) hardware: Vec<PathBuf>,
}

pub(crate) fn collectives(options: &Options, output: &Output<'_>) -> Result<Answer> {
    if let Some(path) = &options.keep {
        check_free(path, "-o", options.force)?;
    }
    let mut catalogue = catalogue(&options.hardware)?;
    let cluster = catalogue.cluster_or_file(&options.on)?;
    let log_options = LogOptions { kind: options.kind };
    let (logs, ledger) = logs::read(&options.logs, &log_options, "calibrate")?;
    let answer = calibrate_collectives(&cluster, &catalogue, &logs, &options.asked)?;
    if let Some(path) = &options.keep {
        write_file(path, answer.file.text(&comment(&answer, options)).as_bytes())?;
    }
    let kept_in = options.keep.as_ref().map(|path| path.display().to_string());
    output.give(
        || json::to_text(&CalibrateCollectivesReport::new(&answer, kept_in.as_deref(), &ledger)),
        |style| text::calibrate_collectives(&answer, kept_in.as_deref(), &ledger, style),
    )?;
    Ok(Answer::Yes)
}

/// A calibration may be the only trace of what it was made from. `option` names the file.
pub(in crate::commands) fn check_free(path: &Path, option: &str, force: bool) -> Result<()> {
    if force || !path.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return Ok(());
    }
    Err(InputError::new("there is such a file already")
        .in_file(path)
        .hint(format!("give another name with {option}, or --force to replace it"))
        .into())
}

/// The head of the file.
fn comment(answer: &CalibrateAnswer, options: &Options) -> Vec<String> {
    let logs: Vec<String> = options.logs.iter().map(|log| log.display().to_string()).collect();
    let (name, base) = (&answer.file.name, answer.file.base.name());
    let mut lines = vec![
        format!("{name}: {base} with its collectives as measured. Written by"),
        format!("foretrain calibrate collectives {} --on {}", logs.join(" "), options.on),
    ];
    for run in &answer.used {
        let (kind, ranks, nodes, rows) = (run.kind, run.ranks, run.nodes, run.rows);
        lines
            .push(format!("- {}: {kind}, GPUs: {ranks}, nodes: {nodes}, rows: {rows}", run.source));
    }
    if !answer.is_self_contained {
        lines.push(format!("{base} is not built in: give the file that defines it by --hardware."));
    }
    lines
}
