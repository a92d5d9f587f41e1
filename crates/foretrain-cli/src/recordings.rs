//! Reading and analysing the traces of a job.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use foretrain::core::{InputError, Ledger, Nanos};
use foretrain::ingest::{ReadOptions, read_ranks};
use foretrain::predict::Recording;
use rayon::prelude::*;

use crate::failure::Result;
use crate::output::Output;
use crate::progress::Reading;

/// Traces to read and how.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) inputs: Vec<PathBuf>,
    pub(crate) options: ReadOptions,
    /// Step boundaries given by hand.
    pub(crate) boundaries: Option<Vec<Nanos>>,
}

/// The ranks of a job and what reading and analysing them met.
#[derive(Debug)]
pub(crate) struct Job {
    /// In order of ranks.
    pub(crate) recordings: Vec<Recording>,
    pub(crate) ledger: Ledger,
    /// What reading alone met.
    pub(crate) reading: Ledger,
}

impl Source {
    /// Reads and analyses all ranks in parallel. The result does not depend on the threads.
    pub(crate) fn read(&self, output: &Output) -> Result<Job> {
        self.check_boundaries()?;
        for input in &self.inputs {
            refuse_graph(input)?;
        }
        let reading = Reading::new(output.progress());
        let (traces, reading_ledger) =
            read_ranks(&self.inputs, &self.options, &|progress| reading.at(progress))?;
        reading.analysing();
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(self.options.threads)
            .build()
            .map_err(|error| InputError::new(format!("cannot start threads: {error}")))?;
        let boundaries = self.boundaries.as_deref();
        let recordings: Vec<Recording> = pool.install(|| {
            traces.into_par_iter().map(|trace| Recording::analyse(trace, boundaries)).collect()
        });
        reading.finish();
        let mut ledger = reading_ledger.clone();
        let several = recordings.len() > 1;
        for recording in &recordings {
            let rank = format!("rank {}", recording.rank());
            ledger.merge(&recording.ledger, several.then_some(rank.as_str()));
        }
        Ok(Job { recordings, ledger, reading: reading_ledger })
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
}

/// A saved step graph is no trace; say so better than "a Parquet table".
fn refuse_graph(path: &Path) -> Result<()> {
    let mut magic = [0; 4];
    let is_parquet = path.is_file()
        && File::open(path).and_then(|mut file| file.read_exact(&mut magic)).is_ok()
        && magic == *b"PAR1";
    if !is_parquet || foretrain::graph::StepGraph::load(path).is_err() {
        return Ok(());
    }
    Err(InputError::new("this is a saved step graph, not a profiler trace")
        .in_file(path)
        .hint("name the trace it was made from: groups, steps and devices are read from there")
        .into())
}
