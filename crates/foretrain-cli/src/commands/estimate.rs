//! `foretrain estimate`.

use std::path::{Path, PathBuf};

use foretrain::core::InputError;
use foretrain::plan::detailed::detailed;
use foretrain::plan::graph::Detail;
use foretrain::plan::memory::Fit;
use foretrain::plan::plan::{Question, Space};
use foretrain::plan::step::Laid;
use foretrain::plan::{self, Wish};
use foretrain::report::json::{self, EstimateReport};
use foretrain::report::perfetto::TimelineView;
use foretrain::report::text::{self, EstimateView};
use foretrain::sim::{Program, SimOptions};

use super::calibration::{Asked, Files};
use super::hardware::catalogue;
use super::job::{Job, priced};
use super::{Answer, export};
use crate::failure::Result;
use crate::output::Output;

/// What to estimate.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) job: Job,
    pub(crate) on: String,
    pub(crate) gpus: u32,
    pub(crate) parallel: Wish,
    pub(crate) price: Option<f64>,
    pub(crate) tokens: Option<f64>,
    pub(crate) explain: bool,
    pub(crate) timeline: Option<PathBuf>,
    pub(crate) graph: Option<PathBuf>,
    pub(crate) measured: Files,
    pub(crate) hardware: Vec<PathBuf>,
}

/// Answers "no" if the layout does not fit into memory.
pub(crate) fn run(options: &Options, output: &Output<'_>) -> Result<Answer> {
    let cluster = priced(&mut catalogue(&options.hardware)?, &options.on, options.price)?;
    let (model, training, software) = options.job.resolve()?;
    cluster.nodes_for(u64::from(options.gpus))?;
    let layout = options.parallel.complete(options.gpus)?;
    let all = std::slice::from_ref(&cluster);
    let measurements = options.measured.read()?;
    measurements.check(all)?;
    let kernels = measurements.kernels(&cluster);
    let asked =
        Asked { job: &options.job, model: &model, training: &training, software: &software };
    let calibrated = measurements.steps(&cluster, all, &kernels, &asked)?;
    let space = Space::of(&software, Wish::default());
    let question = Question {
        model: &model,
        training: &training,
        software: &software,
        cluster: &cluster,
        kernels: &kernels,
        calibrated: calibrated.as_ref(),
        devices: options.gpus,
        space: &space,
        memory: None,
    };
    let machine = question.machine();
    let job = plan::Job::new(&model, &training, &software, &machine);
    let answer = detailed(&question, &job, &layout, options.tokens)?;
    if options.timeline.is_some() || options.graph.is_some() {
        let laid = job.lay(&layout)?;
        draw(&laid, options, output)?;
    }
    output.give(
        || json::to_text(&EstimateReport::new(&answer)),
        |style| text::estimate(&answer, EstimateView { explain: options.explain }, style),
    )?;
    Ok(if answer.answer.fit() == Fit::No { Answer::No } else { Answer::Yes })
}

/// Layer passes of a step beyond which a timeline shows layers instead of kernels: what a browser
/// still opens.
const MOST_IN_DETAIL: u64 = 20_000;

fn draw(laid: &Laid<'_>, options: &Options, output: &Output<'_>) -> Result<()> {
    let units: usize = laid.chunks.iter().map(|chunk| chunk.units.len()).sum();
    let passes = units as u64 * laid.micro_batches;
    let detail = if passes <= MOST_IN_DETAIL { Detail::Operations } else { Detail::Layers };
    let job = laid.graphs(detail)?;
    if let Some(path) = &options.graph {
        for (stage, class) in job.classes.iter().enumerate() {
            let file = numbered(path, stage, job.classes.len());
            export::save(&class.graph, &format!("a step of stage {stage}"), &file, output)?;
        }
    }
    let Some(path) = &options.timeline else { return Ok(()) };
    let refused = |error: foretrain::sim::SimError| InputError::new(error.to_string());
    let program = Program::compile(&job).map_err(refused)?;
    let timeline = program.run(&SimOptions::iterations(1)).map_err(refused)?;
    let views: Vec<TimelineView<'_>> = job
        .classes
        .iter()
        .zip(&timeline.classes)
        .enumerate()
        .map(|(stage, (class, times))| {
            let title = format!("stage {stage}, a rank of {}", class.multiplicity);
            TimelineView::simulated(title, &class.graph, times, 0)
        })
        .collect();
    export::write_views(&views, path, output)
}

/// `step.parquet` of one stage, `step.3.parquet` of several.
fn numbered(path: &Path, stage: usize, stages: usize) -> PathBuf {
    if stages == 1 {
        return path.to_path_buf();
    }
    let ending = path.extension().map(|ending| ending.to_string_lossy()).unwrap_or_default();
    path.with_extension(format!("{stage}.{ending}").trim_end_matches('.'))
}
