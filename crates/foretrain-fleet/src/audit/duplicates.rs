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
    /// Rows whose id an earlier table of jobs has.
    pub elsewhere: u64,
    /// Of these, rows that are equal to the last one there in all that is read.
    pub elsewhere_rows: u64,
    /// The first row whose id an earlier table has.
    pub elsewhere_first: u64,
}

impl Duplicates {
    /// Writes them to a ledger.
    pub fn record(&self, ledger: &mut Ledger) {
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
        let place = || Some(format!("row {}", self.elsewhere_first));
        ledger.record_many(
            Severity::Warning,
            "row-in-two-tables",
            "row that is equal to one of another table of jobs in all that is read: both are counted, \
             so figures of all tables hold it twice",
            self.elsewhere_rows,
            place(),
        );
        ledger.record_many(
            Severity::Warning,
            "id-in-two-tables",
            "row whose job id a different row of another table of jobs has: both are counted",
            self.elsewhere - self.elsewhere_rows,
            place(),
        );
    }
}

/// Rows of jobs that were seen, by their ids: 16 bytes each.
#[derive(Debug, Default)]
pub struct Seen {
    /// Of earlier tables.
    earlier: FxHashMap<u64, u64>,
    ids: FxHashMap<u64, u64>,
    /// Rows of ids that were met again, so that a third one is told from the second.
    rows: FxHashSet<u64>,
    found: Duplicates,
}

impl Seen {
    /// Takes in a row; whether it is equal to an earlier one of the same id.
    pub fn add(&mut self, job: &Job) -> bool {
        if job.id.is_empty() || self.ids.len() + self.earlier.len() >= MOST {
            return false;
        }
        let mut is_equal = false;
        self.found.compared += 1;
        let (id, row) = (hash(&job.id), row_hash(job));
        if let Some(first) = self.earlier.get(&id) {
            if self.found.elsewhere == 0 {
                self.found.elsewhere_first = job.row;
            }
            self.found.elsewhere += 1;
            is_equal = *first == row;
            self.found.elsewhere_rows += u64::from(is_equal);
        }
        let Some(first) = self.ids.get(&id) else {
            self.ids.insert(id, row);
            return is_equal;
        };
        if self.found.ids == 0 {
            self.found.first = job.row;
        }
        self.found.ids += 1;
        // `insert` tells whether an equal row was among those met again.
        let again = !self.rows.insert(row);
        is_equal |= *first == row || again;
        self.found.rows += u64::from(*first == row || again);
        is_equal
    }

    /// What a table had more than once, or has of earlier ones; the next row is of another table.
    pub fn end_of_table(&mut self) -> Duplicates {
        let ids = std::mem::take(&mut self.ids);
        if self.earlier.is_empty() {
            self.earlier = ids;
        } else {
            self.earlier.extend(ids);
        }
        self.rows = FxHashSet::default();
        std::mem::take(&mut self.found)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_overlapping_tables_are_counted() {
        let job = |id: &str, gpus: f64| Job { id: id.into(), gpus: Some(gpus), ..Job::default() };
        let mut seen = Seen::default();
        [job("a", 1.0), job("b", 1.0), job("b", 1.0)].iter().for_each(|job| _ = seen.add(job));
        let first = seen.end_of_table();
        assert_eq!((first.ids, first.rows, first.elsewhere), (1, 1, 0));
        [job("b", 1.0), job("a", 2.0), job("c", 1.0)].iter().for_each(|job| _ = seen.add(job));
        let second = seen.end_of_table();
        assert_eq!((second.ids, second.elsewhere, second.elsewhere_rows), (0, 2, 1));
        seen.add(&job("c", 1.0));
        let third = seen.end_of_table();
        assert_eq!((third.elsewhere, third.elsewhere_rows), (1, 1));
        let mut ledger = Ledger::new();
        second.record(&mut ledger);
        assert_eq!((ledger.count("row-in-two-tables"), ledger.count("id-in-two-tables")), (1, 1));
    }
}
