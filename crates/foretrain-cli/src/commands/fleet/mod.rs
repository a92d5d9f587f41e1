//! `foretrain fleet`.

pub(crate) mod audit;

use std::path::PathBuf;

use foretrain::fleet::jobs::{Table, TableOptions};

use super::Answer;
use crate::failure::Result;
use crate::output::Output;

/// What to do.
#[derive(Debug)]
pub(crate) enum Options {
    Audit(audit::Options),
}

/// Tables, and what the user says of them.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) files: Vec<PathBuf>,
    pub(crate) said: TableOptions,
}

impl Source {
    pub(crate) fn open(&self) -> Result<Vec<Table>> {
        let tables = self.files.iter().map(|file| Table::open(file, &self.said));
        Ok(tables.collect::<foretrain::core::Result<_>>()?)
    }
}

pub(crate) fn run(options: &Options, output: &Output) -> Result<Answer> {
    match options {
        Options::Audit(options) => audit::run(options, output),
    }
}
