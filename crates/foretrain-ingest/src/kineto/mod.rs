//! Profiler traces in the Chrome trace format as PyTorch's profilers write it: Kineto from 1.8
//! on, on CUDA, ROCm, CPU, MTIA, and Ascend's `trace_view`.

mod arguments;
mod ascend;
mod builder;
mod clock;
mod correlation;
mod flows;
mod header;
mod pairs;
mod report;
mod tracks;

use std::io::Read;

use foretrain_core::{InputError, Ledger, Nanos, Result};
use foretrain_trace::Trace;

use crate::json::{Document, Limits};
use crate::options::ReadOptions;
use builder::Builder;
pub(crate) use header::Header;

/// Calls from inside a reader: the events so far and the bytes that the table takes. An error
/// stops the reader.
pub(crate) type Watch<'a> = &'a dyn Fn(u64, u64) -> Result<()>;

/// Reads the events of one document into a table. The rank is set only if the document tells.
///
/// # Errors
/// If it is not a PyTorch profiler trace, the watch says stop, or (strict) it is damaged.
pub(crate) fn read(
    text: impl Read,
    path: &str,
    options: &ReadOptions,
    window: Option<(Nanos, Nanos)>,
    watch: Watch<'_>,
) -> Result<(Trace, Ledger)> {
    let mut builder = Builder::new(path, options, window, watch);
    Document::new(text, Limits::default()).walk(&mut builder)?;
    builder.finish()
}

/// Time zero of a document's dense part on its own clock, in a pass that keeps only starts.
///
/// # Errors
/// As [`read`].
pub(crate) fn time_zero(
    text: impl Read,
    path: &str,
    options: &ReadOptions,
    watch: Watch<'_>,
) -> Result<Nanos> {
    let mut starts = clock::Starts::new(options, watch);
    Document::new(text, Limits::default()).walk(&mut starts)?;
    starts.zero().ok_or_else(|| InputError::new("it holds no events with a time").in_file(path))
}
