//! Reading what was named, and analysing the traces among it.

use std::path::PathBuf;
use std::sync::Arc;

use foretrain::core::{Bytes, InputError, Ledger, Nanos};
use foretrain::graph::StepGraph;
use foretrain::ingest::{
    FileKind, GraphFile, Hold, Loaded, Progress, ReadOptions, load, load_each,
};
use foretrain::predict::Recording;
use foretrain::predict::inspect::InspectedRank;
use foretrain::trace::Trace;
use rayon::prelude::*;

use crate::failure::Result;
use crate::output::Output;
use crate::progress::Reading;

/// Memory of an analysed recording, its step graphs included, over that of its table (see
/// `docs/performance.md`).
const ANALYSED: u64 = 4;

/// Files to read and how.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) inputs: Vec<PathBuf>,
    pub(crate) options: ReadOptions,
    /// Step boundaries given by hand.
    pub(crate) boundaries: Option<Vec<Nanos>>,
}

/// What files hold.
#[derive(Debug)]
pub enum Input {
    /// Profiler traces.
    Traces(Job),
    /// Step graphs.
    Graphs(Graphs),
}

impl Input {
    /// What reading and analysing met.
    pub fn ledger(&self) -> &Ledger {
        match self {
            Self::Traces(job) => &job.ledger,
            Self::Graphs(job) => &job.ledger,
        }
    }
}

/// The ranks of a job.
#[derive(Debug)]
pub struct Job {
    /// In order of ranks.
    pub recordings: Vec<Recording>,
    /// What reading and analysing them met.
    pub ledger: Ledger,
    /// What reading alone met.
    read: Ledger,
}

/// Step graphs of the ranks of a job.
#[derive(Debug)]
pub struct Graphs {
    /// In order of ranks.
    pub graphs: Vec<StepGraph>,
    /// What reading them met.
    pub ledger: Ledger,
    /// The file of each, without its graph.
    files: Vec<Origin>,
}

/// Where a graph comes from.
#[derive(Debug)]
struct Origin {
    path: String,
    kind: FileKind,
    schema: Option<String>,
    rank_source: String,
}

impl Graphs {
    fn new(files: Vec<GraphFile>, ledger: Ledger) -> Self {
        let (graphs, files) = files
            .into_iter()
            .map(|file| {
                let GraphFile { graph, path, kind, schema, rank_source } = file;
                (graph, Origin { path, kind, schema, rank_source })
            })
            .unzip();
        Self { graphs, ledger, files }
    }

    /// Every graph with its file.
    pub(crate) fn with_paths(&self) -> impl Iterator<Item = (&StepGraph, &str)> {
        self.graphs.iter().zip(self.files.iter().map(|file| file.path.as_str()))
    }

    fn to_files(&self) -> Vec<GraphFile> {
        let graphs = self.graphs.iter().cloned();
        graphs
            .zip(&self.files)
            .map(|(graph, file)| GraphFile {
                graph,
                path: file.path.clone(),
                kind: file.kind.clone(),
                schema: file.schema.clone(),
                rank_source: file.rank_source.clone(),
            })
            .collect()
    }
}

impl Source {
    /// Reads all ranks, and analyses traces, in parallel. The result does not depend on the
    /// threads.
    pub(crate) fn read(&self, output: &Output<'_>) -> Result<Arc<Input>> {
        self.check_boundaries()?;
        if let Some(held) = output.held(&self.inputs) {
            return Ok(held);
        }
        let reading = Reading::new(output.progress());
        let (loaded, ledger) = load(&self.inputs, &self.options, &|progress| reading.at(progress))?;
        match loaded {
            Loaded::Traces(traces) => {
                self.check_memory(&traces)?;
                reading.analysing();
                self.analyse(traces, ledger, output).map(|job| Arc::new(Input::Traces(job)))
            }
            Loaded::Graphs(graphs) => {
                self.refuse_boundaries(&graphs)?;
                Ok(Arc::new(Input::Graphs(Graphs::new(graphs, ledger))))
            }
        }
    }

    /// Inspects traces as they are read and keeps only what is said of each, so that memory does
    /// not grow with the ranks. The result depends neither on the threads nor on the memory.
    pub(crate) fn inspect(&self, output: &Output<'_>) -> Result<(Loaded<InspectedRank>, Ledger)> {
        self.check_boundaries()?;
        match output.held(&self.inputs).as_deref() {
            Some(Input::Traces(job)) => {
                let ranks = job.recordings.iter().map(InspectedRank::new).collect();
                return Ok((Loaded::Traces(ranks), job.read.clone()));
            }
            Some(Input::Graphs(graphs)) => {
                return Ok((Loaded::Graphs(graphs.to_files()), graphs.ledger.clone()));
            }
            None => {}
        }
        let reading = Reading::new(output.progress());
        let inspect = |trace: Trace, hold: Hold<'_>| {
            reading.analysing();
            let recording = Recording::survey(trace, self.boundaries.as_deref());
            hold(InspectedRank::memory(&recording))?;
            Ok(InspectedRank::new(&recording))
        };
        let progress = |progress: Progress<'_>| reading.at(progress);
        let (inputs, options) = (&self.inputs, &self.options);
        let read = load_each(inputs, options, &progress, InspectedRank::SURVEY, &inspect)?;
        if let (Loaded::Graphs(graphs), _) = &read {
            self.refuse_boundaries(graphs)?;
        }
        Ok(read)
    }

    fn analyse(&self, traces: Vec<Trace>, read: Ledger, output: &Output<'_>) -> Result<Job> {
        let pool = output.threads(self.options.threads)?;
        let boundaries = self.boundaries.as_deref();
        let recordings: Vec<Recording> = pool.install(|| {
            traces.into_par_iter().map(|trace| Recording::analyse(trace, boundaries)).collect()
        });
        let several = recordings.len() > 1;
        let mut ledger = read.clone();
        for recording in &recordings {
            let rank = format!("rank {}", recording.rank());
            for met in [&recording.ledger, &recording.graph_ledger] {
                ledger.merge(met, several.then_some(rank.as_str()));
            }
        }
        Ok(Job { recordings, ledger, read })
    }

    /// Refuses before the analysis what would exceed the cap in it.
    fn check_memory(&self, traces: &[Trace]) -> Result<()> {
        let tables: u64 = traces.iter().map(Trace::heap_bytes).sum();
        let wanted = Bytes::new(tables.saturating_mul(ANALYSED));
        match self.options.memory_cap {
            Some(cap) if wanted > cap => Err(InputError::new(format!(
                "analysing these events takes about {wanted}, more than the memory cap of {cap}"
            ))
            .hint("read fewer ranks (--ranks) or a time window (--window)")
            .into()),
            _ => Ok(()),
        }
    }

    fn check_boundaries(&self) -> Result<()> {
        let Some(times) = &self.boundaries else { return Ok(()) };
        let ascending = times.windows(2).all(|pair| pair[0] < pair[1]);
        if times.len() < 2 || !ascending {
            return Err(InputError::new(
                "--steps needs at least two times, each later than the last",
            )
            .hint("name the start of each step and the end of the last: --steps 0ms,10ms,20ms")
            .into());
        }
        Ok(())
    }

    fn refuse_boundaries(&self, graphs: &[GraphFile]) -> Result<()> {
        if self.boundaries.is_none() {
            return Ok(());
        }
        let path = graphs.first().map_or("", |file| file.path.as_str());
        Err(InputError::new("--steps needs profiler traces; a graph has no timeline")
            .in_file(path)
            .into())
    }
}
