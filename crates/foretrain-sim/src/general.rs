//! The general path: any discipline, shared resources and interference.
//!
//! One heap holds what will happen next. Within one nanosecond, ends come first, then tasks that
//! become ready, then the choice of queues that pick by priority, so that a choice sees all that
//! is ready by then. Rates are set once all of that is done, before time moves on.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::fluid::Fluid;
use crate::noise::Noise;
use crate::options::Discipline;
use crate::program::{NONE, OutEdge, Program};
use crate::sharers::Sharers;
use crate::state::{Activity, Columns, Gatherings};

/// What happens at a time; the order of the variants is the order within a nanosecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The task or collective led by this queue ends or lets an overlapping task go, unless its
    /// rate has changed since (the second number is then out of date).
    Progress(u32, u32),
    /// The collective led by this queue begins its transfer.
    Transfer(u32),
    /// A queue that was busy at first is free.
    Free(u32),
    /// A task becomes ready.
    Ready(u32),
    /// A queue picks one of its waiting tasks.
    Pick(u32),
}

struct Queue {
    discipline: Discipline,
    busy: bool,
    free_since: i64,
    last: u32,
    waiting: BinaryHeap<Reverse<(i64, i64, u32)>>,
}

struct General<'a> {
    program: &'a Program,
    nodes: usize,
    now: i64,
    noise: Option<Noise>,
    columns: Columns,
    pending: Vec<u32>,
    gatherings: Gatherings,
    events: BinaryHeap<Reverse<(i64, Event)>>,
    queues: Vec<Queue>,
    activities: Vec<Activity>,
    fluid: Fluid<'a>,
    arrivals: i64,
    finished: u64,
}

/// Runs a program whose queues are free at the times in `free`.
pub(crate) fn run(
    program: &Program,
    iterations: usize,
    free: &[i64],
    noise: Option<Noise>,
    disciplines: Vec<Discipline>,
    sharers: Sharers<'_>,
) -> (Columns, u64) {
    let nodes = program.node_count();
    let queue = |discipline| Queue {
        discipline,
        busy: false,
        free_since: 0,
        last: NONE,
        waiting: BinaryHeap::new(),
    };
    let mut general = General {
        program,
        nodes,
        now: 0,
        noise,
        columns: Columns::new(nodes * iterations),
        pending: program.pending(iterations),
        gatherings: Gatherings::new(program, iterations),
        events: BinaryHeap::new(),
        queues: disciplines.into_iter().map(queue).collect(),
        activities: vec![Activity::default(); free.len()],
        fluid: Fluid::new(program, sharers),
        arrivals: 0,
        finished: 0,
    };
    general.begin(free);
    general.drain();
    (general.columns, general.finished)
}

impl General<'_> {
    fn begin(&mut self, free: &[i64]) {
        for (queue, &until) in free.iter().enumerate().filter(|(_, until)| **until > 0) {
            self.queues[queue].busy = true;
            self.events.push(Reverse((until, Event::Free(queue as u32))));
        }
        for task in 0..self.pending.len() {
            if self.pending[task] == 0 {
                self.events.push(Reverse((0, Event::Ready(task as u32))));
            }
        }
    }

    fn drain(&mut self) {
        loop {
            let next = self.events.peek().map(|Reverse((time, _))| *time);
            if next.is_none_or(|time| time > self.now) && self.fluid.is_dirty() {
                self.settle();
                continue;
            }
            let Some(Reverse((time, event))) = self.events.pop() else { return };
            self.now = time;
            match event {
                Event::Progress(leader, epoch) => {
                    if self.fluid.epoch(leader) == epoch {
                        self.progress(leader);
                    }
                }
                Event::Transfer(leader) => self.transfer(leader),
                Event::Free(queue) => self.vacate(queue as usize),
                Event::Ready(task) => self.ready(task),
                Event::Pick(queue) => {
                    if !self.queues[queue as usize].busy {
                        self.pick(queue as usize);
                    }
                }
            }
        }
    }

    /// Gives every task whose surroundings have changed its new rate and its new end.
    fn settle(&mut self) {
        for index in 0..self.fluid.settle(self.now) {
            self.schedule(self.fluid.changed(index));
        }
    }

    /// Announces the next point of an activity: its end, or where it lets an overlapping task go.
    fn schedule(&mut self, leader: u32) {
        let time = self.activities[leader as usize].next_point(self.fluid.end(leader));
        let event = Event::Progress(leader, self.fluid.epoch(leader));
        self.events.push(Reverse((time.max(self.now), event)));
    }

    fn ready(&mut self, task: u32) {
        let slot = task as usize % self.nodes;
        let index = self.program.queue[slot] as usize;
        let queue = &mut self.queues[index];
        let key = match queue.discipline {
            Discipline::Fifo if !queue.busy => return self.start(task),
            Discipline::Fifo => (0, self.arrivals),
            Discipline::InOrder => (0, 0),
            Discipline::Priority => {
                (-i64::from(self.program.priority[slot]), self.columns.start[task as usize])
            }
        };
        self.arrivals += 1;
        queue.waiting.push(Reverse((key.0, key.1, task)));
        if !queue.busy {
            self.events.push(Reverse((self.now, Event::Pick(index as u32))));
        }
    }

    fn pick(&mut self, queue: usize) {
        if let Some(Reverse((_, _, task))) = self.queues[queue].waiting.pop() {
            self.start(task);
        }
    }

    fn vacate(&mut self, index: usize) {
        let queue = &mut self.queues[index];
        queue.busy = false;
        queue.free_since = self.now;
        match queue.discipline {
            Discipline::Fifo => self.pick(index),
            _ => self.events.push(Reverse((self.now, Event::Pick(index as u32)))),
        }
    }

    fn start(&mut self, task: u32) {
        let index = task as usize;
        let slot = index % self.nodes;
        let queue = &mut self.queues[self.program.queue[slot] as usize];
        queue.busy = true;
        if let Some(noise) = &mut self.noise {
            noise.begin(index, self.columns.start[index], queue.free_since, queue.last);
            queue.last = task;
        }
        self.columns.start[index] = self.now;
        if self.program.meetings.of[slot] != NONE {
            return self.arrive(index, slot);
        }
        let work = self.work(index, slot);
        self.launch(self.program.queue[slot], task, work, &[slot as u32]);
    }

    fn work(&self, index: usize, slot: usize) -> i64 {
        self.noise.as_ref().map_or(self.program.work[slot], |noise| noise.work(index))
    }

    fn launch(&mut self, leader: u32, task: u32, work: i64, members: &[u32]) {
        let base = task - task % self.nodes as u32;
        self.activities[leader as usize].begin(self.program, task, base, members);
        if self.fluid.launch(leader, members, work, self.now) {
            self.schedule(leader);
        }
    }

    fn arrive(&mut self, index: usize, slot: usize) {
        let program = self.program;
        let meeting = program.meetings.of[slot] as usize;
        let members = program.meetings.members(meeting);
        let iteration = index / self.nodes;
        let excess = self.noise.as_mut().map_or(0, |noise| noise.excess(index, slot, self.nodes));
        let arrival = self.now.saturating_add(excess);
        self.fluid.wait(slot);
        let latest = self.gatherings.arrive(iteration, meeting, members.len(), arrival);
        let Some(latest) = latest else { return };
        let base = iteration * self.nodes;
        self.columns.waited(base, members, latest);
        let leader = program.queue[members[0] as usize];
        self.activities[leader as usize].task = (base + members[0] as usize) as u32;
        if latest > self.now {
            self.events.push(Reverse((latest, Event::Transfer(leader))));
        } else {
            self.transfer(leader);
        }
    }

    fn transfer(&mut self, leader: u32) {
        let program = self.program;
        let task = self.activities[leader as usize].task;
        let slot = task as usize % self.nodes;
        let base = task as usize - slot;
        let members = program.meetings.members(program.meetings.of[slot] as usize);
        let works = members.iter().map(|&m| self.work(base + m as usize, m as usize));
        let work = works.max().unwrap_or(0);
        self.launch(leader, task, work, members);
    }

    /// The activity has reached its next point.
    fn progress(&mut self, leader: u32) {
        let end = self.fluid.end(leader);
        while let Some((edge, source)) = self.activities[leader as usize].let_go(end, self.now) {
            self.release(source as usize, self.program.out[edge as usize], self.now);
        }
        if end > self.now { self.schedule(leader) } else { self.finish(leader) }
    }

    fn finish(&mut self, leader: u32) {
        let program = self.program;
        let task = self.activities[leader as usize].task as usize;
        let base = task - task % self.nodes;
        let slot = (task - base) as u32;
        let members = program.meetings.together(&slot);
        self.fluid.finish(leader, members);
        for &member in members {
            let (index, slot) = (base + member as usize, member as usize);
            self.finished += 1;
            self.columns.end[index] = self.now;
            for &edge in program.out_of(slot).iter().filter(|edge| edge.lag >= 0) {
                self.release(index, edge, self.now.saturating_add(edge.lag));
            }
        }
        for &member in members {
            self.vacate(program.queue[member as usize] as usize);
        }
    }

    fn release(&mut self, source: usize, edge: OutEdge, ready: i64) {
        let base = source - source % self.nodes;
        let target = base + edge.distance as usize * self.nodes + edge.dst as usize;
        if target >= self.pending.len() {
            return;
        }
        let before = self.columns.start[target];
        if ready >= before {
            self.columns.start[target] = ready;
            if let Some(noise) = &mut self.noise {
                noise.follow(source, target, ready == before);
            }
        }
        self.pending[target] -= 1;
        if self.pending[target] == 0 {
            self.events.push(Reverse((self.columns.start[target], Event::Ready(target as u32))));
        }
    }
}
