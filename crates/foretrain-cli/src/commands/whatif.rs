//! `foretrain whatif`.

use std::path::PathBuf;
use std::sync::Arc;

use foretrain::core::{Bytes, Nanos};
use foretrain::cost::own::OwnCosts;
use foretrain::predict::PredictOptions;
use foretrain::predict::primitives;
use foretrain::predict::roles::GivenRole;
use foretrain::predict::whatif::{
    Axis, Scenario, ScenarioFile, WhatIfOptions, check_names, grid, what_if, what_if_graphs,
};
use foretrain::report::json::{self, WhatIfReport};
use foretrain::report::text;

use super::Answer;
use super::hardware::catalogue;
use super::interference::Choice;
use crate::failure::Result;
use crate::output::Output;
use crate::recordings::{Input, Source};

/// What to ask.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) source: Source,
    pub(crate) changes: Vec<Scenario>,
    pub(crate) sweeps: Vec<Axis>,
    pub(crate) files: Vec<PathBuf>,
    pub(crate) on: Option<String>,
    pub(crate) gpus: Option<u32>,
    pub(crate) recorded_on: Option<String>,
    pub(crate) unprofiled_step: Option<Nanos>,
    pub(crate) replica_batch: Option<f64>,
    pub(crate) gradient_bytes: Option<Bytes>,
    pub(crate) roles: Vec<GivenRole>,
    pub(crate) interference: Choice,
    pub(crate) costs: Option<Arc<dyn OwnCosts>>,
    pub(crate) primitives: Option<PathBuf>,
    pub(crate) hardware: Vec<PathBuf>,
}

pub(crate) fn run(options: &Options, output: &Output<'_>) -> Result<Answer> {
    // Names are looked up first: reading traces only to refuse a misspelt cluster wastes minutes.
    let mut catalogue = catalogue(&options.hardware)?;
    let mut named = |name: &Option<String>| {
        name.as_deref().map(|name| catalogue.cluster_or_file(name)).transpose()
    };
    let (cluster, recorded_on) = (named(&options.on)?, named(&options.recorded_on)?);
    let (scenarios, sweeps) = asked(options)?;
    check_names(scenarios.iter().chain(&sweeps), &mut catalogue)?;
    let input = options.source.read(output)?;
    let asked = WhatIfOptions {
        predict: PredictOptions {
            recorded_on,
            unprofiled_step: options.unprofiled_step,
            replica_batch: options.replica_batch,
            gradient_bytes: options.gradient_bytes,
            roles: options.roles.clone(),
            interference: options.interference.model()?,
            costs: options.costs.clone(),
            primitives: options.primitives.as_ref().map(primitives::read).transpose()?,
            ..PredictOptions::default()
        },
        cluster,
        gpus: options.gpus,
        scenarios,
        sweeps,
        lenient: false,
    };
    let pool = output.threads(options.source.options.threads)?;
    let answer = pool.install(|| match &*input {
        Input::Traces(job) => what_if(&job.recordings, &catalogue, &asked),
        Input::Graphs(job) => what_if_graphs(&job.graphs, &catalogue, &asked),
    })?;
    let ledger = input.ledger();
    output.give(
        || json::to_text(&WhatIfReport::new(&answer, ledger)),
        |style| text::whatif(&answer, ledger, style),
    )?;
    Ok(Answer::Yes)
}

/// The scenarios whose changes are explained, and the combinations of sweeps. Changes on the command
/// line are one scenario; with sweeps there, they are part of every combination.
fn asked(options: &Options) -> Result<(Vec<Scenario>, Vec<Scenario>)> {
    let together = options.changes.iter().fold(Scenario::default(), |all, one| all.and(one));
    let (mut scenarios, mut sweeps) = (Vec::new(), Vec::new());
    if !options.sweeps.is_empty() {
        sweeps.extend(grid(&options.sweeps)?.iter().map(|one| together.and(one)));
    } else if !together.changes.is_empty() {
        scenarios.push(together);
    }
    for file in &options.files {
        let file = ScenarioFile::load(file)?;
        scenarios.extend(file.scenarios);
        sweeps.extend(file.sweeps);
    }
    Ok((scenarios, sweeps))
}
