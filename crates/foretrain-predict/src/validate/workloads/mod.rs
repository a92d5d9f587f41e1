//! Scoring steps that are built, not recorded: a model's layers by architecture, scaled to a
//! measured step time, and a synchronisation strategy by the pipeline builder.

mod hkbu;
mod network;
mod pytorch;
mod small_scale;

use std::sync::Arc;

use foretrain_core::{DType, Nanos, Result};
use foretrain_graph::Job;
use foretrain_rewrite::strategy::Registry;
use foretrain_sim::{Discipline, FixedFactors, QueueDiscipline, SimOptions, simulate};
use foretrain_workload::{Profile, StepTimes, step_graph};

pub(super) use hkbu::{Given, Hkbu};
pub(super) use pytorch::PytorchBenchmark;
pub(super) use small_scale::SmallScale;

use network::Network;

use super::corpus::Corpus;
use super::measured::{place, reader, unreadable};
use super::report::{SetOutcome, Skipped};

/// Steps to run until the last is steady.
const ITERATIONS: u32 = 5;

/// A step of a model under a strategy, ms.
fn step_ms(profile: &Profile, times: &StepTimes, network: &Network, strategy: &str) -> Result<f64> {
    let mut graph = step_graph(profile, times, DType::F32)?;
    let applied = Registry::builtin().parse(strategy)?.apply(&mut graph, network, "")?;
    let queue = |&queue| QueueDiscipline { class: 0, queue, discipline: Discipline::Priority };
    let options = SimOptions {
        queue_disciplines: applied.priority_queues.iter().map(queue).collect(),
        interference: Some(Arc::new(interference(network))),
        ..SimOptions::iterations(ITERATIONS)
    };
    let timeline = simulate(&Job::uniform(graph, 1), &options)
        .map_err(|error| foretrain_core::InputError::new(error.to_string()))?;
    Ok(timeline.steady_step_time().step.millis_f64())
}

/// Collectives slow computation down (and the other way round) as far as they work on the GPU: one that
/// waits for the network most of the time hardly does.
fn interference(network: &Network) -> FixedFactors {
    let full = FixedFactors::default();
    let part = |factor: f64| 1.0 + (factor - 1.0) * network.intensity();
    FixedFactors { compute: part(full.compute), communication: part(full.communication), ..full }
}

/// Rows of a table under `measured/` whose wanted columns are numbers or text; nothing without it.
fn on_table(
    corpus: &Corpus<'_>,
    file: &str,
    score: impl FnOnce(&[Record], &mut SetOutcome) -> Result<()>,
) -> SetOutcome {
    let mut outcome = SetOutcome::default();
    let Some(path) = corpus.root().file(&[&format!("measured/{file}")]) else { return outcome };
    let rows = std::fs::read_to_string(&path)
        .map_err(|error| foretrain_core::InputError::io(&error, &path))
        .and_then(|text| records(&text));
    if let Err(error) = rows.and_then(|rows| score(&rows, &mut outcome)) {
        outcome.skipped.push(Skipped { what: file.to_owned(), why: error.to_string() });
    }
    outcome
}

/// A row by the names of its columns.
struct Record {
    place: String,
    cells: Vec<(String, String)>,
}

impl Record {
    fn text(&self, column: &str) -> &str {
        self.cells.iter().find(|(name, _)| name == column).map_or("", |(_, cell)| cell)
    }
    fn number(&self, column: &str) -> Option<f64> {
        self.text(column).parse::<f64>().ok().filter(|number| number.is_finite())
    }
    fn count(&self, column: &str) -> Option<u32> {
        self.number(column).filter(|n| *n >= 0.0 && *n <= 1e6).map(|n| n as u32)
    }
    fn ms(&self, column: &str, to_ms: f64) -> Option<Nanos> {
        self.number(column).map(|value| Nanos::from_micros_f64(value * to_ms * 1e3))
    }
}

fn records(text: &str) -> Result<Vec<Record>> {
    let mut reader = reader(text);
    let heads = reader.headers().map_err(|error| unreadable(&error))?.clone();
    let mut found = Vec::new();
    for row in reader.records() {
        let row = row.map_err(|error| unreadable(&error))?;
        let cells = heads.iter().zip(row.iter()).map(|(h, c)| (h.to_owned(), c.to_owned()));
        found.push(Record { place: place(&row), cells: cells.collect() });
    }
    Ok(found)
}
