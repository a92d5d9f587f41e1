//! `foretrain scaling`.

use std::path::PathBuf;

use foretrain::core::InputError;
use foretrain::predict::scaling::read::{self, JobSpec, Unit};
use foretrain::predict::scaling::{Known, ScalingInput, Series, scaling};
use foretrain::report::json::{self, ScalingReport};
use foretrain::report::text;

use super::Answer;
use crate::args::as_argument;
use crate::failure::Result;
use crate::output::Output;

/// What was measured and what is known.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) files: Vec<PathBuf>,
    pub(crate) inline: Inline,
    pub(crate) global_batch: Option<f64>,
    pub(crate) ask: Vec<u32>,
    pub(crate) ask_accumulation: Vec<u32>,
    pub(crate) job: JobSpec,
}

/// Points and ranks of the command line.
#[derive(Debug)]
pub(crate) struct Inline {
    pub(crate) points: Vec<String>,
    pub(crate) unit: Unit,
    pub(crate) ranks: Vec<String>,
}

pub(crate) fn run(options: &Options, output: &Output<'_>) -> Result<Answer> {
    let answer = scaling(&input(options)?)?;
    output.give(
        || json::to_text(&ScalingReport::new(&answer)),
        |style| text::scaling(&answer, style),
    )?;
    Ok(Answer::Yes)
}

/// Series of all files, then that of the command line. What the command line knows and asks holds
/// wherever a file does not say.
fn input(options: &Options) -> Result<ScalingInput> {
    let known = options.job.resolve(&Known::default()).map_err(as_argument)?;
    let mut all = ScalingInput { global_batch: options.global_batch, ..ScalingInput::default() };
    for file in &options.files {
        let mut read = read::read(file, &known)?;
        let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let unnamed = read.series.iter_mut().filter(|series| series.name.is_empty());
        for series in unnamed.filter(|_| options.files.len() > 1) {
            series.name.clone_from(&stem);
        }
        all.series.append(&mut read.series);
        all.ranks.append(&mut read.ranks);
        all.global_batch = all.global_batch.or(read.global_batch);
    }
    let points: Vec<_> = options
        .inline
        .points
        .iter()
        .map(|text| {
            let placed = |error: InputError| match error.place() {
                Some(_) => error,
                None => error.at(format!("--point {text}")),
            };
            read::point(text, &options.inline.unit).map_err(placed)
        })
        .collect::<std::result::Result<_, InputError>>()?;
    if !points.is_empty() {
        all.series.push(Series { known, points, ..Series::default() });
    }
    for text in &options.inline.ranks {
        let placed = |error: InputError| error.at(format!("--ranks {text}"));
        all.ranks.push(read::rank(text).map_err(placed)?);
    }
    for series in &mut all.series {
        if series.ask.is_empty() {
            series.ask.clone_from(&options.ask);
        }
        if series.ask_accumulation.is_empty() {
            series.ask_accumulation.clone_from(&options.ask_accumulation);
        }
    }
    Ok(all)
}
