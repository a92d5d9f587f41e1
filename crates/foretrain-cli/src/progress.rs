//! Progress bars on standard error, where somebody looks.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use foretrain::ingest::Progress;
use foretrain::plan::plan::Progress as SearchProgress;
use indicatif::{ProgressBar, ProgressStyle};

/// Progress over the bytes of all files.
pub(crate) struct Reading {
    bar: Option<ProgressBar>,
    files: Mutex<BTreeMap<PathBuf, (u64, u64)>>,
}

fn styled(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

impl Reading {
    pub(crate) fn new(shown: bool) -> Self {
        let bar = shown.then(|| {
            let bar = ProgressBar::new(0);
            bar.set_style(styled("{msg:9} [{bar:30}] {bytes} of {total_bytes} {eta}"));
            bar.set_message("reading");
            bar
        });
        Self { bar, files: Mutex::default() }
    }

    /// A file has moved on.
    pub(crate) fn at(&self, progress: Progress<'_>) {
        let Some(bar) = &self.bar else { return };
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let now = (progress.read_bytes, progress.total_bytes);
        match files.get_mut(progress.path) {
            Some(file) => *file = now,
            None => {
                files.insert(progress.path.to_path_buf(), now);
            }
        }
        let (read, total) =
            files.values().fold((0, 0), |sum, file| (sum.0 + file.0, sum.1 + file.1));
        bar.set_message("reading");
        bar.set_length(total);
        bar.set_position(read);
    }

    /// A file is read, or all of them.
    pub(crate) fn analysing(&self) {
        if let Some(bar) = &self.bar {
            bar.set_message("analysing");
        }
    }

    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Reading {
    /// An error message must not share its line with a bar.
    fn drop(&mut self) {
        self.finish();
    }
}

/// Progress over the items of successive stages.
pub(crate) struct Stages {
    bar: Option<ProgressBar>,
}

impl Stages {
    pub(crate) fn new(shown: bool) -> Self {
        let bar = shown.then(|| {
            let bar = ProgressBar::new(0);
            bar.set_style(styled("{msg:24} [{bar:30}] {pos} of {len} {eta}"));
            bar
        });
        Self { bar }
    }

    /// A stage has moved on.
    pub(crate) fn at(&self, stage: &str, done: usize, total: usize) {
        if let Some(bar) = &self.bar {
            bar.set_message(stage.to_owned());
            bar.set_length(total as u64);
            bar.set_position(done as u64);
        }
    }

    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Stages {
    fn drop(&mut self) {
        self.finish();
    }
}

/// Progress of a search, with the best so far.
pub(crate) struct Searching {
    bar: Option<ProgressBar>,
}

impl Searching {
    pub(crate) fn new(shown: bool) -> Self {
        let bar = shown.then(|| {
            let bar = ProgressBar::new(0);
            bar.set_style(styled("{prefix} [{bar:20}] {pos} of {len} {eta}  {wide_msg}"));
            bar
        });
        Self { bar }
    }

    /// The search on one cluster and size has moved on.
    pub(crate) fn at(&self, cluster: &str, devices: u32, so_far: &SearchProgress) {
        let Some(bar) = &self.bar else { return };
        bar.set_prefix(format!("{devices} x {cluster}"));
        bar.set_length(so_far.all as u64);
        bar.set_position(so_far.done as u64);
        let best = so_far.best.as_ref();
        bar.set_message(best.map_or_else(String::new, |(layout, time)| {
            format!("best {:.1} ms: {layout}", time.millis_f64())
        }));
    }

    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Searching {
    fn drop(&mut self) {
        self.finish();
    }
}
