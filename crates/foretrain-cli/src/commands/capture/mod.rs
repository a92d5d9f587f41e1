//! `foretrain capture`.

mod library;
mod rings;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use foretrain::core::{Bytes, InputError};
use foretrain::ingest::collective_log::LogOptions;
use foretrain::measure::RingOperation;

use super::calibrate::check_free;
use super::{Answer, collective_log};
use crate::failure::{Failure, Result};
use crate::output::Output;

pub(crate) use rings::be_a_rank;

/// What the processes of a ring are started with.
pub(crate) const RANK_VERB: &str = "measurement-rank";
/// The table in the directory asked for.
const TABLE: &str = "comm.csv";

/// What to measure, with what.
#[derive(Debug)]
pub(crate) enum Comm {
    /// Measure from here.
    Measure { how: How, wanted: Wanted },
    /// Help a measurement on another machine.
    Help(SocketAddr),
}

/// With what to measure.
#[derive(Debug)]
pub(crate) enum How {
    /// Processes of this program in rings, on other machines too if they connect there.
    Rings { machines: Option<(SocketAddr, u32)> },
    /// A library that trains, by the Python package.
    Library { backend: String, python: Option<PathBuf> },
}

/// What to measure.
#[derive(Debug)]
pub(crate) struct Wanted {
    /// Numbers of processes.
    pub(crate) procs: Vec<u32>,
    /// The usual ones if empty.
    pub(crate) sizes: Vec<Bytes>,
    /// All if empty.
    pub(crate) operations: Vec<RingOperation>,
    pub(crate) budget: Duration,
    /// Where the table goes.
    pub(crate) directory: PathBuf,
    pub(crate) force: bool,
}

pub(crate) fn run(asked: &Comm, output: &Output<'_>) -> Result<Answer> {
    let (how, wanted) = match asked {
        Comm::Help(address) => {
            foretrain::measure::help_ring(*address, &output.again(RANK_VERB)?)?;
            return Ok(Answer::Yes);
        }
        Comm::Measure { how, wanted } => (how, wanted),
    };
    let path = wanted.directory.join(TABLE);
    check_free(&path, "-o", wanted.force)?;
    std::fs::create_dir_all(&wanted.directory).map_err(|error| {
        InputError::new(format!("cannot make this directory: {error}")).in_file(&wanted.directory)
    })?;
    match how {
        How::Rings { machines } => rings::measure(wanted, *machines, &path, output)?,
        How::Library { backend, python } => {
            let python = python.as_deref().or_else(|| output.interpreter());
            library::measure(wanted, backend, python)?;
        }
    }
    show(&path, output)
}

/// Reads the table as every reader would, and shows it.
fn show(path: &Path, output: &Output<'_>) -> Result<Answer> {
    let report = collective_log::read(&[path.to_path_buf()], &LogOptions::default())?;
    if report.runs.is_empty() {
        let error = InputError::new("nothing was measured: the budget was too short").in_file(path);
        return Err(Failure::Input(error.hint("give more with --budget, or smaller --sizes")));
    }
    collective_log::give(&report, output)?;
    Ok(Answer::Yes)
}
