//! When each stage gets to what.

use foretrain_core::Nanos;

use super::orders::{Orders, Place};
use super::task::{Kind, Task};

/// Times of one chunk's passes, indexed by `stage * chunks + chunk`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Durations {
    /// Forward.
    pub forward: Nanos,
    /// Backward: both gradients, or that of the inputs where weights are apart.
    pub backward: Nanos,
    /// Gradient of the weights, where it is apart.
    pub weights: Nanos,
    /// Activations to the next chunk's stage.
    pub send_forward: Nanos,
    /// Gradients to the chunk before.
    pub send_backward: Nanos,
    /// What must be there before the first forward pass can run through.
    pub gate: Gate,
    /// What the last backward pass hands to the synchronisation.
    pub sync: Sync,
}

/// Parameters on their way while the first forward pass begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gate {
    /// The first forward pass ends no earlier than this after the step's start: the latest over
    /// layers of arrival plus the work from that layer on.
    pub earliest_end: Nanos,
}

/// Gradients of a chunk: buckets become ready as the last backward pass goes on and take turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sync {
    /// All buckets one after the other.
    pub total: Nanos,
    /// From the last backward pass's start to the end of the last bucket, if the queue is empty:
    /// the latest over buckets of readiness plus this bucket and those after it.
    pub from_start: Nanos,
}

/// What became of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PipelineTimes {
    /// When each stage began.
    pub started: Vec<Nanos>,
    /// When each stage has computed everything.
    pub computed: Vec<Nanos>,
    /// When each stage has its gradients synchronised as well.
    pub synchronised: Vec<Nanos>,
    /// Time in passes.
    pub busy: Vec<Nanos>,
    /// Time in sending, where senders wait for it.
    pub sending: Vec<Nanos>,
    /// Waiting of first forward passes for parameters.
    pub gated: Vec<Nanos>,
}

impl PipelineTimes {
    /// When the last stage is done.
    pub fn end(&self) -> Nanos {
        self.synchronised.iter().copied().max().unwrap_or(Nanos::ZERO)
    }

    /// From one step to the next where no stage waits for the others in between (zero bubble
    /// with updates checked afterwards): the longest that any stage is at it.
    pub fn span(&self) -> Nanos {
        let spans = self.started.iter().zip(&self.synchronised).map(|(start, end)| *end - *start);
        spans.max().unwrap_or(Nanos::ZERO)
    }
}

const NOT_YET: i64 = i64::MIN;

/// Plays a step: every stage takes its tasks in order, each as soon as what it needs has arrived.
///
/// With `blocking` a stage waits until what it sends has arrived. `None` if the orders cannot be
/// followed because stages wait for each other.
pub fn evaluate(orders: &Orders, durations: &[Durations], blocking: bool) -> Option<PipelineTimes> {
    let stages = orders.stages.len();
    let chunks = orders.chunks as usize;
    let micro_batches = orders.micro_batches as usize;
    debug_assert_eq!(durations.len(), stages * chunks);
    let mut play = Play {
        orders,
        durations,
        blocking,
        forward: vec![NOT_YET; stages * chunks * micro_batches],
        backward: vec![NOT_YET; stages * chunks * micro_batches],
        next: vec![0; stages],
        free: vec![0; stages],
        queue: vec![0; stages],
        links: vec![[0; 2]; stages],
        times: PipelineTimes {
            started: vec![Nanos::ZERO; stages],
            computed: vec![Nanos::ZERO; stages],
            synchronised: vec![Nanos::ZERO; stages],
            busy: vec![Nanos::ZERO; stages],
            sending: vec![Nanos::ZERO; stages],
            gated: vec![Nanos::ZERO; stages],
        },
        backward_left: vec![0; stages * chunks],
        forward_seen: vec![false; stages * chunks],
    };
    play.count();
    let mut ready: Vec<usize> = (0..stages).rev().collect();
    let mut waits = vec![false; stages];
    while let Some(stage) = ready.pop() {
        waits[stage] = false;
        while play.step(stage) {}
        for other in [stage.wrapping_sub(1), stage + 1, 0, stages - 1] {
            if other < stages && other != stage && !waits[other] && play.can_go_on(other) {
                waits[other] = true;
                ready.push(other);
            }
        }
    }
    play.finish()
}

struct Play<'a> {
    orders: &'a Orders,
    durations: &'a [Durations],
    blocking: bool,
    /// When a chunk's results are there for the next, by (stage, chunk, micro-batch).
    forward: Vec<i64>,
    backward: Vec<i64>,
    next: Vec<usize>,
    free: Vec<i64>,
    /// When each stage's synchronisation queue is empty.
    queue: Vec<i64>,
    /// When each stage's links to the next and the one before are free.
    links: Vec<[i64; 2]>,
    times: PipelineTimes,
    backward_left: Vec<u32>,
    forward_seen: Vec<bool>,
}

impl Play<'_> {
    fn count(&mut self) {
        let chunks = self.orders.chunks as usize;
        for (stage, tasks) in self.orders.stages.iter().enumerate() {
            for task in tasks {
                // A chunk's gradients are complete after the last pass that adds to them.
                if task.kind != Kind::Forward {
                    self.backward_left[stage * chunks + task.chunk as usize] += 1;
                }
            }
        }
    }

    fn index(&self, place: Place, micro_batch: u32) -> usize {
        let slot = place.stage as usize * self.orders.chunks as usize + place.chunk as usize;
        slot * self.orders.micro_batches as usize + micro_batch as usize
    }

    /// When what `task` needs is there; [`NOT_YET`] if it is not.
    fn arrival(&self, stage: usize, task: Task) -> i64 {
        let place = Place { stage: stage as u32, chunk: task.chunk };
        match task.kind {
            Kind::Forward => match self.orders.before(place) {
                Some(before) => self.forward[self.index(before, task.micro_batch)],
                None => 0,
            },
            Kind::Backward => match self.orders.after(place) {
                Some(after) => self.backward[self.index(after, task.micro_batch)],
                // Its own forward pass came before it in the list.
                None => 0,
            },
            Kind::Weights => 0,
        }
    }

    fn can_go_on(&self, stage: usize) -> bool {
        let task = self.orders.stages[stage].get(self.next[stage]);
        task.is_some_and(|&task| self.arrival(stage, task) != NOT_YET)
    }

    /// Runs the stage's next task if it can.
    fn step(&mut self, stage: usize) -> bool {
        let Some(&task) = self.orders.stages[stage].get(self.next[stage]) else {
            return false;
        };
        let arrival = self.arrival(stage, task);
        if arrival == NOT_YET {
            return false;
        }
        if self.next[stage] == 0 {
            self.times.started[stage] = Nanos::from_nanos(arrival);
        }
        self.next[stage] += 1;
        let place = Place { stage: stage as u32, chunk: task.chunk };
        let slot = stage * self.orders.chunks as usize + task.chunk as usize;
        let durations = &self.durations[slot];
        let start = self.free[stage].max(arrival);
        let length = match task.kind {
            Kind::Forward => durations.forward,
            Kind::Backward => durations.backward,
            Kind::Weights => durations.weights,
        };
        let mut end = start + length.nanos();
        self.times.busy[stage] += length;
        match task.kind {
            Kind::Forward => {
                if !std::mem::replace(&mut self.forward_seen[slot], true) {
                    let gated = durations.gate.earliest_end.nanos() - end;
                    self.times.gated[stage] += Nanos::from_nanos(gated).clamp_positive();
                    end += gated.max(0);
                }
                let there = self.orders.after(place);
                end = self.send(stage, place, there, task, end, durations.send_forward);
            }
            Kind::Backward => {
                let there = self.orders.before(place);
                end = self.send(stage, place, there, task, end, durations.send_backward);
            }
            Kind::Weights => {}
        }
        self.free[stage] = end;
        if task.kind != Kind::Forward {
            self.backward_left[slot] -= 1;
            if self.backward_left[slot] == 0 {
                let sync = durations.sync;
                let queued = self.queue[stage] + sync.total.nanos();
                let fresh = start + sync.from_start.nanos();
                if sync.total > Nanos::ZERO {
                    self.queue[stage] = queued.max(fresh);
                }
            }
        }
        true
    }

    /// Hands a result on; returns when the stage is free.
    fn send(
        &mut self,
        stage: usize,
        place: Place,
        there: Option<Place>,
        task: Task,
        end: i64,
        transfer: Nanos,
    ) -> i64 {
        let away = there.is_some_and(|there| there.stage as usize != stage);
        let link = usize::from(task.kind != Kind::Forward);
        let arrives = if away {
            // One transfer at a time in each direction.
            let link = &mut self.links[stage][link];
            *link = end.max(*link) + transfer.nanos();
            *link
        } else {
            end
        };
        let index = self.index(place, task.micro_batch);
        let results =
            if task.kind == Kind::Forward { &mut self.forward } else { &mut self.backward };
        results[index] = arrives;
        if away && self.blocking {
            self.times.sending[stage] += transfer;
            arrives
        } else {
            end
        }
    }

    fn finish(mut self) -> Option<PipelineTimes> {
        for (stage, tasks) in self.orders.stages.iter().enumerate() {
            if self.next[stage] < tasks.len() {
                return None;
            }
            self.times.computed[stage] = Nanos::from_nanos(self.free[stage]);
            let done = self.free[stage].max(self.queue[stage]);
            self.times.synchronised[stage] = Nanos::from_nanos(done);
        }
        Some(self.times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Schedule;
    use crate::pipeline::orders;

    fn ms(millis: i64) -> Nanos {
        Nanos::from_millis(millis)
    }

    fn end(schedule: Schedule, depth: u32, chunks: u32, m: u32, each: Durations) -> Nanos {
        let orders = orders(schedule, depth, chunks, m).unwrap();
        let durations = vec![each; (depth * chunks) as usize];
        evaluate(&orders, &durations, false).expect("no deadlock").end()
    }

    fn passes(forward: i64, backward: i64, weights: i64) -> Durations {
        Durations {
            forward: ms(forward),
            backward: ms(backward),
            weights: ms(weights),
            ..Durations::default()
        }
    }

    #[test]
    fn closed_forms_of_equal_stages() {
        for (depth, m) in [(1_u32, 1_u32), (2, 8), (4, 8), (4, 16), (8, 32), (16, 64)] {
            let expected = ms(i64::from(m + depth - 1) * 30);
            assert_eq!(end(Schedule::OneFOneB, depth, 1, m, passes(10, 20, 0)), expected);
            assert_eq!(end(Schedule::GPipe, depth, 1, m, passes(10, 20, 0)), expected);
            if depth == 1 {
                continue;
            }
            for chunks in [2_u32, 4] {
                // (p - 1) / (v m + p - 1) of the time is bubble.
                let passes = passes(10, 20, 0);
                let expected = ms(i64::from(chunks * m + depth - 1) * 30);
                assert_eq!(end(Schedule::OneFOneB, depth, chunks, m, passes), expected);
            }
        }
    }

    #[test]
    fn zero_bubble_leaves_the_bubble_its_authors_state() {
        for (depth, m) in [(2_u32, 8_u32), (4, 16), (8, 32)] {
            let work = ms(i64::from(m) * 30);
            let edge = ms(10 * i64::from(depth - 1));
            // (p - 1)(F + B - W) with the memory of 1F1B.
            let h1 = end(Schedule::ZbH1, depth, 1, m, passes(10, 10, 10));
            assert_eq!(h1 - work, edge);
            let uneven = end(Schedule::ZbH1, depth, 1, m, passes(10, 12, 8));
            assert_eq!(uneven - work, ms(14 * i64::from(depth - 1)));
            // None with twice that memory, or in a V, between a stage's first and last pass.
            let h2 = orders(Schedule::ZbH2, depth, 1, m).unwrap();
            let each = vec![passes(10, 10, 10); depth as usize];
            assert_eq!(evaluate(&h2, &each, false).unwrap().span(), work);
            let v = orders(Schedule::ZbV, depth, 2, m).unwrap();
            let each = vec![passes(5, 5, 5); 2 * depth as usize];
            assert_eq!(evaluate(&v, &each, false).unwrap().span(), work);
        }
    }

    #[test]
    fn every_schedule_runs_each_task_once() {
        for schedule in Schedule::ALL {
            for (depth, m) in [(2_u32, 8_u32), (4, 8), (4, 32), (6, 12)] {
                let chunks = match schedule {
                    Schedule::ZbV | Schedule::DualPipe => 2,
                    _ => 1,
                };
                let orders = orders(schedule, depth, chunks, m).unwrap();
                for stage in &orders.stages {
                    let mut seen = std::collections::BTreeSet::new();
                    assert!(stage.iter().all(|task| seen.insert((
                        task.kind,
                        task.micro_batch,
                        task.chunk
                    ))));
                    let passes = stage.iter().filter(|task| task.kind == Kind::Forward).count();
                    let whole = if schedule == Schedule::DualPipe { 1 } else { chunks };
                    assert_eq!(passes, (m * whole) as usize, "{schedule:?}");
                }
                let durations = vec![passes(10, 10, 10); (depth * chunks) as usize];
                assert!(evaluate(&orders, &durations, false).is_some(), "{schedule:?} {depth} {m}");
            }
        }
    }

    #[test]
    fn blocking_sends_hold_the_sender() {
        let each = Durations { send_forward: ms(1), send_backward: ms(1), ..passes(10, 20, 0) };
        let orders = orders(Schedule::OneFOneB, 2, 1, 4).unwrap();
        let free = evaluate(&orders, &[each; 2], false).unwrap();
        let held = evaluate(&orders, &[each; 2], true).unwrap();
        assert!(held.end() > free.end());
        assert_eq!(held.sending, [ms(4), ms(4)]);
    }

    #[test]
    fn gates_and_synchronisation_add_what_they_cannot_hide() {
        let gate = Gate { earliest_end: ms(25) };
        let sync = Sync { total: ms(8), from_start: ms(23) };
        let each = Durations { gate, sync, ..passes(10, 20, 0) };
        // 25 until the first forward pass ends, one backward pass of 20, 3 of 8 ms exposed.
        let orders = orders(Schedule::OneFOneB, 1, 1, 1).unwrap();
        let times = evaluate(&orders, &[each], false).unwrap();
        assert_eq!(times.computed, [ms(45)]);
        assert_eq!(times.gated, [ms(15)]);
        assert_eq!(times.end(), ms(48));
    }
}
