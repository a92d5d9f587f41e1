//! The memory cap over all readers of a job.

use std::sync::atomic::{AtomicU64, Ordering};

use foretrain_core::{Bytes, InputError, Result};

use crate::options::ReadOptions;

/// What the tables of all ranks take, against the cap. Every reader states its own share, so
/// the verdict does not depend on who comes first.
pub(crate) struct Budget {
    cap: Option<u64>,
    shares: Vec<AtomicU64>,
}

impl Budget {
    pub(crate) fn new(options: &ReadOptions, files: usize) -> Self {
        let shares = (0..files).map(|_| AtomicU64::new(0)).collect();
        Self { cap: options.memory_cap.map(Bytes::get), shares }
    }

    /// States what one reader's table takes now.
    pub(crate) fn hold(&self, index: usize, bytes: u64) -> Result<()> {
        let Some(cap) = self.cap else { return Ok(()) };
        if let Some(share) = self.shares.get(index) {
            share.store(bytes, Ordering::Relaxed);
        }
        let total: u64 = self.shares.iter().map(|share| share.load(Ordering::Relaxed)).sum();
        if total <= cap {
            return Ok(());
        }
        let cap = Bytes::new(cap);
        Err(InputError::new(format!("the tables would exceed the memory cap of {cap}"))
            .hint("leave out Python frames, or read fewer ranks, categories or a time window"))
    }
}
