//! The contended path: edges fix the order of every queue, but tasks slow each other down.
//!
//! What shares nothing, such as host threads, needs no clock: its times follow as soon as those of
//! all it waits for are known, however far ahead of the rest. Only tasks on shared devices and
//! resources are played in order of time. An iteration is opened when the first shared queue is
//! through with the one before: none of its shared tasks can start earlier. Once the times of an
//! iteration repeat those of the one before, shifted, so will all later ones.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::earliest::Earliest;
use crate::fluid::Fluid;
use crate::ordered::{Order, Settled};
use crate::program::{NONE, OutEdge, Program};
use crate::sharers::Sharers;
use crate::state::{Activity, Columns, Gatherings};

/// What happens at a time once activities that reach a point then have been dealt with; the order
/// of the variants is the order within a nanosecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The collective led by this queue begins its transfer.
    Transfer(u32),
    /// A task starts.
    Start(u32),
}

struct Contended<'a> {
    program: &'a Program,
    order: &'a Order,
    nodes: usize,
    iterations: usize,
    roles: Roles,
    now: i64,
    columns: Columns,
    pending: Vec<u32>,
    gatherings: Gatherings,
    events: BinaryHeap<Reverse<(i64, Event)>>,
    /// When the activity led by each queue ends or lets an overlapping task go.
    points: Earliest,
    activities: Vec<Activity>,
    fluid: Fluid<'a>,
    /// Tasks that share nothing and whose start is known.
    free: Vec<u32>,
    /// Iterations whose tasks may start.
    opened: usize,
    /// Tasks that ended, by iteration.
    ended: Vec<usize>,
    settled: Settled,
}

/// What a slot shares with others.
struct Roles {
    /// Whether it shares a device or a resource.
    shares: Vec<bool>,
    /// Whether it is the last of its queue that does.
    closes: Vec<bool>,
}

impl Roles {
    fn new(program: &Program, order: &Order, sharers: &Sharers<'_>) -> Self {
        let shares: Vec<bool> =
            (0..program.node_count()).map(|slot| sharers.concerns(program, slot)).collect();
        let mut last = vec![NONE; program.queues.len()];
        for slot in order.slots(program).filter(|&slot| shares[slot as usize]) {
            last[program.queue[slot as usize] as usize] = slot;
        }
        let mut closes = vec![false; shares.len()];
        for slot in last.into_iter().filter(|&slot| slot != NONE) {
            closes[slot as usize] = true;
        }
        Self { shares, closes }
    }
}

/// Runs a program whose queues are free at the times in `free`. With `least`, only until iterations
/// repeat, but so many of them. Times go to the empty `columns`.
pub(crate) fn run(
    program: &Program,
    order: &Order,
    iterations: usize,
    free: &[i64],
    sharers: Sharers<'_>,
    least: Option<usize>,
    mut columns: Columns,
) -> Columns {
    let nodes = program.node_count();
    columns.reserve(nodes * iterations);
    let mut contended = Contended {
        program,
        order,
        nodes,
        iterations,
        roles: Roles::new(program, order, &sharers),
        now: 0,
        columns,
        pending: Vec::with_capacity(nodes * iterations),
        gatherings: Gatherings::new(program, iterations),
        events: BinaryHeap::new(),
        points: Earliest::new(program.queues.len()),
        activities: vec![Activity::default(); program.queues.len()],
        fluid: Fluid::new(program, sharers),
        free: Vec::new(),
        opened: 0,
        ended: vec![0; iterations],
        settled: Settled::default(),
    };
    contended.make_room(0);
    for (slot, start) in contended.columns.start.iter_mut().take(nodes).enumerate() {
        *start = free[program.queue[slot] as usize];
    }
    contended.open(0);
    contended.drain(least);
    contended.columns
}

impl Contended<'_> {
    /// Lets the tasks of an iteration start.
    fn open(&mut self, iteration: usize) {
        if iteration < self.opened || iteration >= self.iterations {
            return;
        }
        self.make_room(iteration);
        self.opened = iteration + 1;
        let base = iteration * self.nodes;
        for task in base..base + self.nodes {
            if self.pending[task] == 0 {
                self.admit(task);
            }
        }
    }

    /// Makes room for an iteration and all that its edges reach.
    fn make_room(&mut self, iteration: usize) {
        let iterations = (iteration + 1 + self.order.furthest()).min(self.iterations);
        for iteration in self.pending.len() / self.nodes.max(1)..iterations {
            self.program.add_pending(iteration, &mut self.pending);
        }
        self.columns.resize(iterations * self.nodes);
    }

    fn drain(&mut self, least: Option<usize>) {
        loop {
            while let Some(task) = self.free.pop() {
                self.pass(task as usize);
            }
            let point = self.points.time();
            let event = self.events.peek().map(|Reverse((time, _))| *time);
            let next = point.into_iter().chain(event).min();
            if next.is_none_or(|next| next > self.now) && self.fluid.is_dirty() {
                for index in 0..self.fluid.settle(self.now) {
                    self.schedule(self.fluid.changed(index));
                }
                continue;
            }
            if least.is_some_and(|least| self.repeats(least)) {
                return;
            }
            if point.is_some() && point == next {
                if let Some((time, leader)) = self.points.take() {
                    self.now = time;
                    self.progress(leader);
                }
                continue;
            }
            let Some(Reverse((time, event))) = self.events.pop() else { return };
            self.now = time;
            match event {
                Event::Transfer(leader) => self.transfer(leader),
                Event::Start(task) => self.start(task as usize),
            }
        }
    }

    /// Whether the run may end: iterations repeat, and there are `least` of them.
    fn repeats(&mut self, least: usize) -> bool {
        let next = self.settled.seen;
        if self.ended.get(next).is_none_or(|ended| *ended < self.nodes) {
            return false;
        }
        self.settled.look_at(next, self.iterations, self.nodes, &self.columns);
        let repeats = next + 1 >= least && self.settled.for_good(self.order);
        if repeats {
            self.columns.resize((next + 1) * self.nodes);
        }
        repeats
    }

    /// The start of a task is known.
    fn admit(&mut self, task: usize) {
        let start = self.columns.start[task];
        if !self.roles.shares[task % self.nodes] {
            self.free.push(task as u32);
        } else if start > self.now {
            self.events.push(Reverse((start, Event::Start(task as u32))));
        } else {
            self.start(task);
        }
    }

    /// A task that shares nothing runs.
    fn pass(&mut self, task: usize) {
        let slot = task % self.nodes;
        let start = self.columns.start[task];
        if self.program.meetings.of[slot] != NONE {
            return self.arrive(task, start);
        }
        self.end(task, start, start.saturating_add(self.program.work[slot]));
    }

    /// A task that shares something starts.
    fn start(&mut self, task: usize) {
        let slot = task % self.nodes;
        self.columns.start[task] = self.now;
        if self.program.meetings.of[slot] != NONE {
            self.fluid.wait(slot);
            return self.arrive(task, self.now);
        }
        let leader = self.program.queue[slot];
        self.launch(leader, task, self.program.work[slot], &[slot as u32]);
    }

    fn arrive(&mut self, task: usize, at: i64) {
        let program = self.program;
        let (slot, iteration) = (task % self.nodes, task / self.nodes);
        let meeting = program.meetings.of[slot] as usize;
        let members = program.meetings.members(meeting);
        let latest = self.gatherings.arrive(iteration, meeting, members.len(), at);
        let Some(latest) = latest else { return };
        let base = iteration * self.nodes;
        self.columns.waited(base, members, latest);
        if !members.iter().any(|&member| self.roles.shares[member as usize]) {
            let end = latest.saturating_add(self.transfer_work(members));
            for &member in members {
                self.end(base + member as usize, latest, end);
            }
            return;
        }
        let leader = program.queue[members[0] as usize];
        self.activities[leader as usize].task = (base + members[0] as usize) as u32;
        if latest > self.now {
            self.events.push(Reverse((latest, Event::Transfer(leader))));
        } else {
            self.transfer(leader);
        }
    }

    fn transfer_work(&self, members: &[u32]) -> i64 {
        members.iter().map(|&member| self.program.work[member as usize]).max().unwrap_or(0)
    }

    fn transfer(&mut self, leader: u32) {
        let task = self.activities[leader as usize].task as usize;
        let meeting = self.program.meetings.of[task % self.nodes];
        let members = self.program.meetings.members(meeting as usize);
        self.launch(leader, task, self.transfer_work(members), members);
    }

    fn launch(&mut self, leader: u32, task: usize, work: i64, members: &[u32]) {
        let base = (task - task % self.nodes) as u32;
        let activity = &mut self.activities[leader as usize];
        activity.begin(self.program, task as u32, base, members);
        if self.fluid.launch(leader, members, work, self.now) {
            self.schedule(leader);
        }
    }

    /// Announces the next point of an activity.
    fn schedule(&mut self, leader: u32) {
        let time = self.activities[leader as usize].next_point(self.fluid.end(leader));
        self.points.set(leader, time.max(self.now));
    }

    /// The activity has reached its next point.
    fn progress(&mut self, leader: u32) {
        let end = self.fluid.end(leader);
        while let Some((edge, source)) = self.activities[leader as usize].let_go(end, self.now) {
            let edge = self.program.out[edge as usize];
            if !self.order.follows(source as usize % self.nodes, edge) {
                self.release(source as usize, edge, self.now);
            }
        }
        if end > self.now {
            return self.schedule(leader);
        }
        let program = self.program;
        let task = self.activities[leader as usize].task as usize;
        let base = task - task % self.nodes;
        let slot = (task - base) as u32;
        let members = program.meetings.together(&slot);
        self.fluid.finish(leader, members);
        for &member in members {
            let (task, slot) = (base + member as usize, member as usize);
            self.note_end(task, self.now);
            for &edge in program.out_of(slot) {
                if edge.lag >= 0 || self.order.follows(slot, edge) {
                    self.release(task, edge, self.now.saturating_add(edge.lag.max(0)));
                }
            }
            if self.roles.closes[slot] {
                self.open(task / self.nodes + 1);
            }
        }
    }

    fn note_end(&mut self, task: usize, end: i64) {
        self.columns.end[task] = end;
        self.ended[task / self.nodes] += 1;
    }

    /// A task that shared nothing ends, having made progress since `begun`.
    fn end(&mut self, task: usize, begun: i64, end: i64) {
        let slot = task % self.nodes;
        self.note_end(task, end);
        for &edge in self.program.out_of(slot) {
            let ready = match edge.lag {
                lag if lag >= 0 => end.saturating_add(lag),
                _ if self.order.follows(slot, edge) => end,
                lag => end.saturating_add(lag).max(begun),
            };
            self.release(task, edge, ready);
        }
    }

    fn release(&mut self, source: usize, edge: OutEdge, ready: i64) {
        let iteration = source / self.nodes + edge.distance as usize;
        if iteration >= self.iterations {
            return;
        }
        let target = iteration * self.nodes + edge.dst as usize;
        self.columns.start[target] = self.columns.start[target].max(ready);
        self.pending[target] -= 1;
        if self.pending[target] == 0 && iteration < self.opened {
            self.admit(target);
        }
    }
}
