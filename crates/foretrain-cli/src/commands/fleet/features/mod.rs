//! `foretrain fleet features`.

mod subject;

use std::path::{Path, PathBuf};

use foretrain::core::words::counted;
use foretrain::core::{InputError, Ledger, Result as Read};
use foretrain::fleet::jobs::Class;
use foretrain::hardware::Cluster;
use foretrain::plan::{Optimiser, Precision};
use foretrain::predict::jobs::{
    Asked, Basis, Figure, JobFeatures, of_graphs, of_model, of_recordings, to_csv,
};
use foretrain::report::json::{self, FleetFeaturesReport};
use foretrain::report::text;

use self::subject::{Subject, no_model, subject_of};
use crate::commands::hardware::catalogue;
use crate::commands::{Answer, models};
use crate::failure::Result;
use crate::output::{Output, write_file};
use crate::recordings::{Input, Source};

/// Whose features, and where they go.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) subjects: Vec<String>,
    pub(crate) known: Known,
    pub(crate) on: Option<String>,
    pub(crate) hardware: Vec<PathBuf>,
    pub(crate) to: Destination,
    /// How recordings are read; it names no files.
    pub(crate) reading: Source,
}

/// What the user says of the jobs.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) class: Option<Class>,
    pub(crate) cnodes: Option<u32>,
    pub(crate) gpus_per_server: u32,
    pub(crate) batch: Option<u64>,
    pub(crate) sequence: Option<u64>,
    pub(crate) target: Option<u64>,
    pub(crate) optimiser: Optimiser,
    /// Of models; recordings have theirs.
    pub(crate) precision: Option<Precision>,
    pub(crate) steps: Option<u64>,
    pub(crate) name: Option<String>,
    pub(crate) model: Option<String>,
}

/// Where rows go.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    /// Rows as the answer.
    Rows,
    /// A page with what figures rest on as the answer.
    Page,
    /// Behind the rows of a table.
    Table(PathBuf),
}

pub(crate) fn run(options: &Options, output: &Output<'_>) -> Result<Answer> {
    if options.known.name.is_some() && options.subjects.len() > 1 {
        return Err(InputError::new("one --name for several jobs")
            .hint("name one job at a time")
            .into());
    }
    let on = match &options.on {
        Some(name) => Some(catalogue(&options.hardware)?.cluster_or_file(name)?),
        None => None,
    };
    let mut rows = Vec::new();
    for subject in &options.subjects {
        rows.push(features(subject, options, on.as_ref(), output)?);
    }
    let report = FleetFeaturesReport::new(&rows);
    match &options.to {
        Destination::Page => {
            output.give(|| json::to_text(&report), |style| text::fleet_features(&report, style))?;
        }
        _ if output.json() => output.answer(&json::to_text(&report))?,
        Destination::Rows => {
            say_missing(&rows, output);
            output.answer(&to_csv(&rows, true)?)?;
        }
        Destination::Table(path) => {
            say_missing(&rows, output);
            append(&rows, path, output)?;
        }
    }
    Ok(Answer::Yes)
}

/// Cells that stay empty tell nobody why.
fn say_missing(rows: &[JobFeatures], output: &Output<'_>) {
    const NEEDED: [&str; 5] =
        ["class", "flops", "memory_access_bytes", "input_bytes", "weight_traffic_bytes"];
    for row in rows {
        for cell in row.cells() {
            if cell.value == foretrain::predict::jobs::Value::Empty && NEEDED.contains(&cell.column)
            {
                output.note(&format!("note: {}: {} is empty: {}", row.id, cell.column, cell.how));
            }
        }
    }
}

fn features(
    subject: &str,
    options: &Options,
    on: Option<&Cluster>,
    output: &Output<'_>,
) -> Result<JobFeatures> {
    let known = &options.known;
    let asked = Asked {
        id: known.name.clone().unwrap_or_else(|| stem(subject)),
        model: known.model.clone(),
        class: known.class,
        cnodes: known.cnodes,
        gpus_per_server: known.gpus_per_server,
        batch: known.batch,
        sequence: known.sequence,
        target: known.target,
        optimiser: known.optimiser,
        precision: known.precision.unwrap_or(Precision::BF16),
        steps: known.steps,
        on,
    };
    let held = output.held(&[subject.into()]).is_some();
    match if held { Subject::Recording } else { subject_of(subject)? } {
        Subject::Model => {
            let model = models::load(subject).map_err(|error| no_model(subject, error))?;
            let id = known.name.clone().unwrap_or_else(|| model.name.clone());
            return Ok(of_model(&model, &Asked { id, ..asked })?);
        }
        Subject::Executions { lowest, ranks } => {
            return Ok(of_executions(&lowest, ranks, &asked)?);
        }
        Subject::Recording => {}
    }
    refuse_of_models(known, on, subject)?;
    let source = Source {
        inputs: vec![subject.into()],
        options: options.reading.options.clone(),
        boundaries: options.reading.boundaries.clone(),
    };
    let input = source.read(output)?;
    let mut row = match &*input {
        Input::Traces(job) => of_recordings(&job.recordings, &asked)?,
        Input::Graphs(job) => of_graphs(&job.graphs, &asked)?,
    };
    row.notes.extend(dropped(input.ledger()));
    Ok(row)
}

/// What reading lost.
fn dropped(ledger: &Ledger) -> impl Iterator<Item = String> + '_ {
    use foretrain::core::Severity;
    let lost = ledger.findings().filter(|finding| finding.severity == Severity::Dropped);
    lost.map(|finding| {
        format!("not read ({}): {}", counted(finding.count, "time"), finding.message)
    })
}

fn refuse_of_models(known: &Known, on: Option<&Cluster>, subject: &str) -> Result<()> {
    let given = [
        ("--sequence", known.sequence.is_some()),
        ("--target-sequence", known.target.is_some()),
        ("--on", on.is_some()),
        ("--precision", known.precision.is_some()),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(InputError::new(format!("{option} is of no use to a recording"))
            .in_file(subject)
            .hint("it says how a model is trained, or where; a recording holds what was")
            .into()),
        None => Ok(()),
    }
}

/// The row of a job by the model that the execution trace of its lowest rank tells.
fn of_executions(lowest: &Path, ranks: u32, asked: &Asked<'_>) -> Read<JobFeatures> {
    let path = lowest.display().to_string();
    let model = models::load(&path)?;
    let cnodes = asked.cnodes.unwrap_or(ranks);
    let mut row = of_model(&model, &Asked { cnodes: Some(cnodes), ..asked.clone() })
        .map_err(|error| error.in_file(lowest).hint(format!("this is a {}", model.source)))?;
    if asked.cnodes.is_none() {
        row.cnodes = Figure::new(ranks, Basis::Measured, "ranks with an execution trace");
    }
    if ranks > 1 {
        let lowest = lowest.file_name().unwrap_or_default().to_string_lossy();
        row.notes.push(format!("{lowest} stands for all {ranks} ranks, each taken for a replica"));
    }
    Ok(row)
}

/// The name of a file or directory without the endings of its kind and packing.
fn stem(subject: &str) -> String {
    let name = Path::new(subject).file_name().unwrap_or(subject.as_ref());
    let name = name.to_string_lossy();
    let endings = [".gz", ".zst", ".json", ".parquet", ".graph", ".et", ".pt.trace"];
    let stem =
        endings.iter().fold(&*name, |name, ending| name.strip_suffix(ending).unwrap_or(name));
    stem.to_owned()
}

/// Puts rows behind those of a table with the same titles.
fn append(rows: &[JobFeatures], path: &Path, output: &Output<'_>) -> Result<()> {
    let held = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(InputError::io(&error, path).into()),
    };
    let whole = to_csv(rows, true)?;
    let titles = whole.lines().next().unwrap_or_default();
    let text = if held.trim().is_empty() {
        whole
    } else if held.lines().next().is_some_and(|line| line.trim_end() == titles) {
        let end = if held.ends_with('\n') { "" } else { "\n" };
        format!("{held}{end}{}", to_csv(rows, false)?)
    } else {
        return Err(InputError::new("the table has other columns than these rows")
            .in_file(path)
            .hint(format!("its first line would have to be {titles}"))
            .into());
    };
    write_file(path, text.as_bytes())?;
    output.note(&format!("wrote {}: {} more", path.display(), counted(rows.len(), "row")));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_named_by_files_without_their_endings() {
        assert_eq!(stem("runs/vit.pt.trace.json.gz"), "vit");
        assert_eq!(stem("runs/step.parquet"), "step");
        assert_eq!(stem("resnet-50"), "resnet-50");
    }
}
