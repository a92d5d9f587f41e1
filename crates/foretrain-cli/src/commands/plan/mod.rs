//! `foretrain plan`.

mod many;
mod search;
mod stop;

use std::path::PathBuf;

use foretrain::core::Bytes;
use foretrain::hardware::Cluster;
use foretrain::plan::Schedule;
use foretrain::plan::scenario::Shard;

use super::Answer;
use super::job::Job;
use crate::failure::Result;
use crate::output::Output;

/// What to do.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) action: Action,
    pub(crate) hardware: Vec<PathBuf>,
}

#[derive(Debug)]
pub(crate) enum Action {
    /// Plan, or write the plans to be made.
    Search(Box<Search>),
    /// Make the plans of a file.
    Scenarios { file: PathBuf, shard: Shard },
    /// Put the rows of such plans together.
    Merge { file: PathBuf, rows: Vec<PathBuf> },
}

/// What to plan for.
#[derive(Debug)]
pub(crate) struct Search {
    pub(crate) job: Job,
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

/// Answers "no" if nothing fits.
pub(crate) fn run(options: &Options, output: &Output) -> Result<Answer> {
    match &options.action {
        Action::Search(asked) => match &asked.write_scenarios {
            Some(file) => many::write(asked, file, &options.hardware, output),
            None => search::run(asked, &options.hardware, output),
        },
        Action::Scenarios { file, shard } => many::run(file, *shard, &options.hardware, output),
        Action::Merge { file, rows } => many::merge(file, rows, output),
    }
}
