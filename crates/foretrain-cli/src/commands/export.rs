//! `foretrain export`.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use foretrain::core::InputError;
use foretrain::graph::StepGraph;
use foretrain::graph::attributes::well_known;
use foretrain::predict::inspect_graph::has_duration;
use foretrain::predict::replay::replay_timeline;
use foretrain::report::perfetto::{TimelineView, write_chrome_trace};
use foretrain::report::text::units::counted;

use super::Answer;
use crate::failure::{Failure, Result};
use crate::output::{Output, write_file};
use crate::recordings::{Graphs, Input, Job, Source};

/// What to write.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) source: Source,
    pub(crate) graph: Option<PathBuf>,
    pub(crate) perfetto: Option<PathBuf>,
}

pub(crate) fn run(options: &Options, output: &Output<'_>) -> Result<Answer> {
    let input = options.source.read(output)?;
    if let Some(path) = &options.graph {
        match &*input {
            Input::Traces(job) => steady_step(job, path, output)?,
            Input::Graphs(job) => lowest_rank(job, path, output)?,
        }
    }
    if let Some(path) = &options.perfetto {
        match &*input {
            Input::Traces(job) => recorded_steps(job, path, output)?,
            Input::Graphs(job) => timed_graphs(job, path, output)?,
        }
    }
    Ok(Answer::Yes)
}

/// Saves the steady step of the lowest rank that has one.
fn steady_step(job: &Job, path: &Path, output: &Output<'_>) -> Result<()> {
    let found = job.recordings.iter().find_map(|r| r.steady().map(|graph| (r.rank(), graph)));
    let (rank, graph) = found.ok_or_else(|| {
        let file = job.recordings.first().map_or("", |r| r.trace.meta.path.as_str());
        InputError::new("the trace holds no step, so there is no graph to save").in_file(file)
    })?;
    save(&graph, &format!("steady step of rank {rank}"), path, output)
}

/// Saves the graph of the lowest rank.
fn lowest_rank(job: &Graphs, path: &Path, output: &Output<'_>) -> Result<()> {
    let Some(graph) = job.graphs.first() else { return Ok(()) };
    let rank = graph.meta.rank;
    let what = match job.graphs.len() {
        1 => format!("rank {rank}"),
        several => format!("rank {rank}, the lowest of {several}"),
    };
    save(graph, &what, path, output)
}

pub(crate) fn save(graph: &StepGraph, what: &str, path: &Path, output: &Output<'_>) -> Result<()> {
    let bytes = graph.to_file_bytes().map_err(|error| error.in_file(path))?;
    write_file(path, &bytes)?;
    output.note(&format!(
        "wrote {}: {what}, {}, {}",
        path.display(),
        counted(graph.node_count(), "node"),
        counted(graph.edges().len(), "edge")
    ));
    Ok(())
}

/// Writes the last recorded step of every rank as recorded and as replayed, below each other.
fn recorded_steps(job: &Job, path: &Path, output: &Output<'_>) -> Result<()> {
    let steps: Vec<_> =
        job.recordings.iter().filter_map(|r| Some((r.rank(), r.graphs.last()?))).collect();
    let mut timelines = Vec::new();
    for (_, graph) in &steps {
        timelines.push(replay_timeline(graph)?);
    }
    let mut views = Vec::new();
    for ((rank, graph), timeline) in steps.iter().zip(&timelines) {
        let step = &graph.meta.step;
        views.push(TimelineView::recorded(format!("recorded rank {rank}, {step}"), graph));
        let title = format!("simulated rank {rank}, {step}");
        views.push(TimelineView::simulated(title, graph, &timeline.classes[0], 0));
    }
    write_views(&views, path, output)
}

/// Writes the simulated timeline of every graph, below the recorded one where starts are known.
fn timed_graphs(job: &Graphs, path: &Path, output: &Output<'_>) -> Result<()> {
    let mut timelines = Vec::new();
    let (mut timed, mut all) = (0, 0);
    for (graph, file) in job.with_paths() {
        timed += timed_nodes(graph, file)?;
        all += graph.node_count();
        timelines.push(replay_timeline(graph)?);
    }
    if timed < all {
        output
            .note(&format!("note: {} of {all} nodes have no duration, take no time", all - timed));
    }
    let mut views = Vec::new();
    for (graph, timeline) in job.graphs.iter().zip(&timelines) {
        let rank = graph.meta.rank;
        if graph.node_attributes.column(well_known::RECORDED_START).is_some() {
            views.push(TimelineView::recorded(format!("recorded rank {rank}"), graph));
        }
        let title = format!("simulated rank {rank}");
        views.push(TimelineView::simulated(title, graph, &timeline.classes[0], 0));
    }
    write_views(&views, path, output)
}

/// How many nodes have a duration; refuses a graph that takes no time.
fn timed_nodes(graph: &StepGraph, file: &str) -> Result<usize> {
    let timed = graph.node_ids().filter(|&id| has_duration(graph, id)).count();
    if timed == 0 || graph.serial_sum().nanos() == 0 {
        return Err(InputError::new("no durations recorded, so there is no timeline to draw")
            .in_file(file)
            .hint("name the profiler trace of the run, or save the graph with --graph")
            .into());
    }
    Ok(timed)
}

pub(super) fn write_views(
    views: &[TimelineView<'_>],
    path: &Path,
    output: &Output<'_>,
) -> Result<()> {
    let written = File::create(path).and_then(|file| {
        let mut out = BufWriter::new(file);
        write_chrome_trace(&mut out, views)?;
        out.flush()
    });
    written.map_err(|error| Failure::writing(&error, &path.display().to_string()))?;
    let timelines = counted(views.len(), "timeline");
    output.note(&format!("wrote {}: {timelines}; open it at ui.perfetto.dev", path.display()));
    Ok(())
}
