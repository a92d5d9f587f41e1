//! `foretrain inspect`.

use foretrain::predict::inspect::inspect;
use foretrain::report::json::{self, InspectReport};
use foretrain::report::text;

use super::Answer;
use crate::failure::Result;
use crate::output::Output;
use crate::recordings::Source;

/// What to inspect.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) source: Source,
}

/// Answers "no" if the traces hold no step.
pub(crate) fn run(options: &Options, output: &Output) -> Result<Answer> {
    let job = options.source.read(output)?;
    let inspection = inspect(&job.recordings, &job.reading);
    let report = InspectReport::new(&inspection, &job.ledger);
    let text =
        if output.json() { json::to_text(&report) } else { text::inspect(&report, output.style()) };
    output.answer(&text)?;
    let has_steps = job.recordings.iter().any(|recording| !recording.steps.steps.is_empty());
    Ok(if has_steps { Answer::Yes } else { Answer::No })
}
