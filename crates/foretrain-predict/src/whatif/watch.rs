//! Ending a long answer early, and telling how far it has come.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Somebody who waits for scenarios to be simulated.
#[derive(Clone, Copy)]
pub struct Watch<'a> {
    /// Set to leave out the scenarios that have not begun.
    pub stop: &'a AtomicBool,
    /// Told how many of how many scenarios are simulated.
    pub progress: &'a (dyn Fn(usize, usize) + Sync),
}

static NEVER: AtomicBool = AtomicBool::new(false);

impl Watch<'_> {
    /// Nobody waits.
    pub const NOBODY: Watch<'static> = Watch { stop: &NEVER, progress: &|_, _| {} };

    /// Whether what has not begun is not wanted any more.
    pub(super) fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// One more of `all` is done.
    pub(super) fn one_more(&self, done: &AtomicUsize, all: usize) {
        (self.progress)(done.fetch_add(1, Ordering::Relaxed) + 1, all);
    }
}

impl std::fmt::Debug for Watch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").field("stop", self.stop).finish_non_exhaustive()
    }
}
