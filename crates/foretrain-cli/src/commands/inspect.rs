//! `foretrain inspect`.

use foretrain::core::Ledger;
use foretrain::graph::CollectiveKind;
use foretrain::ingest::{GraphFile, Loaded};
use foretrain::predict::inspect::{InspectedRank, join};
use foretrain::predict::inspect_graph::inspect_graphs;
use foretrain::report::json::{self, InspectGraphReport, InspectReport};
use foretrain::report::text;

use super::{Answer, collective_log};
use crate::failure::Result;
use crate::output::Output;
use crate::recordings::Source;

/// What to inspect.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) source: Source,
    /// The operation of benchmark logs that do not name theirs.
    pub(crate) collective: Option<CollectiveKind>,
}

pub(crate) fn run(options: &Options, output: &Output<'_>) -> Result<Answer> {
    let inputs = &options.source.inputs;
    if output.held(inputs).is_none()
        && let Some(answer) = collective_log::run(inputs, options.collective, output)?
    {
        return Ok(answer);
    }
    let (loaded, ledger) = options.source.inspect(output)?;
    match loaded {
        Loaded::Traces(ranks) => traces(ranks, &ledger, output),
        Loaded::Graphs(files) => graphs(&files, &ledger, output),
    }
}

/// Answers "no" if the traces hold no step.
fn traces(ranks: Vec<InspectedRank>, ledger: &Ledger, output: &Output<'_>) -> Result<Answer> {
    let inspection = join(ranks, ledger);
    let report = InspectReport::new(&inspection);
    output.give(|| json::to_text(&report), |style| text::inspect(&report, style))?;
    let has_steps = inspection.ranks.iter().any(|rank| !rank.steps.steps.is_empty());
    Ok(if has_steps { Answer::Yes } else { Answer::No })
}

fn graphs(files: &[GraphFile], ledger: &Ledger, output: &Output<'_>) -> Result<Answer> {
    let report = InspectGraphReport::new(&inspect_graphs(files, ledger), ledger);
    output.give(|| json::to_text(&report), |style| text::inspect_graph(&report, style))?;
    Ok(Answer::Yes)
}
