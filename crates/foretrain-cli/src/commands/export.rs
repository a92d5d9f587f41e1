//! `foretrain export`.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use foretrain::core::InputError;
use foretrain::predict::replay::replay_timeline;
use foretrain::report::perfetto::{TimelineView, write_chrome_trace};

use super::Answer;
use crate::failure::Result;
use crate::output::Output;
use crate::recordings::{Job, Source};

/// What to write.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) source: Source,
    pub(crate) graph: Option<PathBuf>,
    pub(crate) perfetto: Option<PathBuf>,
}

pub(crate) fn run(options: &Options, output: &Output) -> Result<Answer> {
    let job = options.source.read(output)?;
    if let Some(path) = &options.graph {
        graph(&job, path, output)?;
    }
    if let Some(path) = &options.perfetto {
        perfetto(&job, path, output)?;
    }
    Ok(Answer::Yes)
}

/// Saves the steady step of the lowest rank that has one.
fn graph(job: &Job, path: &Path, output: &Output) -> Result<()> {
    let found = job.recordings.iter().find_map(|r| r.steady().map(|graph| (r.rank(), graph)));
    let (rank, graph) = found.ok_or_else(|| {
        let file = job.recordings.first().map_or("", |r| r.trace.meta.path.as_str());
        InputError::new("the trace holds no step, so there is no graph to save").in_file(file)
    })?;
    graph.save(path)?;
    output.note(&format!(
        "wrote {}: steady step of rank {rank}, {} nodes, {} edges",
        path.display(),
        graph.node_count(),
        graph.edges().len()
    ));
    Ok(())
}

/// Writes the last recorded step of every rank as recorded and as replayed, below each other.
fn perfetto(job: &Job, path: &Path, output: &Output) -> Result<()> {
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
    let file = File::create(path).map_err(|error| InputError::io(&error, path))?;
    let mut out = BufWriter::new(file);
    write_chrome_trace(&mut out, &views)
        .and_then(|()| out.flush())
        .map_err(|error| InputError::new(format!("cannot write it: {error}")).in_file(path))?;
    output.note(&format!(
        "wrote {}: {} timelines; open it at ui.perfetto.dev",
        path.display(),
        views.len()
    ));
    Ok(())
}
