//! `foretrain collectives`.

use std::path::PathBuf;

use foretrain::ingest::collective_log::LogOptions;
use foretrain::predict::collectives::{CollectivesOptions, collectives};
use foretrain::report::json::{self, CollectivesReport};
use foretrain::report::svg;
use foretrain::report::text::{self, CollectivesView};

use super::hardware::catalogue;
use super::{Answer, logs};
use crate::failure::Result;
use crate::output::{Output, write_file};

/// What to ask of the model.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) on: String,
    pub(crate) asked: CollectivesOptions,
    pub(crate) logs: Vec<PathBuf>,
    pub(crate) explain: bool,
    pub(crate) plot: Option<PathBuf>,
    pub(crate) hardware: Vec<PathBuf>,
}

/// Answers "no" if logs were given and none of their runs could be compared.
pub(crate) fn run(options: &Options, output: &Output<'_>) -> Result<Answer> {
    let mut catalogue = catalogue(&options.hardware)?;
    let cluster = catalogue.cluster_or_file(&options.on)?;
    let (logs, ledger) = match &options.logs[..] {
        [] => Default::default(),
        inputs => logs::read(inputs, &LogOptions::default(), "--compare")?,
    };
    let answer = collectives(&cluster, &catalogue, &options.asked, &logs)?;
    if let Some(path) = &options.plot {
        write_file(path, svg::collectives(&answer).as_bytes())?;
        output.note(&format!("wrote {}", path.display()));
    }
    output.give(
        || json::to_text(&CollectivesReport::new(&answer, &ledger)),
        |style| {
            let view = CollectivesView { explain: options.explain };
            text::collectives(&answer, &ledger, view, style)
        },
    )?;
    let compared = options.logs.is_empty() || !answer.comparisons.is_empty();
    Ok(if compared { Answer::Yes } else { Answer::No })
}
