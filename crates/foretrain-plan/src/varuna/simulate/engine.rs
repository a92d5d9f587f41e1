//! The discrete-event simulation of one pipeline.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use foretrain_core::Nanos;

use super::jitter::{Jitter, Luck};
use super::{IN_FLIGHT, Step};
use crate::varuna::schedule::{Schedule, Task, Work, static_order};

/// One task as it ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Of which stage, from 0.
    pub stage: usize,
    /// What.
    pub task: Task,
    /// From the beginning of the step.
    pub start: Nanos,
    /// From the beginning of the step.
    pub end: Nanos,
}

/// A step as it went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// From the first start to the last end.
    pub makespan: Nanos,
    /// How long each stage computed.
    pub busy: Vec<Nanos>,
    /// Micro-batches that were forward and not yet backward on each stage, at most.
    pub in_flight: Vec<u32>,
    /// What ran, by its end; empty unless it was asked for.
    pub slices: Vec<Slice>,
}

impl Run {
    /// The share of the makespan in which stages do not compute, on average.
    pub fn bubble(&self) -> f64 {
        let span = self.makespan.nanos() as f64 * self.busy.len() as f64;
        let busy: f64 = self.busy.iter().map(|time| time.nanos() as f64).sum();
        if span > 0.0 { (1.0 - busy / span).clamp(0.0, 1.0) } else { 0.0 }
    }
}

/// Plays a step without variation.
pub fn simulate(step: &Step) -> Run {
    Engine::new(step, None, None).run()
}

/// Plays a step without variation and keeps what ran when.
pub fn simulate_recorded(step: &Step) -> Run {
    Engine::new(step, None, Some(Vec::new())).run()
}

/// Plays a step with the `run`th draw of variation.
pub(super) fn simulate_drawn(step: &Step, jitter: Jitter, run: u64) -> Run {
    Engine::new(step, Some(Luck::new(jitter, run)), None).run()
}

/// What happens at an instant. Order among equals decides nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Ended(u32, Task),
    /// What a stage sent after a task has arrived.
    Received(u32, Task),
}

struct Stage {
    order: VecDeque<Task>,
    /// Forward passes in `order` that were taken ahead of their turn.
    hoisted: u32,
    next_forward: u32,
    /// By micro-batch.
    activations: Vec<bool>,
    gradients: Vec<bool>,
    recomputed: Option<u32>,
    is_busy: bool,
    sending: u32,
    outbox: Outbox,
    in_flight: u32,
    /// Whether it is in the list of stages that something happened to.
    is_woken: bool,
}

/// What waits to be sent.
#[derive(Default)]
struct Outbox {
    activations: VecDeque<Task>,
    gradients: VecDeque<Task>,
}

struct Engine<'a> {
    step: &'a Step,
    luck: Option<Luck>,
    stages: Vec<Stage>,
    events: BinaryHeap<Reverse<(Nanos, Event)>>,
    woken: Vec<usize>,
    run: Run,
    slices: Option<Vec<Slice>>,
}

impl<'a> Engine<'a> {
    fn new(step: &'a Step, luck: Option<Luck>, slices: Option<Vec<Slice>>) -> Self {
        let count = step.pipeline().stages().len();
        let micro = step.micro_batches() as usize;
        let orders = static_order(step.schedule(), count, step.micro_batches());
        let stages = orders.into_iter().enumerate().map(|(index, order)| Stage {
            order,
            hoisted: 0,
            next_forward: 0,
            activations: vec![index == 0; micro],
            gradients: vec![index + 1 == count; micro],
            recomputed: None,
            is_busy: false,
            sending: 0,
            outbox: Outbox::default(),
            in_flight: 0,
            is_woken: true,
        });
        Self {
            step,
            luck,
            stages: stages.collect(),
            events: BinaryHeap::new(),
            woken: (0..count).collect(),
            run: Run {
                busy: vec![Nanos::ZERO; count],
                in_flight: vec![0; count],
                ..Run::default()
            },
            slices,
        }
    }

    fn run(mut self) -> Run {
        let mut now = Nanos::ZERO;
        loop {
            for stage in std::mem::take(&mut self.woken) {
                self.stages[stage].is_woken = false;
                self.start(stage, now);
            }
            let Some(Reverse((next, _))) = self.events.peek() else { break };
            now = *next;
            while let Some(Reverse((at, event))) = self.events.peek().copied() {
                if at > now {
                    break;
                }
                self.events.pop();
                self.happen(event, now);
            }
        }
        debug_assert!(self.stages.iter().all(|stage| stage.order.is_empty()), "a deadlock");
        self.run.makespan = now;
        self.run.slices = self.slices.unwrap_or_default();
        self.run
    }

    fn happen(&mut self, event: Event, now: Nanos) {
        let stage = match event {
            Event::Ended(stage, task) => {
                let stage = stage as usize;
                self.end(stage, task);
                stage
            }
            Event::Received(from, task) => {
                let from = from as usize;
                self.stages[from].sending -= 1;
                self.send(from, now);
                let micro = task.micro_batch as usize;
                if task.work == Work::Forward {
                    self.stages[from + 1].activations[micro] = true;
                    from + 1
                } else {
                    self.stages[from - 1].gradients[micro] = true;
                    from - 1
                }
            }
        };
        self.send(stage, now);
        if !self.stages[stage].is_woken {
            self.stages[stage].is_woken = true;
            self.woken.push(stage);
        }
    }

    /// A stage has done a task.
    fn end(&mut self, index: usize, task: Task) {
        let is_last = index + 1 == self.stages.len();
        let stage = &mut self.stages[index];
        stage.is_busy = false;
        match task.work {
            Work::Forward if !is_last => stage.outbox.activations.push_back(task),
            Work::Forward => {}
            Work::Recompute => stage.recomputed = Some(task.micro_batch),
            Work::Backward => {
                stage.in_flight -= 1;
                stage.recomputed = None;
                if index > 0 {
                    stage.outbox.gradients.push_back(task);
                }
            }
        }
    }

    /// Sends what a stage may send now.
    fn send(&mut self, index: usize, now: Nanos) {
        let messages = self.step.pipeline().messages();
        let stage = &mut self.stages[index];
        while stage.sending < IN_FLIGHT {
            let Outbox { activations, gradients } = &mut stage.outbox;
            let Some(task) = activations.pop_front().or_else(|| gradients.pop_front()) else {
                break;
            };
            let boundary = if task.work == Work::Forward { index } else { index - 1 };
            let usual = messages[boundary];
            let time = self.luck.map_or(usual, |luck| luck.message(usual, index, task));
            stage.sending += 1;
            self.events.push(Reverse((now + time, Event::Received(index as u32, task))));
        }
    }

    /// Starts the next task of a stage, if it may start.
    fn start(&mut self, index: usize, now: Nanos) {
        let Some(task) = self.stages[index].take(self.step.schedule()) else { return };
        let times = self.step.pipeline().stages()[index];
        let usual = if task.work == Work::Backward { times.backward } else { times.forward };
        let time = self.luck.map_or(usual, |luck| luck.task(usual, index, task));
        let stage = &mut self.stages[index];
        stage.is_busy = true;
        if task.work == Work::Forward {
            stage.in_flight += 1;
            self.run.in_flight[index] = self.run.in_flight[index].max(stage.in_flight);
        }
        self.run.busy[index] += time;
        if let Some(slices) = &mut self.slices {
            slices.push(Slice { stage: index, task, start: now, end: now + time });
        }
        self.events.push(Reverse((now + time, Event::Ended(index as u32, task))));
    }
}

impl Stage {
    /// The task that may start now, taken from the order.
    fn take(&mut self, schedule: Schedule) -> Option<Task> {
        if self.is_busy {
            return None;
        }
        while self.hoisted > 0 && self.order.front()?.work == Work::Forward {
            self.order.pop_front();
            self.hoisted -= 1;
        }
        let next = *self.order.front()?;
        if self.may_start(next, schedule) {
            self.order.pop_front();
            self.next_forward += u32::from(next.work == Work::Forward);
            return Some(next);
        }
        let waits = next.work == Work::Recompute && schedule == Schedule::Varuna;
        let ahead = Task { work: Work::Forward, micro_batch: self.next_forward };
        let may_hoist = waits && !self.gradients[next.micro_batch as usize];
        if may_hoist && self.may_start(ahead, schedule) {
            self.hoisted += 1;
            self.next_forward += 1;
            return Some(ahead);
        }
        None
    }

    fn may_start(&self, task: Task, schedule: Schedule) -> bool {
        let micro = task.micro_batch as usize;
        match task.work {
            Work::Forward => {
                self.recomputed.is_none() && self.activations.get(micro).is_some_and(|here| *here)
            }
            Work::Recompute => {
                let awaits = schedule.recompute_awaits_gradient();
                self.recomputed.is_none() && (!awaits || self.gradients[micro])
            }
            // Its recomputation stands before it in the order, where there is one.
            Work::Backward => self.gradients[micro],
        }
    }
}
