//! `foretrain fleet open`.

use std::path::PathBuf;

use foretrain::core::{InputError, Ledger};
use foretrain::fleet::jobs::Job;
use foretrain::predict::jobs::open::{Terms, open};
use foretrain::report::json::{self, FleetOpenReport};
use foretrain::report::text;

use super::Source;
use crate::commands::{Answer, export};
use crate::failure::Result;
use crate::output::Output;

/// Which row, and on which terms it becomes a step.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) source: Source,
    pub(crate) row: String,
    pub(crate) graph: Option<PathBuf>,
    pub(crate) terms: Terms,
}

pub(crate) fn run(options: &Options, output: &Output<'_>) -> Result<Answer> {
    let file = options.source.files.first().map(|file| file.display().to_string());
    let table = file.unwrap_or_default();
    let job = found(options, &table)?;
    let opened = open(&job, &table, &options.terms)?;
    output.give(
        || json::to_text(&FleetOpenReport::new(&opened)),
        |style| text::fleet_open(&opened, style),
    )?;
    if let Some(path) = &options.graph {
        export::save(&opened.graph, &format!("a step of job {}", opened.id), path, output)?;
    }
    Ok(Answer::Yes)
}

/// The row of this id, else of this number.
fn found(options: &Options, table: &str) -> Result<Job> {
    let (mut by_id, mut by_number) = (Vec::new(), None);
    let number: Option<u64> = options.row.parse().ok();
    options.source.each_job(&mut Ledger::new(), |job| {
        if job.id == options.row && by_id.len() < 2 {
            by_id.push(job.clone());
        } else if Some(job.row) == number {
            by_number = Some(job.clone());
        }
    })?;
    match (by_id.len(), by_id.pop().or(by_number)) {
        (0 | 1, Some(job)) => Ok(job),
        (_, None) => Err(InputError::new(format!("no job {:?}", options.row))
            .in_file(table)
            .hint("--row takes what the table calls the job, or the number of its row from 1")
            .into()),
        _ => Err(InputError::new(format!("several rows are of job {:?}", options.row))
            .in_file(table)
            .hint("give the number of the row, from 1")
            .into()),
    }
}
