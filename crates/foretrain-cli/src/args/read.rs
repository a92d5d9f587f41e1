//! Arguments that say which traces to read and how.

use std::path::PathBuf;

use foretrain::core::{Bytes, Nanos};
use foretrain::ingest::ReadOptions;

use super::values;
use crate::recordings::Source;

/// What to read.
#[derive(Debug, clap::Args)]
pub(super) struct Traces {
    /// PyTorch profiler traces, execution traces, Chakra files or saved graphs, plain or packed by
    /// gzip or zstd; directories or patterns; one file per rank.
    #[arg(value_name = "TRACE", required = true)]
    traces: Vec<PathBuf>,
    #[command(flatten)]
    reading: Reading,
}

/// How to read it.
#[derive(Debug, clap::Args)]
pub(super) struct Reading {
    /// Refuse damaged files instead of mending them.
    #[arg(long, help_heading = "Reading")]
    strict: bool,
    /// Step boundaries by hand: the start of each step and the end of the last, from the first
    /// event on, as in 0ms,10ms,20ms.
    #[arg(long, value_name = "TIMES", value_delimiter = ',', value_parser = values::time, help_heading = "Reading")]
    steps: Vec<Nanos>,
    /// Read these ranks only, as in 0-7,16.
    #[arg(long, value_name = "RANKS", value_delimiter = ',', value_parser = values::ranks, help_heading = "Reading")]
    ranks: Vec<Vec<u32>>,
    /// Read only events in this window after the first event, as in 10ms..50ms.
    #[arg(long, value_name = "FROM..TO", value_parser = values::window, help_heading = "Reading")]
    window: Option<(Nanos, Nanos)>,
    /// Leave Python frames out: less memory for traces recorded with stacks.
    #[arg(long, help_heading = "Reading")]
    no_python: bool,
    /// Refuse to use more memory than about this for all ranks, as in 8GiB.
    #[arg(long, value_name = "SIZE", value_parser = values::size, help_heading = "Reading")]
    memory_cap: Option<Bytes>,
    /// Threads to read and analyse with [default: one per core].
    #[arg(long, value_name = "N", help_heading = "Reading")]
    threads: Option<u16>,
}

impl From<Traces> for Source {
    fn from(traces: Traces) -> Self {
        traces.reading.of(traces.traces)
    }
}

impl Reading {
    /// These files, read in this way.
    pub(super) fn of(self, inputs: Vec<PathBuf>) -> Source {
        let mut ranks: Vec<u32> = self.ranks.into_iter().flatten().collect();
        ranks.sort_unstable();
        ranks.dedup();
        let options = ReadOptions {
            strict: self.strict,
            window: self.window,
            keep_python: !self.no_python,
            memory_cap: self.memory_cap,
            threads: self.threads.unwrap_or(0).into(),
            ranks: (!ranks.is_empty()).then_some(ranks),
            ..ReadOptions::default()
        };
        let boundaries = (!self.steps.is_empty()).then_some(self.steps);
        Source { inputs, options, boundaries }
    }
}
