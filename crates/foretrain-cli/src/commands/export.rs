//! `foretrain export`.

use std::path::{Path, PathBuf};

use foretrain::core::InputError;

use super::Answer;
use crate::failure::Result;
use crate::output::Output;
use crate::recordings::{Job, Source};

/// What to write.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) source: Source,
    pub(crate) graph: Option<PathBuf>,
}

pub(crate) fn run(options: &Options, output: &Output) -> Result<Answer> {
    let job = options.source.read(output)?;
    if let Some(path) = &options.graph {
        graph(&job, path, output)?;
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
