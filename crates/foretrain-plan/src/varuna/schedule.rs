//! The order in which each stage of a pipeline would work if all work took the same time.
//!
//! The order is found by playing rounds in which every stage does one piece of work. What then
//! happens with real durations is up to the simulator, which may depart from this order
//! only where the schedule allows it.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;

use foretrain_core::{InputError, suggest};

/// How the work of a pipeline is ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Schedule {
    /// Backward before recompute before forward; a stage that waits for a gradient may take
    /// the next forward pass ahead of its turn. Activations are recomputed, but for the last stage.
    Varuna,
    /// All forward passes, then all backward passes in reverse; activations are recomputed on all
    /// stages, before the gradient arrives where there is time.
    GPipe,
    /// One forward and one backward pass by turns; activations are kept.
    OneFOneB,
    /// The same, with activations recomputed, but for the last stage.
    OneFOneBRecompute,
}

impl Schedule {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Varuna, Self::GPipe, Self::OneFOneB, Self::OneFOneBRecompute];

    /// Its name, as it is written and read.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Varuna => "varuna",
            Self::GPipe => "gpipe",
            Self::OneFOneB => "1f1b",
            Self::OneFOneBRecompute => "1f1b-recompute",
        }
    }

    /// Whether a stage runs its forward pass again before a backward pass.
    pub const fn recomputes(self, is_last_stage: bool) -> bool {
        match self {
            Self::Varuna | Self::OneFOneBRecompute => !is_last_stage,
            Self::GPipe => true,
            Self::OneFOneB => false,
        }
    }

    /// Whether recomputing waits for the gradient, so that its activations are used at once.
    pub(super) const fn recompute_awaits_gradient(self) -> bool {
        matches!(self, Self::Varuna)
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Schedule {
    type Err = InputError;

    fn from_str(text: &str) -> Result<Self, InputError> {
        let wanted = text.trim();
        let found = Self::ALL.into_iter().find(|s| s.as_str().eq_ignore_ascii_case(wanted));
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::as_str);
            let error = InputError::new(format!("unknown schedule {wanted:?}"));
            match suggest::nearest(wanted, names) {
                Some(near) => error.hint(format!("did you mean {near}?")),
                None => error.hint(format!("write {}", names.join(", "))),
            }
        })
    }
}

/// What a stage does with a micro-batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Work {
    /// The forward pass.
    Forward,
    /// The forward pass again, for its activations.
    Recompute,
    /// The backward pass.
    Backward,
}

impl Work {
    /// The word for tables.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Recompute => "recompute",
            Self::Backward => "backward",
        }
    }
}

/// One piece of work of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Task {
    /// What.
    pub work: Work,
    /// Of which micro-batch, from 0.
    pub micro_batch: u32,
}

impl Task {
    const fn new(work: Work, micro_batch: u32) -> Self {
        Self { work, micro_batch }
    }
}

/// The tasks of each stage, in order.
pub(super) fn static_order(
    schedule: Schedule,
    stages: usize,
    micro_batches: u32,
) -> Vec<VecDeque<Task>> {
    match schedule {
        Schedule::Varuna => rounds(&mut Varuna, stages, micro_batches),
        Schedule::GPipe => rounds(&mut GPipe, stages, micro_batches),
        Schedule::OneFOneB | Schedule::OneFOneBRecompute => (0..stages)
            .map(|stage| {
                let is_last = stage + 1 == stages;
                one_by_one(stages - 1 - stage, micro_batches, schedule.recomputes(is_last))
            })
            .collect(),
    }
}

/// Alternates after `warm_up` forward passes.
fn one_by_one(warm_up: usize, micro_batches: u32, recomputes: bool) -> VecDeque<Task> {
    let warm_up = micro_batches.min(u32::try_from(warm_up).unwrap_or(u32::MAX));
    let mut order: VecDeque<Task> =
        (0..warm_up).map(|micro| Task::new(Work::Forward, micro)).collect();
    for micro in 0..micro_batches {
        let ahead = micro.saturating_add(warm_up);
        if ahead < micro_batches {
            order.push_back(Task::new(Work::Forward, ahead));
        }
        if recomputes {
            order.push_back(Task::new(Work::Recompute, micro));
        }
        order.push_back(Task::new(Work::Backward, micro));
    }
    order
}

/// What a stage prefers to do, and what becomes possible by it.
trait Rules {
    const PRIORITY: [Work; 3];
    fn done(&mut self, ready: &mut Ready, stage: usize, task: Task);
}

/// Work that stages could do, by kind and stage.
struct Ready {
    queues: [Vec<VecDeque<u32>>; 3],
    stages: usize,
    micro_batches: u32,
}

impl Ready {
    fn push(&mut self, work: Work, stage: usize, micro_batch: u32) {
        self.queues[work as usize][stage].push_back(micro_batch);
    }
    fn pop(&mut self, work: Work, stage: usize) -> Option<Task> {
        self.queues[work as usize][stage].pop_front().map(|micro| Task::new(work, micro))
    }
}

struct Varuna;

impl Rules for Varuna {
    const PRIORITY: [Work; 3] = [Work::Backward, Work::Recompute, Work::Forward];

    fn done(&mut self, ready: &mut Ready, stage: usize, task: Task) {
        let is_last = stage + 1 == ready.stages;
        match task.work {
            Work::Forward if is_last => ready.push(Work::Backward, stage, task.micro_batch),
            Work::Forward => ready.push(Work::Forward, stage + 1, task.micro_batch),
            Work::Recompute => ready.push(Work::Backward, stage, task.micro_batch),
            Work::Backward if stage > 0 => {
                ready.push(Work::Recompute, stage - 1, task.micro_batch);
            }
            Work::Backward => {}
        }
    }
}

struct GPipe;

impl Rules for GPipe {
    const PRIORITY: [Work; 3] = [Work::Forward, Work::Backward, Work::Recompute];

    fn done(&mut self, ready: &mut Ready, stage: usize, task: Task) {
        let is_last = stage + 1 == ready.stages;
        let micro = task.micro_batch;
        match task.work {
            Work::Forward if !is_last => ready.push(Work::Forward, stage + 1, micro),
            Work::Forward if micro + 1 == ready.micro_batches => {
                ready.push(Work::Recompute, stage, micro);
            }
            Work::Forward => {}
            Work::Recompute => {
                ready.push(Work::Backward, stage, micro);
                if stage > 0 {
                    ready.push(Work::Recompute, stage - 1, micro);
                }
            }
            Work::Backward if is_last && micro > 0 => {
                ready.push(Work::Recompute, stage, micro - 1);
            }
            Work::Backward => {}
        }
    }
}

/// Rounds of one piece of work per stage, until nothing is left to do.
fn rounds<R: Rules>(rules: &mut R, stages: usize, micro_batches: u32) -> Vec<VecDeque<Task>> {
    let empty = || vec![VecDeque::new(); stages];
    let mut ready = Ready { queues: [empty(), empty(), empty()], stages, micro_batches };
    ready.queues[Work::Forward as usize][0].extend(0..micro_batches);
    let mut order = vec![VecDeque::new(); stages];
    let mut round: Vec<(usize, Task)> = Vec::with_capacity(stages);
    loop {
        for stage in 0..stages {
            let mut works = R::PRIORITY.into_iter();
            round.extend(works.find_map(|work| ready.pop(work, stage)).map(|task| (stage, task)));
        }
        if round.is_empty() {
            return order;
        }
        for (stage, task) in round.drain(..) {
            order[stage].push_back(task);
            rules.done(&mut ready, stage, task);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(schedule: Schedule, stages: usize, micro_batches: u32) -> Vec<String> {
        let letter = |task: &Task| format!("{:.1}{}", task.work.as_str(), task.micro_batch);
        let line = |tasks: &VecDeque<Task>| tasks.iter().map(letter).collect::<Vec<_>>().join(" ");
        static_order(schedule, stages, micro_batches).iter().map(line).collect()
    }

    #[test]
    fn orders_of_two_stages() {
        assert_eq!(
            shown(Schedule::Varuna, 2, 3),
            ["f0 f1 f2 r0 b0 r1 b1 r2 b2", "f0 b0 f1 b1 f2 b2"]
        );
        assert_eq!(shown(Schedule::GPipe, 2, 2), ["f0 f1 r1 b1 r0 b0", "f0 f1 r1 b1 r0 b0"]);
        assert_eq!(shown(Schedule::OneFOneB, 2, 3), ["f0 f1 b0 f2 b1 b2", "f0 b0 f1 b1 f2 b2"]);
        assert_eq!(shown(Schedule::OneFOneBRecompute, 2, 2), ["f0 f1 r0 b0 r1 b1", "f0 b0 f1 b1"]);
    }

    #[test]
    fn every_stage_does_every_micro_batch_once() {
        for schedule in Schedule::ALL {
            for (stages, micro_batches) in [(1, 1), (1, 5), (3, 1), (5, 3), (4, 9)] {
                let order = static_order(schedule, stages, micro_batches);
                for (stage, tasks) in order.into_iter().enumerate() {
                    let mut tasks = Vec::from(tasks);
                    tasks.sort();
                    let recomputes = schedule.recomputes(stage + 1 == stages);
                    let works = [Work::Forward, Work::Recompute, Work::Backward];
                    let works = works.into_iter().filter(|w| recomputes || *w != Work::Recompute);
                    let all: Vec<Task> = works
                        .flat_map(|work| (0..micro_batches).map(move |m| Task::new(work, m)))
                        .collect();
                    assert_eq!(tasks, all, "{schedule} stage {stage} of {stages}");
                }
            }
        }
    }

    #[test]
    fn names_are_read_back_and_slips_are_mended() {
        for schedule in Schedule::ALL {
            assert_eq!(schedule.to_string().parse(), Ok(schedule));
        }
        let error = "gpip".parse::<Schedule>().unwrap_err();
        assert!(error.hints()[0].contains("gpipe"), "{error:?}");
    }
}
