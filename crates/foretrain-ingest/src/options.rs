//! What to read and how.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use foretrain_core::{Bytes, InputError, Nanos};
use foretrain_trace::Category;

/// A flag that asks readers to stop. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Asks every reader that holds a clone to stop at the next block.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was asked.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// # Errors
    /// If it was asked to stop.
    pub(crate) fn check(&self) -> Result<(), InputError> {
        if self.is_cancelled() { Err(InputError::new("reading was cancelled")) } else { Ok(()) }
    }
}

/// What to read and how. The default keeps everything, mends what can be mended and uses all
/// cores.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// Refuse the file at the first damage instead of mending or skipping it.
    pub strict: bool,
    /// Keep only these categories.
    pub categories: Option<Vec<Category>>,
    /// Keep only events that touch this window, counted from the earliest event of the trace's
    /// dense part. Costs a second pass over the file.
    pub window: Option<(Nanos, Nanos)>,
    /// Keep Python frames: a third of a trace recorded with stacks.
    pub keep_python: bool,
    /// Refuse to let the tables of all ranks together grow beyond this. A file that holds a graph
    /// counts with its text.
    pub memory_cap: Option<Bytes>,
    /// Threads for reading several files; 0 stands for one per core.
    pub threads: usize,
    /// Read only these ranks.
    pub ranks: Option<Vec<u32>>,
    /// Stops reading from outside.
    pub cancel: Cancel,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            strict: false,
            categories: None,
            window: None,
            keep_python: true,
            memory_cap: None,
            threads: 0,
            ranks: None,
            cancel: Cancel::default(),
        }
    }
}

impl ReadOptions {
    /// Whether events of this category are wanted.
    pub fn wants(&self, category: Category) -> bool {
        (self.keep_python || category != Category::PythonFunction)
            && self.categories.as_ref().is_none_or(|wanted| wanted.contains(&category))
    }

    /// Whether a rank is wanted; an unknown one is.
    pub fn wants_rank(&self, rank: Option<u32>) -> bool {
        match (&self.ranks, rank) {
            (Some(wanted), Some(rank)) => wanted.contains(&rank),
            _ => true,
        }
    }
}
