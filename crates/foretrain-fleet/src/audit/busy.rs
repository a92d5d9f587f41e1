//! GPUs that jobs held, against GPUs that samples saw busy.

use foretrain_core::{Ledger, Nanos, Severity};
use rustc_hash::FxHashMap;

use super::duplicates::hash;
use super::gap::Gap;
use super::machines::Evidence;
use super::steps::Steps;
use crate::jobs::{Holding, Job, Named, Sample, Status};

/// A GPU is busy from this utilisation on: drivers and monitors alone stay below.
const BUSY: f64 = 0.05;
/// Minutes that are kept apart: ten years.
const MOST_TIMES: usize = 5_000_000;
/// Times that machines were held which are kept, and machines: less than a gigabyte.
const MOST_PLACES: usize = 20_000_000;
const MOST_MACHINES: usize = 1_000_000;
const MINUTE: i64 = 60_000_000_000;

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

#[derive(Default)]
pub(super) struct Busy {
    all: Steps,
    /// GPUs of jobs whose end is not known, from their start on.
    open: Steps,
    /// Those of them that surely are held: by jobs that still run, and by others as they start.
    surely: Steps,
    open_ended: u64,
    machines: FxHashMap<String, OnMachine>,
    /// Whether a row does not tell how many GPUs are held at once on its machines.
    vague: bool,
    placed: u64,
    /// Times that machines were held, and jobs that have too many to keep.
    times: usize,
    beyond: u64,
    jobs: u64,
    /// GPU-seconds held.
    held: f64,
    span: Option<(Nanos, Nanos)>,
    settled: bool,
    tally: Tally,
}

/// GPUs that jobs held on one machine.
#[derive(Default)]
struct OnMachine {
    /// As rows say.
    counted: Steps,
    /// By jobs on several machines that do not say how many on each, taken to be even; by jobs that
    /// may have ended; and by vague rows.
    supposed: Steps,
}

#[derive(Default)]
struct Tally {
    seen: bool,
    /// Whether any sample says of which machine it is.
    named: bool,
    compared: u64,
    outside: u64,
    busy: f64,
    unexplained: f64,
    by_machine: FxHashMap<String, f64>,
    minutes: FxHashMap<i64, Minute>,
    crowded: u64,
}

impl Busy {
    /// A job held GPUs.
    pub(super) fn holds(&mut self, job: &Job, held: &Holding<'_>) {
        let &Holding { start, gpus, .. } = held;
        let Some(end) = held.end else { return self.began(job, held) };
        self.jobs += 1;
        self.held += gpus * (end - start).secs_f64();
        let (first, last) = self.span.unwrap_or((start, end));
        self.span = Some((first.min(start), last.max(end)));
        self.all.add(start, end, gpus);
        self.placed += u64::from(!held.placements.is_empty());
        self.place(job, held, end);
    }

    /// A job began to hold GPUs, and nobody knows until when.
    fn began(&mut self, job: &Job, held: &Holding<'_>) {
        let &Holding { start, gpus, .. } = held;
        self.open_ended += 1;
        self.open.add(start, Nanos::MAX, gpus);
        let runs = job.status == Some(Status::Running);
        let surely = if runs { Nanos::MAX } else { start + Nanos::from_nanos(1) };
        self.surely.add(start, surely, gpus);
        self.place(job, held, Nanos::MAX);
    }

    /// Whether the row that comes is an earlier row again, so that it tells nothing of jobs at once on
    /// its machines.
    pub(super) fn vague(&mut self, vague: bool) {
        self.vague = vague;
    }

    fn place(&mut self, job: &Job, held: &Holding<'_>, end: Nanos) {
        let &Holding { start, gpus, placements, .. } = held;
        let sliced = job.slice().is_some();
        let ended = end < Nanos::MAX || job.status == Some(Status::Running);
        let alone = placements.len() == 1;
        let counts = || placements.iter().filter_map(|placed| placed.gpus);
        let counted: f64 = if sliced { 0.0 } else { counts().map(f64::from).sum() };
        let uncounted = if sliced { placements.len() } else { placements.len() - counts().count() };
        let even = (gpus - counted).max(0.0) / uncounted.max(1) as f64;
        let most = self.machines.len() + placements.len();
        if self.times + placements.len() > MOST_PLACES || most > MOST_MACHINES {
            self.beyond += 1;
            return;
        }
        self.times += placements.len();
        for placed in placements {
            let own = placed.gpus.filter(|_| !sliced);
            let (own, is_counted) = match own {
                // A row's parts of GPUs are less than the GPUs that they are on.
                _ if alone => {
                    let named = own.map(f64::from).filter(|own| *own > gpus.ceil());
                    (named.unwrap_or(gpus), true)
                }
                Some(own) => (f64::from(own), true),
                None => (even, false),
            };
            if !self.machines.contains_key(&placed.machine) {
                self.machines.insert(placed.machine.clone(), OnMachine::default());
            }
            if let Some(machine) = self.machines.get_mut(&placed.machine) {
                let is_sure = is_counted && ended && !self.vague;
                let steps = if is_sure { &mut machine.counted } else { &mut machine.supposed };
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
        self.surely.settle();
        self.machines.values_mut().for_each(|machine| {
            machine.counted.settle();
            machine.supposed.settle();
        });
    }

    /// The most GPUs that jobs held at once. Of jobs whose end is not known those that still run are
    /// taken to do so, and others to have run for a moment.
    pub(super) fn peak(&mut self) -> f64 {
        self.prepare();
        self.all.peak_with(&self.surely)
    }

    /// Jobs with more machines than are kept.
    pub(super) fn beyond(&self) -> u64 {
        self.beyond
    }

    /// Jobs whose end is not known.
    pub(super) fn open_ended(&self) -> u64 {
        self.open_ended
    }

    /// The most GPUs that jobs held at once on a machine, of those that say so.
    pub(super) fn at_once(&self, machine: &str) -> Option<u32> {
        let most = self.machines.get(machine)?.counted.lasting_peak().ceil() as u32;
        (most > 0).then_some(most)
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
        let (machine, gpus) = whose(sample, evidence);
        self.tally.named |= !machine.is_empty();
        let values = sample.busy.iter().enumerate().filter_map(|(gpu, busy)| Some((gpu, (*busy)?)));
        // Where nothing names GPUs, a single value of a machine with several is their mean.
        let is_mean = gpus == Named::Not && sample.busy.len() == 1;
        let mean_of = is_mean.then(|| evidence.gpus(machine)).flatten().filter(|gpus| *gpus > 1);
        let highest = values.clone().map(|(gpu, _)| gpu as u32 + 1).max();
        if let Some(highest) = highest.filter(|_| !machine.is_empty()) {
            let numbered = match gpus {
                Named::From(first) => Some(first.saturating_add(highest)),
                Named::Not if !is_mean => Some(highest),
                _ => None,
            };
            evidence.logged(machine, numbered);
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
        let by_machine = self.by_machine() && !machine.is_empty();
        let tally = &mut self.tally;
        tally.busy += busy;
        if by_machine {
            let held = self.machines.get(machine).map_or(0.0, |machine| {
                machine.counted.at(sample.at) + machine.supposed.at(sample.at)
            });
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
            let who = hash(&(&sample.machine, sample.gpus));
            let point =
                tally.minutes.entry(minute).or_insert(Minute { first: who, ..Minute::default() });
            point.busy += busy;
            point.repeats += u32::from(point.first == who);
        } else {
            tally.crowded += 1;
        }
    }

    pub(super) fn gap(mut self, clocks_differ: bool, ledger: &mut Ledger) -> Option<Gap> {
        if !self.tally.seen || self.jobs == 0 {
            return None;
        }
        self.prepare();
        let by_machine = self.by_machine() && self.tally.named;
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
            clocks_differ,
        };
        gap.record(ledger);
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

/// The machine of a sample and its GPUs, where a title such as `10.140.1.10-3` names both, or such as
/// `gpu3` a GPU of the only machine.
fn whose<'a>(sample: &'a Sample, evidence: &Evidence) -> (&'a str, Named) {
    let title = sample.machine.as_str();
    let perhaps = match sample.gpus {
        Named::Perhaps(gpu) => Some(gpu),
        Named::Not => None,
        named => return (title, named),
    };
    if evidence.knows(title) {
        return (title, Named::Not);
    }
    let cut = title.rfind(['-', '/', ':', '_']);
    let found = cut.and_then(|cut| {
        let gpu =
            title[cut + 1..].trim_start_matches("gpu").parse().ok().filter(|gpu| *gpu < 64)?;
        evidence.knows(&title[..cut]).then_some((&title[..cut], Named::From(gpu)))
    });
    found.unwrap_or(match perhaps {
        Some(gpu) => ("", Named::From(gpu)),
        None => (title, Named::Not),
    })
}
