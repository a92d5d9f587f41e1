//! When flows end that start at times of their own.
//!
//! Between two events all rates are constant. An event is a start or an end; then rates are set
//! anew for the flows that share links with what started or ended, directly or through others.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use foretrain_core::{Bandwidth, Nanos};

use crate::flows::{Flow, Flows};
use crate::max_min::{Demand, Fair, Solver};

/// What happens within this many nanoseconds happens at once. Times are whole nanoseconds, and
/// equal flows must not end apart because their rates were summed in another order.
const TOGETHER: f64 = 0.5;
/// The least useful precision: sums of floating-point numbers are no better.
const FINEST: f64 = 1e-9;

/// When flows end, in the order in which they were added.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Arrival of the last byte; [`Nanos::MAX`] if it never arrives, because a link is dead.
    pub ends: Vec<Nanos>,
    /// The link that held each flow back for the longest stretch; `None` if none did.
    pub limits: Vec<Option<u32>>,
    /// How often rates were set.
    pub settlings: usize,
}

/// Runs all flows over links of these capacities.
///
/// Rates are set once for all that ends within `precision`, a share of the time since the first
/// start: each flow then ends when its last rate says, but what it leaves free is given away up to
/// that much late. 0 is exact. Many flows of unequal rates end at as many times, and a coarser
/// precision saves most of the work.
///
/// # Panics
/// If a path names a link that does not exist.
pub fn simulate(capacities: &[Bandwidth], flows: &Flows, precision: f64) -> Outcome {
    let per_ns: Vec<f64> = capacities.iter().map(|capacity| capacity.get() / 1e9).collect();
    let mut run = Run::new(&per_ns, flows, precision.max(FINEST));
    run.drain();
    let of = |row: &u32| &run.states[*row as usize];
    Outcome {
        ends: flows.rows.iter().map(|row| of(row).arrival).collect(),
        limits: flows.rows.iter().map(|row| of(row).limit.0).collect(),
        settlings: run.settlings,
    }
}

#[derive(Clone, Copy)]
struct State {
    running: bool,
    /// Bytes left at `since`.
    left: f64,
    since: f64,
    epoch: u32,
    /// What limits it now, and since when.
    held: (Option<u32>, f64),
    /// What has limited it longest, and for how long.
    limit: (Option<u32>, f64),
    arrival: Nanos,
}

/// A time in a heap. Times are never negative, so their bits order as they do.
fn time_key(time: f64) -> u64 {
    time.max(0.0).to_bits()
}

struct Run<'a> {
    flows: &'a Flows,
    precision: f64,
    demands: Vec<Demand>,
    fair: Vec<Fair>,
    states: Vec<State>,
    solver: Solver<'a>,
    /// Rows by start, the next one last.
    waiting: Vec<u32>,
    /// First start; times count from it.
    origin: Nanos,
    ends: BinaryHeap<Reverse<(u64, u32, u32)>>,
    dirty: Vec<u32>,
    marked: Vec<bool>,
    seen: Vec<bool>,
    affected: Vec<u32>,
    settlings: usize,
}

impl<'a> Run<'a> {
    fn new(per_ns: &'a [f64], flows: &'a Flows, precision: f64) -> Self {
        let rows = flows.flows.len();
        let demand = |(flow, &count): (&Flow, &u32)| Demand {
            weight: flow.weight,
            cap: flow.cap.get() / 1e9,
            count: f64::from(count),
        };
        let state = |flow: &Flow| State {
            running: false,
            left: flow.size.max(0.0),
            since: 0.0,
            epoch: 0,
            held: (None, 0.0),
            limit: (None, 0.0),
            arrival: Nanos::MAX,
        };
        let mut waiting: Vec<u32> = (0..rows as u32).collect();
        waiting.sort_by_key(|&row| Reverse((flows.flows[row as usize].start, row)));
        Self {
            flows,
            precision,
            demands: flows.flows.iter().zip(&flows.counts).map(demand).collect(),
            fair: vec![Fair { rate: 0.0, limit: None }; rows],
            states: flows.flows.iter().map(state).collect(),
            solver: Solver::new(per_ns, &flows.paths),
            origin: waiting.last().map_or(Nanos::ZERO, |&row| flows.flows[row as usize].start),
            waiting,
            ends: BinaryHeap::new(),
            dirty: Vec::new(),
            marked: vec![false; per_ns.len()],
            seen: vec![false; rows],
            affected: Vec::new(),
            settlings: 0,
        }
    }

    fn drain(&mut self) {
        while let Some(mut now) = self.next() {
            // Ends are gathered up to the next start, and rates set at the last of them.
            let window = TOGETHER.max(now * self.precision);
            let until = (now + window).min(self.next_start().max(now + TOGETHER));
            while let Some(&Reverse((end, row, epoch))) = self.ends.peek() {
                let end = f64::from_bits(end);
                if end > until {
                    break;
                }
                self.ends.pop();
                if self.is_current(row, epoch) {
                    self.finish(row, end);
                    now = now.max(end);
                }
            }
            while self.next_start() <= now + TOGETHER
                && let Some(row) = self.waiting.pop()
            {
                self.begin(row, now);
            }
            self.settle(now);
        }
    }

    fn next_start(&self) -> f64 {
        let row = self.waiting.last();
        row.map_or(f64::INFINITY, |&row| self.flows.start(row, self.origin))
    }

    /// The time of the next start or end.
    fn next(&mut self) -> Option<f64> {
        while let Some(&Reverse((_, row, epoch))) = self.ends.peek() {
            if self.is_current(row, epoch) {
                break;
            }
            self.ends.pop();
        }
        let end = self.ends.peek().map(|Reverse((end, ..))| f64::from_bits(*end));
        let next = end.unwrap_or(f64::INFINITY).min(self.next_start());
        next.is_finite().then_some(next)
    }

    fn is_current(&self, row: u32, epoch: u32) -> bool {
        let state = &self.states[row as usize];
        state.running && state.epoch == epoch
    }

    fn begin(&mut self, row: u32, now: f64) {
        let state = &mut self.states[row as usize];
        state.running = true;
        (state.since, state.held) = (now, (None, now));
        if state.left <= 0.0 {
            return self.finish(row, now);
        }
        self.touch(row);
        // A path without links has nothing that could set its rate later.
        self.mark(row);
    }

    fn finish(&mut self, row: u32, end: f64) {
        self.touch(row);
        let latency = self.flows.flows[row as usize].latency;
        let state = &mut self.states[row as usize];
        state.running = false;
        state.hold(None, end);
        let transferred = Nanos::from_nanos_f64(end.min(i64::MAX as f64));
        state.arrival = self.origin.saturating_add(transferred).saturating_add(latency);
    }

    /// Marks the links of a row to be looked at again.
    fn touch(&mut self, row: u32) {
        for (link, _) in self.flows.paths.of(row as usize) {
            if !std::mem::replace(&mut self.marked[link], true) {
                self.dirty.push(link as u32);
            }
        }
    }

    /// Adds a row to those whose rate is to be set.
    fn mark(&mut self, row: u32) {
        if !std::mem::replace(&mut self.seen[row as usize], true) {
            self.affected.push(row);
        }
    }

    /// Sets the rates of all that is connected to the marked links.
    fn settle(&mut self, now: f64) {
        let mut at = 0;
        while let Some(&link) = self.dirty.get(at) {
            at += 1;
            let fresh = self.affected.len();
            for row in self.solver.users(link as usize) {
                if self.states[row].running && !std::mem::replace(&mut self.seen[row], true) {
                    self.affected.push(row as u32);
                }
            }
            for index in fresh..self.affected.len() {
                self.touch(self.affected[index]);
            }
        }
        for link in self.dirty.drain(..) {
            self.marked[link as usize] = false;
        }
        self.affected.sort_unstable();
        let affected = std::mem::take(&mut self.affected);
        for &row in &affected {
            let state = &mut self.states[row as usize];
            state.left = (state.left - (now - state.since) * self.fair[row as usize].rate).max(0.0);
            state.since = now;
        }
        self.solver.solve(&affected, &self.demands, &mut self.fair);
        self.settlings += 1;
        for &row in &affected {
            self.announce(row, now);
            self.seen[row as usize] = false;
        }
        self.affected = affected;
        self.affected.clear();
    }

    /// Announces when a row ends at its new rate.
    fn announce(&mut self, row: u32, now: f64) {
        let Fair { rate, limit } = self.fair[row as usize];
        let state = &mut self.states[row as usize];
        state.hold(limit, now);
        state.epoch = state.epoch.wrapping_add(1);
        let end = now + state.left / rate;
        if end.is_finite() {
            self.ends.push(Reverse((time_key(end), row, state.epoch)));
        }
    }
}

impl State {
    /// Another link may limit it from now on.
    fn hold(&mut self, link: Option<u32>, now: f64) {
        if self.held.0 == link && self.running {
            return;
        }
        let stretch = now - self.held.1;
        if self.held.0.is_some() && stretch > self.limit.1 {
            self.limit = (self.held.0, stretch);
        }
        self.held = (link, now);
    }
}
