//! Ids and whole rows that occur more than once.

use std::hash::{Hash, Hasher};

use foretrain_core::{Ledger, Severity};
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};

use crate::jobs::Job;

/// Rows that are compared; the others are said.
const MOST: usize = 20_000_000;

/// What occurs more than once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Duplicates {
    /// Rows that were compared.
    pub compared: u64,
    /// Rows whose id an earlier row has.
    pub ids: u64,
    /// Of these, rows that are equal to it in all that is read.
    pub rows: u64,
    /// The first row whose id an earlier row has.
    pub first: u64,
}

impl Duplicates {
    pub(super) fn record(&self, ledger: &mut Ledger) {
        let place = || Some(format!("row {}", self.first));
        ledger.record_many(
            Severity::Warning,
            "identical-row",
            "row that is equal to an earlier one in all that is read: both are counted",
            self.rows,
            place(),
        );
        ledger.record_many(
            Severity::Warning,
            "repeated-id",
            "row whose job id an earlier, different row has: both are counted",
            self.ids - self.rows,
            place(),
        );
    }
}

#[derive(Default)]
pub(super) struct Seen {
    ids: FxHashMap<u64, u64>,
    /// Rows of ids that were met again, so that a third one is told from the second.
    rows: FxHashSet<u64>,
    found: Duplicates,
}

impl Seen {
    pub(super) fn add(&mut self, job: &Job) {
        if job.id.is_empty() || self.ids.len() >= MOST {
            return;
        }
        self.found.compared += 1;
        let (id, row) = (hash(&job.id), row_hash(job));
        let Some(first) = self.ids.get(&id) else {
            self.ids.insert(id, row);
            return;
        };
        if self.found.ids == 0 {
            self.found.first = job.row;
        }
        self.found.ids += 1;
        // `insert` tells whether an equal row was among those met again.
        let again = !self.rows.insert(row);
        self.found.rows += u64::from(*first == row || again);
    }

    pub(super) fn finish(self) -> Duplicates {
        self.found
    }
}

pub(super) fn hash(value: &impl Hash) -> u64 {
    let mut hasher = FxHasher::default();
    value.hash(&mut hasher);
    hasher.finish()
}

fn row_hash(job: &Job) -> u64 {
    let bits = |number: Option<f64>| number.map(f64::to_bits);
    hash(&(
        (&job.id, &job.alias, &job.user, &job.queue, &job.model, &job.gpu_kind),
        (job.submit, job.start, job.end, job.duration, job.wait, job.turnaround),
        (bits(job.gpus), job.nodes, bits(job.batch), bits(job.steps), job.memory),
        (job.status.map(|status| status as u8), bits(job.utilisation)),
        job.features.traffic,
    ))
}
