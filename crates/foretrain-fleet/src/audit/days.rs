//! Coverage day by day: a column that is full on average may be empty for half of the time.

use foretrain_core::Nanos;
use rustc_hash::FxHashMap;

use crate::jobs::{Field, Job};

/// Nanoseconds of a day.
const DAY: i64 = 86_400_000_000_000;
/// Days that are kept apart; 100 years.
const MOST: usize = 36_525;
/// Rows of a day, and those with a value by field.
type Counts = [u32; Field::COUNT + 1];

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
    /// Rows with a value, by field that the table has.
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
    /// Rows with a value, by field that the table has.
    pub filled: Vec<(Field, u64)>,
}

#[derive(Default)]
pub(super) struct Days {
    rows: FxHashMap<i64, Counts>,
    /// Fields that any row has a value of, a bit each.
    any: u64,
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
        self.any |= filled;
        let counts = self.rows.entry(day).or_insert([0; Field::COUNT + 1]);
        counts[0] = counts[0].saturating_add(1);
        let mut left = filled;
        while left != 0 {
            let count = &mut counts[left.trailing_zeros() as usize + 1];
            *count = count.saturating_add(1);
            left &= left - 1;
        }
    }

    /// Rows that could not be put on a day.
    pub(super) fn undated(&self) -> u64 {
        self.undated
    }

    fn sorted(&self) -> Vec<(i64, &Counts)> {
        let mut days: Vec<_> = self.rows.iter().map(|(day, counts)| (*day, counts)).collect();
        days.sort_unstable_by_key(|(day, _)| *day);
        days
    }

    /// Fields to follow: those that the table has, and those that rows tell in other ways.
    fn shown(&self, has: impl Fn(Field) -> bool) -> Vec<Field> {
        // What these say stands in other fields.
        let part = [Field::GpuShare, Field::Instances, Field::Attempts, Field::Devices];
        let told = |field: Field| self.any >> field.index() & 1 == 1 && !part.contains(&field);
        Field::ALL.iter().copied().filter(|field| has(*field) || told(*field)).collect()
    }

    /// Runs of days on which every field that the table has is covered to the same degree.
    pub(super) fn periods(&self, has: impl Fn(Field) -> bool) -> Vec<Period> {
        let shown = self.shown(has);
        let mut periods: Vec<(Vec<u8>, Period)> = Vec::new();
        for (day, counts) in self.sorted() {
            let of = |field: &Field| u64::from(counts[field.index() + 1]);
            let rows = u64::from(counts[0]);
            let own: Vec<u8> = shown.iter().map(|field| degree(of(field), rows)).collect();
            match periods.last_mut() {
                Some((degrees, period)) if *degrees == own => {
                    period.last = day;
                    period.days += 1;
                    period.rows += rows;
                    for (field, sum) in &mut period.filled {
                        *sum += of(field);
                    }
                }
                _ => {
                    let filled = shown.iter().map(|field| (*field, of(field))).collect();
                    periods.push((own, Period { first: day, last: day, days: 1, rows, filled }));
                }
            }
        }
        periods.into_iter().map(|(_, period)| period).collect()
    }

    pub(super) fn finish(self, has: impl Fn(Field) -> bool) -> Vec<Day> {
        let shown = self.shown(has);
        let days = self.sorted().into_iter().map(|(day, counts)| Day {
            day,
            rows: u64::from(counts[0]),
            filled: shown
                .iter()
                .map(|field| (*field, u64::from(counts[field.index() + 1])))
                .collect(),
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
