//! Varuna's order, found by letting every stage take the best task it may.
//!
//! Backward passes, each with its forward pass formed again, go first, since other stages wait for
//! them; forward passes fill what is left. Time goes in units of a forward pass.

use super::task::{Kind, Task};

const FORWARD: u64 = 1;
/// Twice a forward pass, and the forward pass again.
const BACKWARD: u64 = 3;
const NEVER: u64 = u64::MAX;

pub(super) fn varuna(depth: u32, micro_batches: u32) -> Vec<Vec<Task>> {
    Listing::new(depth as usize, micro_batches as usize).run()
}

/// A stage's passes that wait to be taken, each kind in order.
#[derive(Clone)]
struct Stage {
    forward: usize,
    backward: usize,
    /// When each micro-batch may start.
    forward_ready: Vec<u64>,
    backward_ready: Vec<u64>,
    free: u64,
    tasks: Vec<Task>,
}

struct Listing {
    stages: Vec<Stage>,
}

impl Listing {
    fn new(depth: usize, micro_batches: usize) -> Self {
        let stage = Stage {
            forward: 0,
            backward: 0,
            forward_ready: vec![NEVER; micro_batches],
            backward_ready: vec![NEVER; micro_batches],
            free: 0,
            tasks: Vec::with_capacity(2 * micro_batches),
        };
        let mut stages = vec![stage; depth];
        if let Some(first) = stages.first_mut() {
            first.forward_ready.fill(0);
        }
        Self { stages }
    }

    fn run(mut self) -> Vec<Vec<Task>> {
        let mut now = 0;
        loop {
            let mut next = NEVER;
            for stage in 0..self.stages.len() {
                if self.stages[stage].free <= now
                    && let Some(kind) = self.stages[stage].choose(now)
                {
                    self.start(stage, kind, now);
                }
                next = next.min(self.stages[stage].next_event(now));
            }
            if next == NEVER {
                return self.stages.into_iter().map(|stage| stage.tasks).collect();
            }
            now = next;
        }
    }

    fn start(&mut self, at: usize, kind: Kind, now: u64) {
        let last = self.stages.len() - 1;
        let stage = &mut self.stages[at];
        if kind == Kind::Forward {
            let (micro_batch, end) = (stage.forward, now + FORWARD);
            stage.forward += 1;
            stage.free = end;
            stage.tasks.push(Task::forward(micro_batch as u32, 0));
            if at == last {
                stage.backward_ready[micro_batch] = end;
            } else {
                self.stages[at + 1].forward_ready[micro_batch] = end;
            }
        } else {
            // The last stage still has what its forward pass formed.
            let length = if at == last { BACKWARD - FORWARD } else { BACKWARD };
            let (micro_batch, end) = (stage.backward, now + length);
            stage.backward += 1;
            stage.free = end;
            stage.tasks.push(Task::backward(micro_batch as u32, 0));
            if at > 0 {
                self.stages[at - 1].backward_ready[micro_batch] = end;
            }
        }
    }
}

impl Stage {
    fn choose(&self, now: u64) -> Option<Kind> {
        let ready = |times: &[u64], next: usize| times.get(next).is_some_and(|&at| at <= now);
        if ready(&self.backward_ready, self.backward) {
            return Some(Kind::Backward);
        }
        ready(&self.forward_ready, self.forward).then_some(Kind::Forward)
    }

    /// When it is free again or something arrives.
    fn next_event(&self, now: u64) -> u64 {
        let forward = self.forward_ready.get(self.forward).copied();
        let backward = self.backward_ready.get(self.backward).copied();
        let arrivals = forward.into_iter().chain(backward).filter(|&at| at != NEVER);
        let earliest = arrivals.map(|at| at.max(self.free)).min().unwrap_or(NEVER);
        if earliest == NEVER { NEVER } else { earliest.max(now + 1) }
    }
}
