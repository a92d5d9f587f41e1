//! `foretrain calibrate primitives`.

use std::path::PathBuf;

use foretrain::core::Ledger;
use foretrain::cost::primitives::Measured;
use foretrain::ingest::primitive_table;
use foretrain::measure::{MeasureOptions, describe_machine, measure};
use foretrain::predict::primitives::{self, calibrate_primitives};
use foretrain::report::json::{self, CalibratePrimitivesReport};
use foretrain::report::text;

use super::Answer;
use super::calibrate::check_free;
use crate::failure::Result;
use crate::output::{Output, write_file};
use crate::progress::Stages;

/// What the second process is started with.
pub(crate) const PEER_VERB: &str = "measurement-peer";

/// What to calibrate from, and where to keep it.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) origin: Origin,
    pub(crate) raw: Option<PathBuf>,
    pub(crate) keep: Option<PathBuf>,
    pub(crate) force: bool,
}

/// Where times come from.
#[derive(Debug)]
pub(crate) enum Origin {
    /// This machine.
    Measured(MeasureOptions),
    /// Files.
    Tables(Vec<PathBuf>),
}

pub(crate) fn run(options: &Options, output: &Output<'_>) -> Result<Answer> {
    for path in options.keep.iter().chain(&options.raw) {
        check_free(path, "-o", options.force)?;
    }
    let (measured, ledger, source) = match &options.origin {
        Origin::Measured(asked) => (measured(asked, output)?, Ledger::new(), machine()),
        Origin::Tables(tables) => {
            let (measured, ledger) = read(tables)?;
            (measured, ledger, format!("times in {}", listed(tables)))
        }
    };
    if let Some(path) = &options.raw {
        write_file(path, primitive_table::text(&measured).as_bytes())?;
    }
    let answer = calibrate_primitives(&measured, &source)?;
    if let Some(path) = &options.keep {
        let text = primitives::text(&answer.fitted.primitives, &comment(&options.origin));
        write_file(path, text.as_bytes())?;
    }
    let kept_in = options.keep.as_ref().map(|path| path.display().to_string());
    output.give(
        || json::to_text(&CalibratePrimitivesReport::new(&answer, kept_in.as_deref(), &ledger)),
        |style| text::calibrate_primitives(&answer, kept_in.as_deref(), &ledger, style),
    )?;
    Ok(Answer::Yes)
}

fn measured(asked: &MeasureOptions, output: &Output<'_>) -> Result<Measured> {
    let peer = output.again(PEER_VERB)?;
    let stages = Stages::new(output.progress());
    Ok(measure(asked, &peer, &|stage, done, total| stages.at(stage, done, total))?)
}

fn read(tables: &[PathBuf]) -> Result<(Measured, Ledger)> {
    let (mut all, mut ledger) = (Measured::default(), Ledger::new());
    for path in tables {
        let (measured, found) = primitive_table::read(path)?;
        all.merge(&measured);
        ledger.merge(&found, (tables.len() > 1).then(|| path.display().to_string()).as_deref());
    }
    Ok((all, ledger))
}

/// Where times measured here come from.
fn machine() -> String {
    format!("measured on {}: one thread, memory to memory, TCP on loopback", describe_machine())
}

fn listed(paths: &[PathBuf]) -> String {
    let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    names.join(", ")
}

/// The head of the file.
fn comment(origin: &Origin) -> Vec<String> {
    let tables = match origin {
        Origin::Measured(_) => String::new(),
        Origin::Tables(tables) => format!(" {}", listed(tables)),
    };
    vec![
        format!("Synchronisation primitives. Written by foretrain calibrate primitives{tables}"),
        "Each takes max(floor_ns, offset_ns + ns_per_byte x bytes of the raw buffer).".into(),
    ]
}
