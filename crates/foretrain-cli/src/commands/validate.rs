//! `foretrain validate`.

use std::path::{Path, PathBuf};

use foretrain::core::InputError;
use foretrain::predict::validate::{self, ValidateOptions};
use foretrain::report::json::{self, ValidateReport};
use foretrain::report::text;

use super::Answer;
use crate::failure::Result;
use crate::output::{Output, write_file};
use crate::progress::Stages;

/// What to score.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) data: Option<PathBuf>,
    pub(crate) sets: Option<Vec<String>>,
    pub(crate) extra: Vec<PathBuf>,
    pub(crate) rows: bool,
    pub(crate) write: Option<PathBuf>,
}

/// Where the data lies beside a checkout of the sources.
const BESIDE: &str = "../shared/data";

/// Answers "no" if a set could not be scored.
pub(crate) fn run(options: &Options, output: &Output<'_>) -> Result<Answer> {
    let asked = ValidateOptions {
        data: data_directory(options.data.as_deref())?,
        sets: options.sets.clone(),
        extra: options.extra.clone(),
        rows: options.rows,
    };
    let stages = Stages::new(output.progress());
    let report = validate::run(&asked, &|progress| {
        stages.at(progress.stage, progress.done, progress.total);
    })?;
    stages.finish();
    if let Some(path) = &options.write {
        write_file(path, validate::to_markdown(&report).as_bytes())?;
    }
    output.give(
        || json::to_text(&ValidateReport::new(&report, options.rows)),
        |style| text::validate(&report, style),
    )?;
    let all_scored = report.sets.iter().all(|set| set.scores.is_some());
    Ok(if all_scored { Answer::Yes } else { Answer::No })
}

fn data_directory(named: Option<&Path>) -> Result<PathBuf> {
    if let Some(path) = named {
        return Ok(path.to_path_buf());
    }
    let beside = PathBuf::from(BESIDE);
    if beside.is_dir() {
        return Ok(beside);
    }
    Err(InputError::new("no validation data named")
        .hint("name its directory with --data DIR or the variable FORETRAIN_DATA")
        .into())
}
