//! GPUs that jobs held, against GPUs that samples saw busy.

use foretrain_core::diagnostics::Coverage;
use foretrain_core::{Ledger, Nanos, Severity};
use rustc_hash::FxHashMap;

use super::duplicates::hash;
use super::machines::Evidence;
use crate::jobs::{Job, Sample};

/// A GPU is busy from this utilisation on: drivers and monitors alone stay below.
const BUSY: f64 = 0.05;
/// A smaller share of busy samples without a job is within what clocks differ by.
const TOLERATED: f64 = 0.01;
/// Minutes that are kept apart: ten years.
const MOST_TIMES: usize = 5_000_000;
const MINUTE: i64 = 60_000_000_000;

/// GPUs in use over time: sorted times, and how many from each on.
#[derive(Debug, Default)]
struct Steps {
    changes: Vec<(Nanos, f64)>,
}

impl Steps {
    fn add(&mut self, start: Nanos, end: Nanos, gpus: f64) {
        self.changes.push((start, gpus));
        self.changes.push((end, -gpus));
    }

    /// Turns changes into levels.
    fn settle(&mut self) {
        // At equal times GPUs are freed first.
        self.changes.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let mut level = 0.0;
        for (_, gpus) in &mut self.changes {
            level += *gpus;
            *gpus = level;
        }
    }

    fn at(&self, time: Nanos) -> f64 {
        let after = self.changes.partition_point(|(change, _)| *change <= time);
        after.checked_sub(1).map_or(0.0, |index| self.changes[index].1.max(0.0))
    }

    fn peak(&self) -> f64 {
        let most = self.changes.iter().map(|(_, level)| *level).fold(0.0, f64::max);
        // Fractions that come and go leave traces in the last digits.
        (most * 1e6).round() / 1e6
    }
}

/// What samples saw within a minute.
#[derive(Clone, Copy, Debug, Default)]
struct Minute {
    busy: f64,
    /// The machine and GPU that were sampled first in it, and how often.
    first: u64,
    repeats: u32,
}

impl Minute {
    /// Busy GPUs: all are sampled as often as the first.
    fn mean(self) -> f64 {
        self.busy / f64::from(self.repeats.max(1))
    }
}

/// The middle of a minute.
fn point_of(minute: i64) -> Nanos {
    Nanos::from_nanos(minute.saturating_mul(MINUTE) + MINUTE / 2)
}

/// Samples that saw GPUs busy without a job of the table on them.
#[derive(Clone, Debug, PartialEq)]
pub struct Gap {
    /// Busy GPU samples without a job, of all busy ones within the jobs' span.
    pub unexplained: f64,
    /// Busy GPU samples within the jobs' span.
    pub busy: f64,
    /// All GPU samples within the jobs' span.
    pub compared: u64,
    /// GPU samples outside of it, which say nothing of the table.
    pub outside: u64,
    /// Mean GPUs that samples saw busy, over the minutes that have any.
    pub mean_busy: f64,
    /// Mean GPUs that jobs held in these minutes.
    pub mean_held: f64,
    /// Jobs whose end is not known. They are taken to hold their GPUs from their start on, so that
    /// the gap is at least as large as said.
    pub open_ended: u64,
    /// Whether samples were held against the jobs of each machine, or of the whole fleet.
    pub by_machine: bool,
    /// Machines with the most busy samples without a job.
    pub machines: Vec<(String, f64)>,
}

impl Gap {
    /// The share of busy samples that no job of the table explains.
    pub fn share(&self) -> f64 {
        if self.busy > 0.0 { self.unexplained / self.busy } else { 0.0 }
    }

    /// Whether the table of jobs must be incomplete.
    pub fn incomplete(&self) -> bool {
        self.share() > TOLERATED
    }
}

#[derive(Default)]
pub(super) struct Busy {
    all: Steps,
    /// GPUs of jobs whose end is not known.
    open: Steps,
    open_ended: u64,
    machines: FxHashMap<String, Steps>,
    placed: u64,
    jobs: u64,
    /// GPU-seconds held.
    held: f64,
    span: Option<(Nanos, Nanos)>,
    settled: bool,
    tally: Tally,
}

#[derive(Default)]
struct Tally {
    seen: bool,
    compared: u64,
    outside: u64,
    busy: f64,
    unexplained: f64,
    by_machine: FxHashMap<String, f64>,
    minutes: FxHashMap<i64, Minute>,
    crowded: u64,
}

impl Busy {
    /// A job held GPUs from `start` to `end`.
    pub(super) fn held(&mut self, job: &Job, start: Nanos, end: Nanos, gpus: f64) {
        self.jobs += 1;
        self.held += gpus * (end - start).secs_f64();
        let (first, last) = self.span.unwrap_or((start, end));
        self.span = Some((first.min(start), last.max(end)));
        self.all.add(start, end, gpus);
        self.placed += u64::from(!job.placements.is_empty());
        self.place(job, start, end, gpus);
    }

    /// A job began to hold GPUs, and nobody knows until when.
    pub(super) fn began(&mut self, job: &Job, start: Nanos, gpus: f64) {
        self.open_ended += 1;
        self.open.add(start, Nanos::MAX, gpus);
        self.place(job, start, Nanos::MAX, gpus);
    }

    fn place(&mut self, job: &Job, start: Nanos, end: Nanos, gpus: f64) {
        let even = gpus / job.placements.len() as f64;
        for placed in &job.placements {
            let own = placed.gpus.map_or(even, f64::from);
            if !self.machines.contains_key(&placed.machine) {
                self.machines.insert(placed.machine.clone(), Steps::default());
            }
            if let Some(steps) = self.machines.get_mut(&placed.machine) {
                steps.add(start, end, own);
            }
        }
    }

    /// Makes ready for samples; no more jobs come.
    pub(super) fn prepare(&mut self) {
        if self.settled {
            return;
        }
        self.settled = true;
        self.all.settle();
        self.open.settle();
        self.machines.values_mut().for_each(Steps::settle);
    }

    /// The most GPUs that jobs held at once.
    pub(super) fn peak(&mut self) -> f64 {
        self.prepare();
        self.all.peak()
    }

    /// GPU-seconds that jobs held, and from the first start to the last end.
    pub(super) fn held_over(&self) -> Option<(f64, Nanos)> {
        let (first, last) = self.span?;
        (last > first).then_some((self.held, last - first))
    }

    /// Jobs say where they ran, but for a few.
    fn by_machine(&self) -> bool {
        self.placed * 10 >= self.jobs * 9
    }

    pub(super) fn sample(&mut self, sample: &Sample, evidence: &mut Evidence) {
        self.tally.seen = true;
        let (machine, gpu) = split(&sample.machine, evidence);
        let values = sample.busy.iter().enumerate().filter_map(|(gpu, busy)| Some((gpu, (*busy)?)));
        let highest = values.clone().map(|(gpu, _)| gpu as u32 + 1 + sample.first).max();
        // A single value of a machine with several GPUs is their mean.
        let mean_of = (sample.busy.len() == 1 && sample.first == 0 && gpu.is_none())
            .then(|| evidence.gpus(machine))
            .flatten()
            .filter(|gpus| *gpus > 1);
        if let Some(highest) = highest.filter(|_| mean_of.is_none() && !machine.is_empty()) {
            evidence.logged(machine, gpu.map_or(highest, |gpu| gpu + 1));
        }
        let count = values.clone().count() as u64 * u64::from(mean_of.unwrap_or(1));
        let outside = self.span.is_none_or(|(first, last)| sample.at < first || sample.at >= last);
        if outside {
            self.tally.outside += count;
            return;
        }
        self.tally.compared += count;
        let busy: f64 = match mean_of {
            Some(gpus) => values.map(|(_, busy)| busy * f64::from(gpus)).sum(),
            None => values.filter(|(_, busy)| *busy >= BUSY).count() as f64,
        };
        let whole = mean_of.is_some() || sample.busy.len() > 1;
        let by_machine = self.by_machine();
        let tally = &mut self.tally;
        tally.busy += busy;
        if by_machine {
            let held = self.machines.get(machine).map_or(0.0, |steps| steps.at(sample.at));
            // Which GPUs of a machine a job held is not known, so one of them alone is only
            // missed where no job is on the machine.
            let missing = if whole {
                (busy - held).max(0.0)
            } else if held > 0.0 {
                0.0
            } else {
                busy
            };
            if missing > 0.0 {
                tally.unexplained += missing;
                *tally.by_machine.entry(machine.to_owned()).or_default() += missing;
            }
        }
        let minute = sample.at.nanos().div_euclid(MINUTE);
        if tally.minutes.len() < MOST_TIMES || tally.minutes.contains_key(&minute) {
            let who = hash(&(&sample.machine, sample.first));
            let point =
                tally.minutes.entry(minute).or_insert(Minute { first: who, ..Minute::default() });
            point.busy += busy;
            point.repeats += u32::from(point.first == who);
        } else {
            tally.crowded += 1;
        }
    }

    pub(super) fn gap(mut self, ledger: &mut Ledger) -> Option<Gap> {
        if !self.tally.seen || self.jobs == 0 {
            return None;
        }
        self.prepare();
        let by_machine = self.by_machine();
        let mut times: Vec<(Nanos, f64)> = self
            .tally
            .minutes
            .iter()
            .map(|(minute, point)| (point_of(*minute), point.mean()))
            .collect();
        times.sort_unstable_by_key(|(time, _)| *time);
        let held: Vec<f64> = times.iter().map(|(time, _)| self.all.at(*time)).collect();
        let over_all: f64 = times
            .iter()
            .zip(&held)
            .map(|((time, busy), held)| (busy - held - self.open.at(*time)).max(0.0))
            .sum();
        let seen: f64 = times.iter().map(|(_, busy)| busy).sum();
        // Of the means of minutes, in samples.
        let over_all = if seen > 0.0 { over_all / seen * self.tally.busy } else { 0.0 };
        let points = times.len().max(1) as f64;
        let tally = self.tally;
        let mut machines: Vec<(String, f64)> = tally.by_machine.into_iter().collect();
        machines.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        machines.truncate(10);
        let gap = Gap {
            unexplained: tally.unexplained.max(over_all),
            busy: tally.busy,
            compared: tally.compared,
            outside: tally.outside,
            mean_busy: seen / points,
            mean_held: held.iter().sum::<f64>() / points,
            open_ended: self.open_ended,
            by_machine,
            machines,
        };
        ledger.cover(
            "GPU samples within the span of the jobs",
            gap.compared,
            gap.compared + gap.outside,
        );
        if gap.incomplete() {
            let part =
                Coverage { used: gap.unexplained.round() as u64, total: gap.busy.round() as u64 };
            ledger.record_at(
                Severity::Warning,
                "job-table-incomplete",
                "job table incomplete: GPUs are busy on which no job of the table runs",
                || format!("{part} busy GPU samples"),
            );
        }
        ledger.record_many(
            Severity::Dropped,
            "sample-times-beyond",
            "samples beyond five million minutes are only compared by machine",
            tally.crowded,
            None,
        );
        Some(gap)
    }
}

/// The machine of a title such as `10.140.1.10-3`, and the GPU in it.
fn split<'a>(title: &'a str, evidence: &Evidence) -> (&'a str, Option<u32>) {
    if evidence.knows(title) {
        return (title, None);
    }
    let cut = title.rfind(['-', '/', ':', '_']);
    let found = cut.and_then(|cut| {
        let gpu =
            title[cut + 1..].trim_start_matches("gpu").parse().ok().filter(|gpu| *gpu < 64)?;
        evidence.knows(&title[..cut]).then_some((&title[..cut], Some(gpu)))
    });
    found.unwrap_or((title, None))
}
