//! `foretrain plan`.

mod many;
mod options;
mod recorded;
mod search;
mod subject;

use std::path::PathBuf;

use foretrain::core::Bytes;
use foretrain::hardware::Cluster;
use foretrain::plan::Schedule;
use foretrain::plan::scenario::Shard;

use options::{Purpose, refuse};
pub(crate) use recorded::Recorded;
use subject::{Subject, subject};

use super::Answer;
use super::calibration::Files;
use super::job::Job;
use crate::failure::Result;
use crate::output::Output;

/// What to do.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) action: Action,
    pub(crate) hardware: Vec<PathBuf>,
    /// Long names of the options that were given.
    pub(crate) given: Vec<String>,
}

#[derive(Debug)]
pub(crate) enum Action {
    /// Plan, or write the plans to be made.
    Search(Box<Search>),
    /// Make the plans of a file.
    Scenarios { file: PathBuf, shard: Shard, measured: Files },
    /// Put the rows of such plans together.
    Merge { file: PathBuf, rows: Vec<PathBuf> },
}

/// What to plan for.
#[derive(Debug)]
pub(crate) struct Search {
    /// A model, or recordings.
    pub(crate) subject: Vec<String>,
    pub(crate) job: Job,
    pub(crate) recorded: Recorded,
    pub(crate) measured: Files,
    pub(crate) on: Vec<String>,
    pub(crate) gpus: Vec<u32>,
    pub(crate) pin: String,
    pub(crate) memory: Option<MemoryLimit>,
    pub(crate) schedules: Vec<Schedule>,
    pub(crate) top: usize,
    pub(crate) explain: Option<String>,
    pub(crate) tokens: Option<f64>,
    pub(crate) by: Option<f64>,
    pub(crate) price: Vec<Price>,
    pub(crate) write_scenarios: Option<PathBuf>,
}

/// Memory that a device may be filled with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum MemoryLimit {
    Share(f64),
    Size(Bytes),
}

impl MemoryLimit {
    fn on(self, cluster: &Cluster) -> Bytes {
        match self {
            Self::Share(share) => Bytes::from_f64(cluster.node.device.memory.as_f64() * share),
            Self::Size(size) => size,
        }
    }
}

/// US dollars per device and hour of one cluster, or of all.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Price {
    pub(crate) cluster: Option<String>,
    pub(crate) dollars: f64,
}

/// Answers "no" if nothing fits, or nothing that fits ends in time.
pub(crate) fn run(options: &Options, output: &Output<'_>) -> Result<Answer> {
    let useful = |purpose: Purpose| refuse(purpose, &options.given);
    match &options.action {
        Action::Search(asked) => match (subject(asked, output)?, &asked.write_scenarios) {
            (Subject::Recording, _) => {
                useful(Purpose::Recording)?;
                recorded::run(asked, &options.hardware, output)
            }
            (Subject::Model, Some(file)) => {
                useful(Purpose::Writing)?;
                many::write(asked, file, &options.hardware, output)
            }
            (Subject::Model, None) => {
                useful(Purpose::Model)?;
                search::run(asked, &options.hardware, output)
            }
        },
        Action::Scenarios { file, shard, measured } => {
            useful(Purpose::Scenarios)?;
            many::run(file, *shard, measured, &options.hardware, output)
        }
        Action::Merge { file, rows } => {
            useful(Purpose::Rows)?;
            many::merge(file, rows, output)
        }
    }
}
