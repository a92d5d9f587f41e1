//! A plan from a recording: every size with every way to synchronise it.

use std::path::{Path, PathBuf};

use foretrain::core::{Bytes, InputError, Nanos};
use foretrain::graph::StepGraph;
use foretrain::predict::PredictOptions;
use foretrain::predict::plan::{RecordedPlan, RecordedPlanOptions, plan, plan_graphs};
use foretrain::predict::roles::GivenRole;
use foretrain::predict::whatif::{Watch, WhatIfOptions};
use foretrain::report::json::{self, PlanRecordedReport};
use foretrain::report::text::{self, PlanView};
use foretrain::rewrite::strategy::Registry;

use super::{Search, search};
use crate::commands::Answer;
use crate::commands::hardware::catalogue;
use crate::failure::Result;
use crate::output::Output;
use crate::progress::Stages;
use crate::recordings::{Input, Source};

/// What only recordings are asked.
#[derive(Debug)]
pub(crate) struct Recorded {
    pub(crate) source: Source,
    pub(crate) strategies: Vec<String>,
    pub(crate) recorded_on: Option<String>,
    pub(crate) unprofiled_step: Option<Nanos>,
    pub(crate) replica_batch: Option<f64>,
    pub(crate) gradient_bytes: Option<Bytes>,
    pub(crate) roles: Vec<GivenRole>,
}

/// Answers "no" if nothing could be simulated.
pub(super) fn run(asked: &Search, hardware: &[PathBuf], output: &Output<'_>) -> Result<Answer> {
    // Names are looked up first: reading traces only to refuse a misspelt cluster wastes minutes.
    let recorded = &asked.recorded;
    let clusters = search::clusters(asked, hardware)?;
    let mut catalogue = catalogue(hardware)?;
    let recorded_on =
        recorded.recorded_on.as_deref().map(|name| catalogue.cluster_or_file(name)).transpose()?;
    for (cluster, &gpus) in clusters.iter().flat_map(|one| asked.gpus.iter().map(move |n| (one, n)))
    {
        cluster.nodes_for(u64::from(gpus))?;
    }
    for strategy in recorded.strategies.iter().chain(&asked.explain) {
        Registry::current().parse(strategy)?;
    }
    let input = recorded.source.read(output)?;
    if let Input::Graphs(job) = &*input {
        let times = job.graphs.iter().any(has_times);
        if let Some((_, path)) = job.with_paths().next().filter(|_| !times) {
            return Err(without_times(path));
        }
    }
    let pool = output.threads(recorded.source.options.threads)?;
    // From here on an interrupt ends the search; before, there is nothing to show.
    let stop = output.stop();
    let stages = Stages::new(output.progress());
    let mut plans: Vec<RecordedPlan> = Vec::with_capacity(clusters.len());
    for cluster in &clusters {
        let options = RecordedPlanOptions {
            asked: WhatIfOptions {
                predict: PredictOptions {
                    recorded_on: recorded_on.clone(),
                    unprofiled_step: recorded.unprofiled_step,
                    replica_batch: recorded.replica_batch,
                    gradient_bytes: recorded.gradient_bytes,
                    roles: recorded.roles.clone(),
                    ..PredictOptions::default()
                },
                cluster: Some(cluster.clone()),
                gpus: None,
                scenarios: Vec::new(),
                sweeps: Vec::new(),
                lenient: true,
            },
            gpus: asked.gpus.clone(),
            strategies: recorded.strategies.clone(),
            explain: asked.explain.clone(),
        };
        let told = |done: usize, all: usize| stages.at(&cluster.name, done, all);
        let watch = Watch { stop, progress: &told };
        plans.push(pool.install(|| match &*input {
            Input::Traces(job) => plan(&job.recordings, &catalogue, &options, watch),
            Input::Graphs(job) => plan_graphs(&job.graphs, &catalogue, &options, watch),
        })?);
    }
    stages.finish();
    let ledger = input.ledger();
    // `--on` is required.
    let Some((first, others)) = plans.split_first() else { return Ok(Answer::No) };
    output.give(
        || json::to_text(&PlanRecordedReport::new(first, others, ledger, asked.top)),
        |style| text::plan_recorded(first, others, ledger, PlanView { top: asked.top }, style),
    )?;
    Ok(if plans.iter().any(|plan| !plan.choices.is_empty()) { Answer::Yes } else { Answer::No })
}

fn has_times(graph: &StepGraph) -> bool {
    graph.node_ids().any(|id| graph.work(id) > Nanos::ZERO)
}

fn without_times(path: &str) -> crate::failure::Failure {
    InputError::new("the graph holds no times, so there is nothing to plan from")
        .in_file(Path::new(path))
        .hint("record a profiler trace of the same run, or plan the model: foretrain plan MODEL")
        .into()
}
