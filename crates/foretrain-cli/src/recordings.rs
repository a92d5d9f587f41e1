//! Reading what was named, and analysing the traces among it.

use std::path::PathBuf;

use foretrain::core::{Bytes, InputError, Ledger, Nanos};
use foretrain::ingest::{GraphFile, Hold, Loaded, Progress, ReadOptions, load, load_each};
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

/// What the files hold.
#[derive(Debug)]
pub(crate) enum Input {
    /// Profiler traces.
    Traces(Job),
    /// Step graphs, in order of ranks, and what reading them met.
    Graphs(Vec<GraphFile>, Ledger),
}

/// The ranks of a job and what reading and analysing them met.
#[derive(Debug)]
pub(crate) struct Job {
    /// In order of ranks.
    pub(crate) recordings: Vec<Recording>,
    pub(crate) ledger: Ledger,
}

impl Source {
    /// Reads all ranks, and analyses traces, in parallel. The result does not depend on the
    /// threads.
    pub(crate) fn read(&self, output: &Output) -> Result<Input> {
        self.check_boundaries()?;
        let reading = Reading::new(output.progress());
        let (loaded, ledger) = load(&self.inputs, &self.options, &|progress| reading.at(progress))?;
        match loaded {
            Loaded::Traces(traces) => {
                self.check_memory(&traces)?;
                reading.analysing();
                self.analyse(traces, ledger).map(Input::Traces)
            }
            Loaded::Graphs(graphs) => {
                self.refuse_boundaries(&graphs)?;
                Ok(Input::Graphs(graphs, ledger))
            }
        }
    }

    /// Inspects traces as they are read and keeps only what is said of each, so that memory does
    /// not grow with the ranks. The result depends neither on the threads nor on the memory.
    pub(crate) fn inspect(&self, output: &Output) -> Result<(Loaded<InspectedRank>, Ledger)> {
        self.check_boundaries()?;
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

    fn analyse(&self, traces: Vec<Trace>, mut ledger: Ledger) -> Result<Job> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(self.options.threads)
            .build()
            .map_err(|error| InputError::new(format!("cannot start threads: {error}")))?;
        let boundaries = self.boundaries.as_deref();
        let recordings: Vec<Recording> = pool.install(|| {
            traces.into_par_iter().map(|trace| Recording::analyse(trace, boundaries)).collect()
        });
        let several = recordings.len() > 1;
        for recording in &recordings {
            let rank = format!("rank {}", recording.rank());
            for met in [&recording.ledger, &recording.graph_ledger] {
                ledger.merge(met, several.then_some(rank.as_str()));
            }
        }
        Ok(Job { recordings, ledger })
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
