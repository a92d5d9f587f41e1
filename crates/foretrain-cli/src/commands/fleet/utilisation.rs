//! `foretrain fleet utilisation`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use foretrain::core::Result as Read;
use foretrain::fleet::utilisation::{
    Features, HeldOut, MeasuredJob, Predictor, PredictorFile, Scores, TrainedOn, held_out,
    read_table, scores,
};
use foretrain::report::json::{self, FleetUtilisationPredictReport, FleetUtilisationReport};
use foretrain::report::text;

use crate::commands::calibrate::check_free;
use crate::commands::{Answer, models};
use crate::failure::Result;
use crate::output::{Output, write_file};

/// What to do.
#[derive(Debug)]
pub(crate) enum Options {
    Train { table: PathBuf, write: PathBuf, force: bool, about: String, licence: String },
    Predict { model: String, batch: u64, predictor: PathBuf },
    Evaluate { table: PathBuf, predictor: Option<PathBuf> },
}

pub(crate) fn run(options: &Options, output: &Output<'_>) -> Result<Answer> {
    match options {
        Options::Train { table, write, force, about, licence } => {
            check_free(write, "--write", *force)?;
            let jobs = jobs(table)?;
            let predictor = Predictor::fit(&jobs).map_err(|error| error.in_file(table))?;
            let trained_on = TrainedOn {
                jobs: jobs.len(),
                families: families(&jobs).len(),
                about: about.clone(),
                licence: licence.clone(),
            };
            let file = PredictorFile::new(trained_on, predictor);
            write_file(write, file.text().as_bytes())?;
            show(&jobs, &splits(&jobs), Some(&write.display().to_string()), output)
        }
        Options::Evaluate { table, predictor: None } => {
            let jobs = jobs(table)?;
            let splits = splits(&jobs);
            show(&jobs, &splits, None, output)?;
            // Jobs of one family score nothing.
            Ok(if splits.is_empty() { Answer::No } else { Answer::Yes })
        }
        Options::Evaluate { table, predictor: Some(path) } => {
            let (jobs, file) = (jobs(table)?, read(path)?);
            let told = jobs.iter().map(|job| {
                let told = file.predictor.predict(&job.features);
                let memory = told.memory.map(|memory| memory.value);
                // A file does not keep the jobs that a mean could be taken of.
                let mean = f64::NAN;
                Some(HeldOut { utilisation: told.utilisation.value, memory, mean })
            });
            let scores = scores(&jobs, &told.collect::<Vec<_>>());
            let what = format!("jobs of {}, by {}", table.display(), path.display());
            let splits: Vec<_> = scores.map(|scores| (what, scores)).into_iter().collect();
            show(&jobs, &splits, None, output)
        }
        Options::Predict { model, batch, predictor } => {
            let file = read(predictor)?;
            let model = models::load(model)?;
            let told = file.predictor.predict(&Features::of(&model, *batch)?);
            let report =
                FleetUtilisationPredictReport::new(&model.name, *batch, &told, &file.trained_on);
            output.give(
                || json::to_text(&report),
                |style| text::fleet_utilisation_predict(&report, style),
            )?;
            Ok(Answer::Yes)
        }
    }
}

fn jobs(table: &Path) -> Read<Vec<MeasuredJob>> {
    let text = foretrain::hardware::read_text(table)?;
    read_table(&text, &models::load).map_err(|error| error.in_file(table))
}

pub(super) fn read(path: &Path) -> Read<PredictorFile> {
    let text = foretrain::predict::interference::pairs::read_text(path)?;
    PredictorFile::read(&text).map_err(|error| error.in_file(path))
}

fn families(jobs: &[MeasuredJob]) -> BTreeSet<&str> {
    jobs.iter().map(|job| job.family.as_str()).collect()
}

/// Errors with each family, and with every tenth job, left out.
fn splits(jobs: &[MeasuredJob]) -> Vec<(String, Scores)> {
    let by_family: Vec<&str> = jobs.iter().map(|job| job.family.as_str()).collect();
    let tenths: Vec<String> = (0..jobs.len()).map(|at| (at % 10).to_string()).collect();
    let by_tenth: Vec<&str> = tenths.iter().map(String::as_str).collect();
    let mut splits = Vec::new();
    for (what, groups) in [("each family", by_family), ("every tenth job (easy)", by_tenth)] {
        let told = held_out(jobs, &groups);
        splits.extend(scores(jobs, &told).map(|scores| (what.to_owned(), scores)));
    }
    // Tenths of one family say nothing of others.
    if families(jobs).len() < 2 { Vec::new() } else { splits }
}

fn show(
    jobs: &[MeasuredJob],
    splits: &[(String, Scores)],
    kept_in: Option<&str>,
    output: &Output<'_>,
) -> Result<Answer> {
    let counts = (jobs.len(), families(jobs).len());
    let report = FleetUtilisationReport::new(counts, splits, kept_in);
    output.give(|| json::to_text(&report), |style| text::fleet_utilisation(&report, style))?;
    Ok(Answer::Yes)
}
