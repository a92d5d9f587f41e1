//! The ordered path: edges fix the order of every queue.
//!
//! Then nothing is left to decide while time passes. Units (a task, or all members of a meeting)
//! are laid out once so that each comes after all it waits for in its iteration, and a run is one
//! pass over them per iteration: the start is the latest of what it waits for, its queue included.
//! No heap is needed, and once the times of an iteration repeat those of the one before, shifted,
//! so do all later ones.

use crate::program::{NONE, OutEdge, Program};
use crate::state::Columns;

/// An edge as its target sees it.
#[derive(Clone, Copy, Debug)]
struct InEdge {
    lag: i64,
    src: u32,
    distance: u16,
}

/// How the units of an iteration follow each other.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    /// Slots, or the number of slots plus a meeting.
    units: Vec<u32>,
    in_first: Vec<u32>,
    incoming: Vec<InEdge>,
    /// The slot before on the same queue; of a queue's first, its last in the iteration before.
    before: Vec<(u32, u16)>,
    /// Whether iterations follow each other on every queue.
    wraps: bool,
    furthest: u16,
}

impl Order {
    /// The order of a program; `None` if edges leave that of some queue open.
    pub(crate) fn of(program: &Program) -> Option<Self> {
        let nodes = program.node_count();
        let (in_first, incoming) = incoming(program);
        let units = units(program)?;
        let mut order = Self {
            units,
            in_first,
            incoming,
            before: vec![(NONE, 0); nodes],
            wraps: true,
            furthest: program.distant.last().map_or(0, |&(distance, _)| distance),
        };
        order.chain(program)?;
        Some(order)
    }

    /// Whether runs of so many iterations have a fixed order.
    pub(crate) fn holds_for(&self, iterations: usize) -> bool {
        self.wraps || iterations <= 1
    }

    fn chain(&mut self, program: &Program) -> Option<()> {
        let mut first = vec![NONE; program.queues.len()];
        let mut last = first.clone();
        for &unit in &self.units {
            for &slot in program.meetings.of_unit(&unit) {
                let queue = program.queue[slot as usize] as usize;
                match last[queue] {
                    NONE => first[queue] = slot,
                    before if self.joins(before, slot, 0) => {
                        self.before[slot as usize] = (before, 0);
                    }
                    _ => return None,
                }
                last[queue] = slot;
            }
        }
        for (&first, &last) in first.iter().zip(&last).filter(|(first, _)| **first != NONE) {
            self.before[first as usize] = (last, 1);
            self.wraps &= self.joins(last, first, 1);
        }
        Some(())
    }

    fn joins(&self, src: u32, dst: u32, distance: u16) -> bool {
        self.reaching(dst as usize).iter().any(|edge| edge.src == src && edge.distance == distance)
    }

    /// How many iterations the furthest edge spans.
    pub(crate) fn furthest(&self) -> usize {
        usize::from(self.furthest)
    }

    /// Whether an edge from a slot leads to the next one on its queue, which starts no earlier than
    /// the slot ends, whatever the lag.
    pub(crate) fn follows(&self, src: usize, edge: OutEdge) -> bool {
        self.before[edge.dst as usize] == (src as u32, edge.distance)
    }

    /// All slots, those of each queue in order.
    pub(crate) fn slots<'a>(&'a self, program: &'a Program) -> impl Iterator<Item = u32> + 'a {
        self.units.iter().flat_map(|unit| program.meetings.of_unit(unit)).copied()
    }

    fn reaching(&self, slot: usize) -> &[InEdge] {
        &self.incoming[self.in_first[slot] as usize..self.in_first[slot + 1] as usize]
    }
}

/// Edges by target.
fn incoming(program: &Program) -> (Vec<u32>, Vec<InEdge>) {
    let nodes = program.node_count();
    let mut first = vec![0_u32; nodes + 1];
    for edge in &program.out {
        first[edge.dst as usize + 1] += 1;
    }
    for slot in 0..nodes {
        first[slot + 1] += first[slot];
    }
    let mut cursor = first.clone();
    let mut incoming = vec![InEdge { lag: 0, src: 0, distance: 0 }; program.out.len()];
    for src in 0..nodes {
        for edge in program.out_of(src) {
            let at = &mut cursor[edge.dst as usize];
            incoming[*at as usize] =
                InEdge { lag: edge.lag, src: src as u32, distance: edge.distance };
            *at += 1;
        }
    }
    (first, incoming)
}

/// Units so that each follows all it waits for within the iteration; `None` if they wait in a
/// circle.
fn units(program: &Program) -> Option<Vec<u32>> {
    let nodes = program.node_count();
    let meetings = &program.meetings;
    let unit_of = |slot: usize| match meetings.of[slot] {
        NONE => slot,
        meeting => nodes + meeting as usize,
    };
    let mut pending = vec![0_u32; nodes + meetings.len()];
    for edge in program.out.iter().filter(|edge| edge.distance == 0) {
        pending[unit_of(edge.dst as usize)] += 1;
    }
    let singles = (0..nodes).filter(|&slot| meetings.of[slot] == NONE);
    let all: Vec<u32> =
        singles.chain(nodes..nodes + meetings.len()).map(|unit| unit as u32).collect();
    let mut units = Vec::with_capacity(all.len());
    // The latest first, so that chains stay together: their times are in the cache then.
    let mut stack: Vec<u32> =
        all.iter().rev().copied().filter(|&unit| pending[unit as usize] == 0).collect();
    while let Some(unit) = stack.pop() {
        units.push(unit);
        for &slot in meetings.of_unit(&unit) {
            for edge in program.out_of(slot as usize).iter().filter(|edge| edge.distance == 0) {
                let target = unit_of(edge.dst as usize);
                pending[target] -= 1;
                if pending[target] == 0 {
                    stack.push(target as u32);
                }
            }
        }
    }
    (units.len() == all.len()).then_some(units)
}

/// Runs a program whose queues are free at the times in `free`. With `least`, only until iterations
/// repeat, but so many of them. Times go to the empty `columns`.
pub(crate) fn run(
    program: &Program,
    order: &Order,
    iterations: usize,
    free: &[i64],
    least: Option<usize>,
    mut columns: Columns,
) -> Columns {
    let nodes = program.node_count();
    columns.reserve(nodes * iterations);
    let mut settled = Settled::default();
    for iteration in 0..iterations {
        columns.resize((iteration + 1) * nodes);
        if settled.for_good(order) {
            if least.is_some_and(|least| iteration >= least) {
                columns.resize(iteration * nodes);
                break;
            }
            columns.repeat(iteration, nodes, settled.by);
            continue;
        }
        pass(program, order, (iteration, iterations), free, &mut columns);
        settled.look_at(iteration, iterations, nodes, &columns);
    }
    columns
}

/// The latest end of each iteration of the same run, which keeps only as many iterations as edges
/// reach back, in the empty `columns`: what fits a cache and needs no fresh memory.
pub(crate) fn latest_ends(
    program: &Program,
    order: &Order,
    iterations: usize,
    free: &[i64],
    columns: &mut Columns,
) -> Vec<i64> {
    let nodes = program.node_count();
    let kept = (usize::from(order.furthest) + 1).min(iterations.max(1));
    columns.resize(nodes * kept);
    let mut settled = Settled::default();
    let mut latest: Vec<i64> = Vec::with_capacity(iterations);
    for iteration in 0..iterations {
        if let Some(&before) = latest.last().filter(|_| settled.for_good(order)) {
            latest.push(before.saturating_add(settled.by));
            continue;
        }
        pass(program, order, (iteration, kept), free, columns);
        settled.look_at(iteration, kept, nodes, columns);
        let ends = &columns.end[iteration % kept * nodes..][..nodes];
        latest.push(ends.iter().copied().max().unwrap_or(0));
    }
    latest
}

/// How far apart the last iterations are, and how many in a row.
#[derive(Default)]
pub(crate) struct Settled {
    pub(crate) by: i64,
    times: u16,
    /// Iterations looked at.
    pub(crate) seen: usize,
}

impl Settled {
    /// Whether all later iterations are as far apart too: none looks further back.
    pub(crate) fn for_good(&self, order: &Order) -> bool {
        self.times >= order.furthest.max(1)
    }

    pub(crate) fn look_at(
        &mut self,
        iteration: usize,
        kept: usize,
        nodes: usize,
        columns: &Columns,
    ) {
        let place = |iteration: usize| iteration % kept * nodes;
        let before = iteration.checked_sub(1).filter(|_| kept > 1);
        let by = before.and_then(|before| columns.shift(place(before), place(iteration), nodes));
        (self.by, self.times) = match by {
            Some(by) if by == self.by => (by, self.times.saturating_add(1)),
            Some(by) => (by, 1),
            None => (0, 0),
        };
        self.seen = iteration + 1;
    }
}

/// One iteration; columns hold the last `kept` of them.
fn pass(
    program: &Program,
    order: &Order,
    (iteration, kept): (usize, usize),
    free: &[i64],
    columns: &mut Columns,
) {
    let nodes = program.node_count();
    let base = iteration % kept * nodes;
    let reach = usize::from(order.furthest.max(1)).min(iteration);
    let bases: Vec<usize> = (0..=reach).map(|back| (iteration - back) % kept * nodes).collect();
    for &unit in &order.units {
        let Some(meeting) = (unit as usize).checked_sub(nodes) else {
            let slot = unit as usize;
            let start = start(program, order, &bases, slot, free, columns);
            columns.start[base + slot] = start;
            columns.end[base + slot] = start.saturating_add(program.work[slot]);
            continue;
        };
        let members = program.meetings.members(meeting);
        let (mut latest, mut transfer) = (0, 0);
        for &member in members {
            let slot = member as usize;
            let start = start(program, order, &bases, slot, free, columns);
            columns.start[base + slot] = start;
            latest = latest.max(start);
            transfer = transfer.max(program.work[slot]);
        }
        for &member in members {
            let index = base + member as usize;
            columns.wait[index] = latest - columns.start[index];
            columns.end[index] = latest.saturating_add(transfer);
        }
    }
}

/// The latest of what a task waits for. `bases` are where the iterations begin in the columns, from
/// this one back.
fn start(
    program: &Program,
    order: &Order,
    bases: &[usize],
    slot: usize,
    free: &[i64],
    columns: &Columns,
) -> i64 {
    let (before, distance) = order.before[slot];
    let mut start = match bases.get(usize::from(distance)) {
        Some(base) => columns.end[base + before as usize],
        None => free[program.queue[slot] as usize],
    };
    for edge in order.reaching(slot) {
        let Some(base) = bases.get(usize::from(edge.distance)) else { continue };
        let source = base + edge.src as usize;
        let end = columns.end[source];
        let ready = if edge.lag < 0 {
            // It lets go early, but never before it started to make progress.
            let begun = columns.start[source] + columns.wait[source];
            end.saturating_add(edge.lag).max(begun)
        } else {
            end.saturating_add(edge.lag)
        };
        start = start.max(ready);
    }
    start
}
