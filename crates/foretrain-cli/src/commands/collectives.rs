//! `foretrain collectives`.

use std::path::PathBuf;

use foretrain::core::{InputError, Ledger};
use foretrain::ingest::collective_log::{self, CollectiveLog, LogOptions};
use foretrain::predict::collectives::{CollectivesOptions, collectives};
use foretrain::report::json::{self, CollectivesReport};
use foretrain::report::svg;
use foretrain::report::text::{self, CollectivesView};

use super::Answer;
use super::hardware::catalogue;
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
pub(crate) fn run(options: &Options, output: &Output) -> Result<Answer> {
    let catalogue = catalogue(&options.hardware)?;
    let cluster = catalogue.cluster(&options.on)?;
    let (logs, ledger) = read(&options.logs)?;
    let answer = collectives(&cluster, &catalogue, &options.asked, &logs)?;
    if let Some(path) = &options.plot {
        write_file(path, svg::collectives(&answer).as_bytes())?;
        output.note(&format!("wrote {}", path.display()));
    }
    let text = if output.json() {
        json::to_text(&CollectivesReport::new(&answer, &ledger))
    } else {
        let view = CollectivesView { explain: options.explain };
        text::collectives(&answer, &ledger, view, output.style())
    };
    output.answer(&text)?;
    let compared = options.logs.is_empty() || !answer.comparisons.is_empty();
    Ok(if compared { Answer::Yes } else { Answer::No })
}

fn read(inputs: &[PathBuf]) -> Result<(Vec<CollectiveLog>, Ledger)> {
    let (mut logs, mut ledger) = (Vec::new(), Ledger::new());
    if inputs.is_empty() {
        return Ok((logs, ledger));
    }
    let paths = collective_log::find(inputs)?.ok_or_else(|| {
        let error = InputError::new("--compare found no log of a collective benchmark");
        let error = inputs.first().map_or(error.clone(), |first| error.in_file(first));
        error.hint("expected the output of nccl-tests or rccl-tests: text, CSV or JSON")
    })?;
    for path in &paths {
        let (log, found) = collective_log::read(path, &LogOptions::default())?;
        ledger.merge(&found, (paths.len() > 1).then_some(&log.source));
        logs.push(log);
    }
    Ok((logs, ledger))
}
