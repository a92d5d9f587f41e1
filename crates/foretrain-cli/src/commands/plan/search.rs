//! One plan, over all clusters and sizes that were asked for.

use std::path::PathBuf;

use foretrain::core::InputError;
use foretrain::cost::kernels::KernelModel;
use foretrain::hardware::Cluster;
use foretrain::plan::horizon::InTime;
use foretrain::plan::plan::{Goal, Plan, Question, Space, plan};
use foretrain::plan::{Software, Wish};
use foretrain::report::json::{self, PlanReport};
use foretrain::report::text::{self, PlanView};

use super::{Price, Search};
use crate::commands::Answer;
use crate::commands::calibration::Asked;
use crate::commands::hardware::catalogue;
use crate::commands::job::priced;
use crate::failure::Result;
use crate::output::Output;
use crate::progress::Searching;

pub(super) fn run(asked: &Search, hardware: &[PathBuf], output: &Output<'_>) -> Result<Answer> {
    let clusters = clusters(asked, hardware)?;
    let (model, training, software) = asked.job.resolve()?;
    let space = space(asked, &software)?;
    let measurements = asked.measured.read()?;
    measurements.check(&clusters)?;
    let kernels: Vec<KernelModel> =
        clusters.iter().map(|cluster| measurements.kernels(cluster)).collect();
    let job = Asked { job: &asked.job, model: &model, training: &training, software: &software };
    let mut calibrated = Vec::with_capacity(clusters.len());
    for (cluster, kernels) in clusters.iter().zip(&kernels) {
        calibrated.push(measurements.steps(cluster, &clusters, kernels, &job)?);
        if let Some(note) = measurements.note(cluster, &clusters) {
            output.note(&note);
        }
    }
    let mut questions = Vec::new();
    for ((cluster, kernels), calibrated) in clusters.iter().zip(&kernels).zip(&calibrated) {
        questions.extend(asked.gpus.iter().map(|&devices| Question {
            model: &model,
            training: &training,
            software: &software,
            cluster,
            kernels,
            calibrated: calibrated.as_ref(),
            devices,
            space: &space,
            memory: asked.memory.map(|limit| limit.on(cluster)),
        }));
    }
    let goal = Goal { tokens: asked.tokens, within: asked.by };
    let wish: Option<Wish> = asked
        .explain
        .as_deref()
        .map(str::parse)
        .transpose()
        .map_err(|error: InputError| error.at("--explain"))?;
    let explain = asked.explain.as_deref().zip(wish.as_ref());
    let searching = Searching::new(output.progress());
    let found = plan(&questions, goal, explain, output.stop(), &|at, so_far| {
        let question = &questions[at];
        searching.at(&question.cluster.name, question.devices, &so_far);
    });
    searching.finish();
    let found = found?;
    output.give(
        || json::to_text(&PlanReport::new(&model.name, &training, &software, &found, asked.top)),
        |style| text::plan(&model.name, &found, PlanView { top: asked.top }, style),
    )?;
    Ok(verdict(&found, goal))
}

fn verdict(found: &Plan, goal: Goal) -> Answer {
    let Some(best) = found.best else { return Answer::No };
    // Whatever ends in time is chosen before what does not.
    let horizon = found.places[best].horizon.as_ref();
    match horizon.zip(goal.within).map(|(horizon, within)| horizon.within(within)) {
        Some(InTime::No) => Answer::No,
        _ => Answer::Yes,
    }
}

/// The layouts to look at.
pub(super) fn space(asked: &Search, software: &Software) -> Result<Space> {
    let mut space = Space::of(software, asked.pin.parse()?);
    if !asked.schedules.is_empty() {
        space.schedules.clone_from(&asked.schedules);
    }
    Ok(space)
}

/// The clusters asked for, each once, at their prices.
pub(super) fn clusters(asked: &Search, hardware: &[PathBuf]) -> Result<Vec<Cluster>> {
    let mut catalogue = catalogue(hardware)?;
    let mut clusters: Vec<Cluster> = Vec::new();
    for name in &asked.on {
        let cluster = priced(&mut catalogue, name, price(asked, name))?;
        if !clusters.iter().any(|other| other.name == cluster.name) {
            clusters.push(cluster);
        }
    }
    let named = asked.price.iter().filter_map(|price| price.cluster.as_deref());
    for name in named {
        if !asked.on.iter().any(|other| other == name) {
            return Err(InputError::new(format!("--price {name}=... is for no cluster of --on"))
                .hint(format!("--on names {}", asked.on.join(", ")))
                .into());
        }
    }
    Ok(clusters)
}

/// What was said of this cluster, else of all.
pub(super) fn price(asked: &Search, cluster: &str) -> Option<f64> {
    let of = |wanted: Option<&str>| {
        let last =
            asked.price.iter().rev().find(|price: &&Price| price.cluster.as_deref() == wanted);
        last.map(|price| price.dollars)
    };
    of(Some(cluster)).or_else(|| of(None))
}
