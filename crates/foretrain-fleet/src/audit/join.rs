//! Which jobs have pods, tasks or instances in another table, day by day.

use std::collections::BTreeMap;

use foretrain_core::diagnostics::Coverage;
use foretrain_core::{Ledger, Severity};
use rustc_hash::FxHashMap;

use super::days::{day_of, degree};
use super::duplicates::hash;
use crate::jobs::Job;

/// All jobs, by what identifies them.
#[derive(Default)]
pub(super) struct Index {
    /// Day of each job; without one if it has no date.
    days: Vec<Option<i64>>,
    by_id: FxHashMap<u64, u32>,
    by_alias: FxHashMap<u64, u32>,
    unnamed: u64,
}

impl Index {
    pub(super) fn add(&mut self, job: &Job) {
        if job.id.is_empty() && job.alias.is_empty() {
            self.unnamed += 1;
            return;
        }
        let Ok(number) = u32::try_from(self.days.len()) else { return };
        self.days.push(job.dated().map(day_of));
        if !job.id.is_empty() {
            self.by_id.entry(hash(&job.id)).or_insert(number);
        }
        if !job.alias.is_empty() {
            self.by_alias.entry(hash(&job.alias)).or_insert(number);
        }
    }

    fn find(&self, job: &Job) -> Option<u32> {
        let by = |map: &FxHashMap<u64, u32>, name: &String| {
            if name.is_empty() { None } else { map.get(&hash(name)).copied() }
        };
        by(&self.by_id, &job.id).or_else(|| by(&self.by_alias, &job.alias))
    }
}

/// Days that follow each other and are linked alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinPeriod {
    /// The first day, counted from the origin of the jobs' table.
    pub first: i64,
    /// The last.
    pub last: i64,
    /// Linked jobs of all jobs.
    pub jobs: Coverage,
}

/// A table of parts against the jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Join {
    /// The file of the parts.
    pub parts: String,
    /// Rows of it that name a job there is.
    pub rows: Coverage,
    /// Jobs that have a row in it, of all that have an id.
    pub jobs: Coverage,
    /// Jobs without an id, which nothing can be joined to.
    pub unnamed: u64,
    /// Jobs with parts on more than one machine.
    pub on_several_machines: u64,
    /// The days on which its rows are dated, first and last.
    pub days: Option<(i64, i64)>,
    /// Linked jobs over the days of the jobs.
    pub periods: Vec<JoinPeriod>,
    linked: FxHashMap<u32, Machine>,
}

/// The machines of a job's parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Machine {
    Unknown,
    One(u64),
    Several,
}

impl Join {
    pub(super) fn begin(parts: &str) -> Self {
        Self {
            parts: parts.to_owned(),
            rows: Coverage::default(),
            jobs: Coverage::default(),
            unnamed: 0,
            on_several_machines: 0,
            days: None,
            periods: Vec::new(),
            linked: FxHashMap::default(),
        }
    }

    pub(super) fn part(&mut self, part: &Job, index: &mut Index) {
        self.rows.total += 1;
        if let Some(day) = part.dated().map(day_of) {
            let (first, last) = self.days.unwrap_or((day, day));
            self.days = Some((first.min(day), last.max(day)));
        }
        let Some(job) = index.find(part) else { return };
        self.rows.used += 1;
        let machines = self.linked.entry(job).or_insert(Machine::Unknown);
        for placed in &part.placements {
            let machine = hash(&placed.machine);
            *machines = match *machines {
                Machine::Unknown => Machine::One(machine),
                Machine::One(known) if known == machine => Machine::One(known),
                _ => Machine::Several,
            };
        }
    }

    pub(super) fn finish(&mut self, index: &Index, ledger: &mut Ledger) {
        self.jobs = Coverage { used: self.linked.len() as u64, total: index.days.len() as u64 };
        self.unnamed = index.unnamed;
        let several = self.linked.iter().filter(|(_, machine)| **machine == Machine::Several);
        self.on_several_machines = several.count() as u64;
        let mut days: BTreeMap<i64, Coverage> = BTreeMap::new();
        for (number, day) in index.days.iter().enumerate() {
            let Some(day) = day else { continue };
            let coverage = days.entry(*day).or_default();
            coverage.total += 1;
            coverage.used += u64::from(self.linked.contains_key(&(number as u32)));
        }
        for (day, jobs) in days {
            let own = degree(jobs.used, jobs.total);
            match self.periods.last_mut() {
                Some(last) if degree(last.jobs.used, last.jobs.total) == own => {
                    last.last = day;
                    last.jobs.used += jobs.used;
                    last.jobs.total += jobs.total;
                }
                _ => self.periods.push(JoinPeriod { first: day, last: day, jobs }),
            }
        }
        self.linked = FxHashMap::default();
        ledger.cover(
            &format!("jobs with a row in {}", self.parts),
            self.jobs.used,
            self.jobs.total,
        );
        ledger.record_many(
            Severity::Warning,
            "part-of-no-job",
            "pod, task or instance that names no job of the table of jobs",
            self.rows.total - self.rows.used,
            Some(self.parts.clone()),
        );
    }
}
