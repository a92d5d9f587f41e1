//! Captures among the files of a job, and the traces that they belong to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use foretrain_core::{InputError, Ledger, Result, Severity};
use foretrain_trace::Capture;

use super::discover::TraceFile;
use crate::capture;

/// Capture files by their directory and rank. A capture belongs to the trace of its rank in its
/// own directory: the recorder writes them side by side, and bundles of two runs may be named
/// together by mistake.
#[derive(Debug, Default)]
pub(crate) struct Captures(BTreeMap<(PathBuf, u32), PathBuf>);

impl Captures {
    /// # Errors
    /// If two files of a directory claim the same rank, or one without a rank in its name cannot
    /// be read.
    pub(crate) fn new(files: Vec<TraceFile>) -> Result<Self> {
        let mut captures = BTreeMap::new();
        for file in files {
            let rank = match file.rank {
                Some(rank) => rank,
                None => capture::read(&file.path)?.rank,
            };
            let place = (directory(&file.path), rank);
            if let Some(other) = captures.insert(place, file.path.clone()) {
                return Err(InputError::new(format!(
                    "two captures claim rank {rank}: {} and {}",
                    other.display(),
                    file.path.display()
                ))
                .hint("keep one capture per rank of one run"));
            }
        }
        Ok(Self(captures))
    }

    /// The capture beside a trace.
    ///
    /// # Errors
    /// If it cannot be read or is of another rank than its name says.
    pub(crate) fn beside(&self, trace: &Path, rank: Option<u32>) -> Result<Option<Arc<Capture>>> {
        let Some(path) = rank.and_then(|rank| self.0.get(&(directory(trace), rank))) else {
            return Ok(None);
        };
        let capture = capture::read(path)?;
        if Some(capture.rank) != rank {
            return Err(InputError::new(format!(
                "by its name this is the capture of rank {}, by its content of rank {}",
                rank.unwrap_or_default(),
                capture.rank
            ))
            .in_file(path)
            .at("rank")
            .hint("keep the names that the recorder gave"));
        }
        Ok(Some(Arc::new(capture)))
    }

    /// Names captures beside which no trace of their rank was found.
    pub(crate) fn note_unused<'a>(
        &self,
        traces: impl Iterator<Item = (&'a str, Option<u32>)>,
        ledger: &mut Ledger,
    ) {
        if self.0.is_empty() {
            return;
        }
        let mut left = self.0.clone();
        for (path, rank) in traces {
            if let Some(rank) = rank {
                left.remove(&(directory(Path::new(path)), rank));
            }
        }
        let message = "capture without a profiler trace of its rank beside it, not used";
        for path in left.values() {
            ledger
                .record_at(Severity::Note, "lone-capture", message, || path.display().to_string());
        }
    }
}

fn directory(path: &Path) -> PathBuf {
    path.parent().unwrap_or(Path::new("")).to_path_buf()
}
