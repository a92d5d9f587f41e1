//! `foretrain fleet`.

pub(crate) mod audit;
pub(crate) mod characterise;
pub(crate) mod edge;
pub(crate) mod features;
pub(crate) mod open;
pub(crate) mod project;
pub(crate) mod schedule;
pub(crate) mod share;
pub(crate) mod sweep;
pub(crate) mod synthesize;
pub(crate) mod utilisation;

use std::path::{Path, PathBuf};

use foretrain::core::{InputError, Ledger, Severity};
use foretrain::fleet::audit::Seen;
use foretrain::fleet::jobs::{Binding, Job, Kind, Table, TableOptions};

use super::Answer;
use crate::failure::Result;
use crate::output::Output;

/// What to do.
#[derive(Debug)]
pub(crate) enum Options {
    Audit(audit::Options),
    Characterise(characterise::Options),
    Project(project::Options),
    Sweep(sweep::Options),
    Synthesize(synthesize::Options),
    Features(Box<features::Options>),
    Open(Box<open::Options>),
    Schedule(Box<schedule::Options>),
    Share(share::Options),
    Edge(edge::Options),
    Utilisation(utilisation::Options),
}

/// Tables, and what the user says of them.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) files: Vec<PathBuf>,
    pub(crate) said: TableOptions,
}

impl Source {
    pub(crate) fn open(&self) -> Result<Vec<Table>> {
        Ok(Table::open_all(&self.files, &self.said)?)
    }

    /// Hands on the jobs of all tables.
    pub(crate) fn each_job(&self, ledger: &mut Ledger, mut visit: impl FnMut(&Job)) -> Result<()> {
        let mut seen = Seen::default();
        for (table, file) in self.open()?.into_iter().zip(&self.files) {
            if table.kind() != Kind::Jobs {
                let what = table.kind().name();
                return Err(InputError::new(format!("a table of {what} where jobs are expected"))
                    .in_file(file)
                    .hint("fleet audit takes tables of all kinds")
                    .into());
            }
            for guess in table.bindings().iter().filter(|binding| binding.is_guess()) {
                say_guess(guess, file, ledger);
            }
            let read = table.for_each(|job| {
                let _ = seen.add(job);
                visit(job);
            });
            seen.end_of_table().record(ledger);
            if let (0, Some(why)) = (read.given, &read.cut) {
                return Err(InputError::new(format!("no row of it can be read: {why}"))
                    .in_file(file)
                    .into());
            }
            read.record(ledger);
        }
        Ok(())
    }
}

/// A unit that nobody stated is a thing to check.
fn say_guess(guess: &Binding, file: &Path, ledger: &mut Ledger) {
    ledger.record_at(
        Severity::Inferred,
        "unit-guessed",
        "unit told by the size of the values; name it with --column FIELD=COLUMN:UNIT",
        || {
            let (title, field, unit) = (&guess.title, guess.field.name(), guess.unit.name);
            format!("{title:?} ({field}) read in {unit}, of {}", file.display())
        },
    );
}

/// Refuses to write what is read, or two things to one file.
pub(crate) fn keep_inputs<'a>(
    inputs: impl IntoIterator<Item = &'a PathBuf>,
    outputs: impl IntoIterator<Item = Option<&'a Path>>,
) -> Result<()> {
    // A device may be both, as in --out /dev/stdout.
    let same = |path: &Path| path.canonicalize().ok().filter(|path| path.is_file());
    let read: Vec<PathBuf> = inputs.into_iter().filter_map(|path| same(path)).collect();
    let mut written: Vec<&Path> = Vec::new();
    for path in outputs.into_iter().flatten() {
        let itself = same(path);
        if itself.is_some_and(|itself| read.contains(&itself)) {
            return Err(InputError::new("it would be written over while it is read")
                .in_file(path)
                .hint("name another file for the answer")
                .into());
        }
        let is_device = path.exists() && !path.is_file();
        if written.contains(&path) && !is_device {
            return Err(InputError::new("two answers would be written to it")
                .in_file(path)
                .hint("name a file for each")
                .into());
        }
        written.push(path);
    }
    Ok(())
}

/// Whose steps to look at.
#[derive(Debug)]
pub(crate) enum Jobs {
    Table(Source),
    /// The six models of the study.
    Pai2019,
}

impl Jobs {
    fn files(&self) -> &[PathBuf] {
        match self {
            Self::Table(source) => &source.files,
            Self::Pai2019 => &[],
        }
    }

    /// For people.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Table(source) => {
                let names = source.files.iter().map(|file| file.display().to_string());
                names.collect::<Vec<_>>().join(", ")
            }
            Self::Pai2019 => "six models of the study of Alibaba-PAI (recalled)".into(),
        }
    }
}

pub(crate) fn run(options: &Options, output: &Output<'_>) -> Result<Answer> {
    let read = match options {
        Options::Audit(options) => options.tables.files.as_slice(),
        Options::Characterise(characterise::Options { jobs, .. })
        | Options::Project(project::Options { jobs, .. })
        | Options::Sweep(sweep::Options { jobs, .. }) => jobs.files(),
        _ => &[],
    };
    keep_inputs(read, [output.file()])?;
    match options {
        Options::Audit(options) => audit::run(options, output),
        Options::Characterise(options) => characterise::run(options, output),
        Options::Project(options) => project::run(options, output),
        Options::Sweep(options) => sweep::run(options, output),
        Options::Synthesize(options) => synthesize::run(options, output),
        Options::Features(options) => features::run(options, output),
        Options::Open(options) => open::run(options, output),
        Options::Schedule(options) => schedule::run(options, output),
        Options::Share(options) => share::run(options, output),
        Options::Edge(options) => edge::run(options, output),
        Options::Utilisation(options) => utilisation::run(options, output),
    }
}
