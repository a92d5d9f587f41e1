//! `foretrain predict`.

use std::path::PathBuf;
use std::sync::Arc;

use foretrain::core::{Bytes, Nanos};
use foretrain::cost::own::OwnCosts;
use foretrain::predict::primitives;
use foretrain::predict::roles::GivenRole;
use foretrain::predict::{BucketCopies, PredictOptions, predict, predict_graphs};
use foretrain::report::json::{self, PredictReport};
use foretrain::report::text::{self, PredictView};
use foretrain::rewrite::BucketCaps;
use foretrain::rewrite::strategy::Strategy;

use super::Answer;
use super::hardware::catalogue;
use super::interference::Choice;
use crate::failure::Result;
use crate::output::Output;
use crate::recordings::{Input, Source};

/// What to predict.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) source: Source,
    pub(crate) on: String,
    pub(crate) recorded_on: Option<String>,
    pub(crate) unprofiled_step: Option<Nanos>,
    pub(crate) gpus: Vec<u32>,
    pub(crate) step_spread: Option<f64>,
    pub(crate) replica_batch: Option<f64>,
    pub(crate) strategy: Option<Arc<Strategy>>,
    pub(crate) primitives: Option<PathBuf>,
    pub(crate) bucket_cap: Option<Bytes>,
    pub(crate) gradient_bytes: Option<Bytes>,
    pub(crate) bucket_copies: BucketCopies,
    pub(crate) buffer_bytes: Option<Bytes>,
    pub(crate) cores: Option<f64>,
    pub(crate) roles: Vec<GivenRole>,
    pub(crate) hardware: Vec<PathBuf>,
    pub(crate) interference: Choice,
    pub(crate) costs: Option<Arc<dyn OwnCosts>>,
    pub(crate) explain: bool,
}

pub(crate) fn run(options: &Options, output: &Output<'_>) -> Result<Answer> {
    // Names are looked up first: reading traces only to refuse a misspelt cluster wastes minutes.
    let mut catalogue = catalogue(&options.hardware)?;
    let cluster = catalogue.cluster_or_file(&options.on)?;
    let recorded_on =
        options.recorded_on.as_deref().map(|name| catalogue.cluster_or_file(name)).transpose()?;
    for &gpus in &options.gpus {
        cluster.nodes_for(u64::from(gpus))?;
    }
    let primitives = options.primitives.as_ref().map(primitives::read).transpose()?;
    let interference = options.interference.model()?;
    let input = options.source.read(output)?;
    let asked = PredictOptions {
        recorded_on,
        unprofiled_step: options.unprofiled_step,
        step_spread: options.step_spread,
        gpus: options.gpus.clone(),
        replica_batch: options.replica_batch,
        strategy: options.strategy.clone(),
        primitives,
        buckets: options.bucket_cap.map_or_else(BucketCaps::default, BucketCaps::uniform),
        gradient_bytes: options.gradient_bytes,
        bucket_copies: options.bucket_copies,
        buffer_bytes: options.buffer_bytes,
        cores: options.cores,
        roles: options.roles.clone(),
        interference,
        costs: options.costs.clone(),
    };
    let prediction = match &*input {
        Input::Traces(job) => predict(&job.recordings, &cluster, &catalogue, &asked)?,
        Input::Graphs(job) => predict_graphs(&job.graphs, &cluster, &catalogue, &asked)?,
    };
    let ledger = input.ledger();
    output.give(
        || json::to_text(&PredictReport::new(&prediction, ledger)),
        |style| {
            let view = PredictView { explain: options.explain };
            text::predict(&prediction, ledger, view, style)
        },
    )?;
    Ok(Answer::Yes)
}
