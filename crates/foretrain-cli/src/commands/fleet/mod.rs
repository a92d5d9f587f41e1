//! `foretrain fleet`.

pub(crate) mod edge;
pub(crate) mod share;
pub(crate) mod utilisation;

use super::Answer;
use crate::failure::Result;
use crate::output::Output;

/// What to do.
#[derive(Debug)]
pub(crate) enum Options {
    Share(share::Options),
    Edge(edge::Options),
    Utilisation(utilisation::Options),
}

pub(crate) fn run(options: &Options, output: &Output) -> Result<Answer> {
    match options {
        Options::Share(options) => share::run(options, output),
        Options::Edge(options) => edge::run(options, output),
        Options::Utilisation(options) => utilisation::run(options, output),
    }
}
