//! When a job held which GPUs.

use foretrain_core::Nanos;

use super::job::{Job, Placement};

/// One of several attempts to run a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attempt {
    /// When it began.
    pub start: Option<Nanos>,
    /// When it ended.
    pub end: Option<Nanos>,
    /// Where it ran.
    pub placements: Vec<Placement>,
}

impl Attempt {
    /// How long it ran.
    pub fn run_time(&self) -> Option<Nanos> {
        Some((self.end? - self.start?).clamp_positive())
    }

    /// GPUs that it held, if the table says it.
    pub fn gpus(&self) -> Option<f64> {
        let known = self.placements.iter().filter_map(|placed| placed.gpus).map(f64::from);
        known.reduce(|a, b| a + b)
    }
}

/// GPUs that a job held for a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Holding<'a> {
    /// From when.
    pub start: Nanos,
    /// Until when, if that is known.
    pub end: Option<Nanos>,
    /// How many; slices count as their part.
    pub gpus: f64,
    /// Where.
    pub placements: &'a [Placement],
}

impl Job {
    /// The GPUs that it held, each time that it ran. Nothing where their number is not known.
    pub fn holdings(&self) -> impl Iterator<Item = Holding<'_>> {
        let last = self.attempts.len().saturating_sub(1);
        let attempts = self.attempts.iter().enumerate().filter_map(move |(number, attempt)| {
            // An attempt that another followed did not go on.
            let known = attempt.end.is_some() || number == last;
            let gpus = attempt.gpus().or(self.gpus)?;
            let start = attempt.start.filter(|_| known)?;
            let end = attempt.end.map(|end| end.max(start));
            Some(Holding { start, end, gpus, placements: &attempt.placements })
        });
        let once = || {
            let (start, end) = match self.occupied() {
                Some((start, end)) => (start, Some(end)),
                None => (self.start?, None),
            };
            let gpus = self.whole_gpus()?;
            Some(Holding { start, end, gpus, placements: &self.placements })
        };
        attempts.chain(self.attempts.is_empty().then(once).flatten())
    }

    /// GPUs times how long they were held, in GPU-seconds, where both are known. Slices count as their
    /// part of a GPU.
    pub fn gpu_seconds(&self) -> Option<f64> {
        let run = self.run_time()?;
        if self.attempts.is_empty() {
            return Some(run.secs_f64() * self.whole_gpus()?);
        }
        let each = self.attempts.iter().filter_map(|attempt| {
            Some(attempt.run_time()?.secs_f64() * attempt.gpus().or(self.gpus)?)
        });
        Some(each.sum())
    }
}
