//! Coverage day by day: a column that is full on average may be empty for half of the time.

use foretrain_core::Nanos;
use rustc_hash::FxHashMap;

use crate::jobs::{Field, Job};

/// Nanoseconds of a day.
const DAY: i64 = 86_400_000_000_000;
/// Days that are kept apart; 100 years.
const MOST: usize = 36_525;
/// Fields whose coverage is followed.
pub(super) const FOLLOWED: [Field; 8] = [
    Field::Id,
    Field::Start,
    Field::End,
    Field::Gpus,
    Field::Status,
    Field::Machine,
    Field::User,
    Field::Utilisation,
];

/// The day of a time, counted from the table's origin.
pub(super) fn day_of(time: Nanos) -> i64 {
    time.nanos().div_euclid(DAY)
}

/// One day.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Day {
    /// Its number since the table's origin (1970 for dates).
    pub day: i64,
    /// Rows that are dated on it.
    pub rows: u64,
    /// Rows with a value, by followed field.
    pub filled: Vec<(Field, u64)>,
}

/// Days that follow each other and are covered alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Period {
    /// The first day.
    pub first: i64,
    /// The last.
    pub last: i64,
    /// Days in between with any row.
    pub days: u64,
    /// Rows.
    pub rows: u64,
    /// Rows with a value, by followed field that any row of the table fills.
    pub filled: Vec<(Field, u64)>,
}

#[derive(Default)]
pub(super) struct Days {
    rows: FxHashMap<i64, [u64; FOLLOWED.len() + 1]>,
    undated: u64,
}

impl Days {
    pub(super) fn add(&mut self, job: &Job, filled: u64) {
        let Some(day) = job.dated().map(day_of) else {
            self.undated += 1;
            return;
        };
        if self.rows.len() >= MOST && !self.rows.contains_key(&day) {
            self.undated += 1;
            return;
        }
        let counts = self.rows.entry(day).or_default();
        counts[0] += 1;
        for (count, field) in counts[1..].iter_mut().zip(FOLLOWED) {
            *count += filled >> field.index() & 1;
        }
    }

    /// Rows that could not be put on a day.
    pub(super) fn undated(&self) -> u64 {
        self.undated
    }

    fn sorted(&self) -> Vec<(i64, [u64; FOLLOWED.len() + 1])> {
        let mut days: Vec<_> = self.rows.iter().map(|(day, counts)| (*day, *counts)).collect();
        days.sort_unstable_by_key(|(day, _)| *day);
        days
    }

    /// Runs of days on which every followed field is covered to the same degree.
    pub(super) fn periods(&self) -> Vec<Period> {
        let days = self.sorted();
        let any = |index: usize| days.iter().any(|(_, counts)| counts[index + 1] > 0);
        let shown: Vec<usize> = (0..FOLLOWED.len()).filter(|index| any(*index)).collect();
        let degrees = |counts: &[u64; FOLLOWED.len() + 1]| -> Vec<u8> {
            shown.iter().map(|index| degree(counts[index + 1], counts[0])).collect()
        };
        let mut periods: Vec<(Vec<u8>, Period)> = Vec::new();
        for (day, counts) in &days {
            let own = degrees(counts);
            let filled = || shown.iter().map(|index| (FOLLOWED[*index], counts[index + 1]));
            match periods.last_mut() {
                Some((degrees, period)) if *degrees == own => {
                    period.last = *day;
                    period.days += 1;
                    period.rows += counts[0];
                    for ((_, sum), (_, new)) in period.filled.iter_mut().zip(filled()) {
                        *sum += new;
                    }
                }
                _ => {
                    let filled = filled().collect();
                    let period =
                        Period { first: *day, last: *day, days: 1, rows: counts[0], filled };
                    periods.push((own, period));
                }
            }
        }
        periods.into_iter().map(|(_, period)| period).collect()
    }

    pub(super) fn finish(self) -> Vec<Day> {
        let days = self.sorted().into_iter().map(|(day, counts)| Day {
            day,
            rows: counts[0],
            filled: FOLLOWED.into_iter().zip(counts[1..].iter().copied()).collect(),
        });
        days.collect()
    }
}

/// None, a few, some, most, all: days differ a little for no reason.
pub(super) fn degree(used: u64, total: u64) -> u8 {
    match used as f64 / total.max(1) as f64 {
        0.0 => 0,
        share if share < 0.1 => 1,
        share if share < 0.9 => 2,
        share if share < 0.999 => 3,
        _ => 4,
    }
}
