//! The fast path: first-ready-first-run queues and tasks that always run at full rate.
//!
//! Then the end of a task is known the moment it starts, so one heap of ready times is enough:
//! tasks are taken in order of ready time, and each starts when its queue is free. A collective
//! blocks its queue until its last member has been taken; tasks that come meanwhile are held.
//!
//! Why one pass in order of ready times is right: a task's ready time is never before that of any
//! task it waits for (a negative lag reaches back at most to the start of its source), so a queue
//! meets its tasks in the order in which they become ready.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::noise::Noise;
use crate::program::{NONE, Program};
use crate::state::{Columns, Gatherings};

pub(crate) struct Fast<'a> {
    program: &'a Program,
    nodes: usize,
    noise: Option<Noise>,
    columns: Columns,
    pending: Vec<u32>,
    heap: BinaryHeap<Reverse<(i64, u32)>>,
    /// When each queue becomes free.
    free: Vec<i64>,
    blocked: Vec<bool>,
    held: Vec<VecDeque<u32>>,
    unblocked: Vec<u32>,
    gatherings: Gatherings,
    /// The last task of each queue; kept only for noise.
    last: Vec<u32>,
    finished: u64,
}

/// Runs a program whose queues are free at the times in `free`.
pub(crate) fn run(
    program: &Program,
    iterations: usize,
    free: Vec<i64>,
    noise: Option<Noise>,
) -> (Columns, u64) {
    let nodes = program.node_count();
    let queues = program.queues.len();
    let mut fast = Fast {
        program,
        nodes,
        noise,
        columns: Columns::new(nodes * iterations),
        pending: program.pending(iterations),
        heap: BinaryHeap::new(),
        free,
        blocked: vec![false; queues],
        held: vec![VecDeque::new(); queues],
        unblocked: Vec::new(),
        gatherings: Gatherings::new(program, iterations),
        last: vec![NONE; queues],
        finished: 0,
    };
    for task in 0..fast.pending.len() {
        if fast.pending[task] == 0 {
            fast.heap.push(Reverse((0, task as u32)));
        }
    }
    while let Some(Reverse((_, task))) = fast.heap.pop() {
        fast.take(task);
    }
    (fast.columns, fast.finished)
}

impl Fast<'_> {
    fn take(&mut self, task: u32) {
        let queue = self.program.queue[task as usize % self.nodes] as usize;
        if self.blocked[queue] {
            self.held[queue].push_back(task);
            return;
        }
        self.start(task);
        while let Some(queue) = self.unblocked.pop() {
            let queue = queue as usize;
            while !self.blocked[queue] {
                let Some(task) = self.held[queue].pop_front() else { break };
                self.start(task);
            }
        }
    }

    fn start(&mut self, task: u32) {
        let index = task as usize;
        let slot = index % self.nodes;
        let queue = self.program.queue[slot] as usize;
        let start = self.columns.start[index].max(self.free[queue]);
        if let Some(noise) = &mut self.noise {
            noise.begin(index, self.columns.start[index], self.free[queue], self.last[queue]);
            self.last[queue] = task;
        }
        self.columns.start[index] = start;
        if self.program.meetings.of[slot] != NONE {
            self.arrive(index, slot, queue);
            return;
        }
        let work = self.work(index, slot);
        let end = start.saturating_add(work);
        self.free[queue] = end;
        self.finish(index, slot, end, work);
    }

    fn work(&self, index: usize, slot: usize) -> i64 {
        self.noise.as_ref().map_or(self.program.work[slot], |noise| noise.work(index))
    }

    fn arrive(&mut self, index: usize, slot: usize, queue: usize) {
        let meetings = &self.program.meetings;
        let meeting = meetings.of[slot] as usize;
        let nodes = self.nodes;
        let iteration = index / nodes;
        let members = meetings.members(meeting);
        let excess = self.noise.as_mut().map_or(0, |noise| noise.excess(index, slot, nodes));
        let arrival = self.columns.start[index].saturating_add(excess);
        self.blocked[queue] = true;
        let latest = self.gatherings.arrive(iteration, meeting, members.len(), arrival);
        let Some(latest) = latest else { return };
        let base = iteration * self.nodes;
        self.columns.waited(base, members, latest);
        let transfer = members.iter().map(|&m| self.work(base + m as usize, m as usize)).max();
        let transfer = transfer.unwrap_or(0);
        let end = latest.saturating_add(transfer);
        for &member in members {
            let (index, slot) = (base + member as usize, member as usize);
            let queue = self.program.queue[slot];
            self.free[queue as usize] = end;
            self.blocked[queue as usize] = false;
            self.unblocked.push(queue);
            self.finish(index, slot, end, transfer);
        }
    }

    fn finish(&mut self, index: usize, slot: usize, end: i64, work: i64) {
        self.finished += 1;
        self.columns.end[index] = end;
        let tasks = self.pending.len();
        for edge in self.program.out_of(slot) {
            let target = index - slot + edge.distance as usize * self.nodes + edge.dst as usize;
            if target >= tasks {
                continue;
            }
            let ready = end.saturating_add(edge.lag.max(-work));
            let before = self.columns.start[target];
            if ready >= before {
                self.columns.start[target] = ready;
                if let Some(noise) = &mut self.noise {
                    noise.follow(index, target, ready == before);
                }
            }
            self.pending[target] -= 1;
            if self.pending[target] == 0 {
                self.heap.push(Reverse((self.columns.start[target], target as u32)));
            }
        }
    }
}
