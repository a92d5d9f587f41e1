//! Max-min fair rates by progressive filling.
//!
//! All rates rise together, each in proportion to its weight, until a flow has all it may use or a
//! link is full; those flows stay there and the others rise on. A link fills at the *level*
//! `(capacity - used by settled flows) / (sum of weight * share of the others)`. Settling a flow
//! never lowers the level at which another link fills, so a heap of levels may be out of date: the
//! link on top is looked at again, and goes back if its level has risen.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::paths::Paths;

/// Levels that differ by less are one: sums in another order must not split equal flows.
const EQUAL: f64 = 1e-12;

/// How much a flow wants, and how fast it rises beside others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand {
    /// Speed at which its rate rises; above zero.
    pub weight: f64,
    /// The most it can use, whatever the links have; may be infinite.
    pub cap: f64,
    /// Equal flows that this row stands for, at least 1.
    pub count: f64,
}

impl Default for Demand {
    /// One flow of weight 1 that takes all it gets.
    fn default() -> Self {
        Self { weight: 1.0, cap: f64::INFINITY, count: 1.0 }
    }
}

/// What a flow gets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fair {
    /// Its rate; infinite if neither a link nor a cap holds it.
    pub rate: f64,
    /// The full link that holds it back, `None` if it has all it can use.
    pub limit: Option<u32>,
}

/// The fair rate of every row of `paths` over links of these capacities.
///
/// # Panics
/// If `demands` and `paths` differ in length or a path names a link that does not exist.
pub fn max_min(capacities: &[f64], paths: &Paths, demands: &[Demand]) -> Vec<Fair> {
    assert_eq!(paths.len(), demands.len(), "one demand per path");
    let mut fair = vec![Fair { rate: 0.0, limit: None }; demands.len()];
    let all: Vec<u32> = (0..demands.len() as u32).collect();
    Solver::new(capacities, paths).solve(&all, demands, &mut fair);
    fair
}

/// A level in a heap.
#[derive(Clone, Copy, PartialEq)]
struct Level(f64);

impl Eq for Level {}
impl PartialOrd for Level {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Level {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

#[derive(Clone, Copy, Default)]
struct Link {
    /// Capacity that no settled flow uses.
    spare: f64,
    /// Use per level of the flows that still rise.
    slope: f64,
    /// `slope` when it was last summed up anew.
    summed: f64,
    /// Flows that still rise.
    open: u32,
}

/// Sets rates again and again over the same links and paths, for any part of the flows.
pub struct Solver<'a> {
    capacities: &'a [f64],
    paths: &'a Paths,
    users: Paths,
    links: Vec<Link>,
    touched: Vec<u32>,
    rising: Vec<bool>,
    heap: BinaryHeap<Reverse<(Level, u32)>>,
}

impl<'a> Solver<'a> {
    /// # Panics
    /// If a path names a link that does not exist.
    pub fn new(capacities: &'a [f64], paths: &'a Paths) -> Self {
        Self {
            capacities,
            paths,
            users: paths.transposed(capacities.len()),
            links: vec![Link::default(); capacities.len()],
            touched: Vec::new(),
            rising: vec![false; paths.len()],
            heap: BinaryHeap::new(),
        }
    }

    /// The rows that use a link.
    pub(crate) fn users(&self, link: usize) -> impl Iterator<Item = usize> + '_ {
        self.users.of(link).map(|(row, _)| row)
    }

    /// Writes the fair rates of the rows in `active` (each at most once) into `fair`; the other
    /// rows are taken to be absent, and their entries are left alone.
    ///
    /// # Panics
    /// If `active` names a row that does not exist.
    pub fn solve(&mut self, active: &[u32], demands: &[Demand], fair: &mut [Fair]) {
        self.open(active, demands);
        let mut capped: Vec<u32> =
            active.iter().copied().filter(|&row| demands[row as usize].cap.is_finite()).collect();
        let ceiling = |row: u32| demands[row as usize].cap / demands[row as usize].weight;
        capped.sort_unstable_by(|&a, &b| ceiling(a).total_cmp(&ceiling(b)).then(a.cmp(&b)));
        let mut capped = capped.into_iter().peekable();
        while let Some(Reverse((Level(stored), link))) = self.heap.pop() {
            // A flow that tops out before or as the link fills leaves it to the others.
            while let Some(row) = capped.next_if(|&row| ceiling(row) <= stored) {
                if self.rising[row as usize] {
                    self.settle(
                        row,
                        demands,
                        Fair { rate: demands[row as usize].cap, limit: None },
                        fair,
                    );
                }
            }
            let level = self.level(link, demands);
            if level > stored * (1.0 + EQUAL) {
                if level.is_finite() {
                    self.heap.push(Reverse((Level(level), link)));
                }
                continue;
            }
            self.fill(link, stored, demands, fair);
        }
        for &row in active {
            if self.rising[row as usize] {
                let rate = demands[row as usize].cap;
                self.settle(row, demands, Fair { rate, limit: None }, fair);
            }
        }
        for &link in &self.touched {
            self.links[link as usize] = Link::default();
        }
        self.touched.clear();
    }

    /// Lets all flows rise from zero.
    fn open(&mut self, active: &[u32], demands: &[Demand]) {
        for &row in active {
            let Demand { weight, count, .. } = demands[row as usize];
            self.rising[row as usize] = true;
            for (link, share) in self.paths.of(row as usize) {
                if self.links[link].open == 0 {
                    self.touched.push(link as u32);
                    self.links[link].spare = self.capacities[link].max(0.0);
                }
                self.links[link].open += 1;
                self.links[link].slope += weight * count * share;
            }
        }
        self.heap.clear();
        for &link in &self.touched {
            let state = &mut self.links[link as usize];
            state.summed = state.slope;
            self.heap.push(Reverse((Level(state.spare / state.slope), link)));
        }
    }

    /// Where a link fills as things stand; infinite if nothing on it rises.
    fn level(&mut self, link: u32, demands: &[Demand]) -> f64 {
        let state = self.links[link as usize];
        if state.open == 0 {
            return f64::INFINITY;
        }
        if state.slope < 0.5 * state.summed {
            // Differences of large sums lose digits, so each halving is paid with a new sum.
            let rising = self.users.of(link as usize).filter(|&(row, _)| self.rising[row]);
            let slope =
                rising.map(|(row, share)| demands[row].weight * demands[row].count * share).sum();
            let state = &mut self.links[link as usize];
            (state.slope, state.summed) = (slope, slope);
        }
        let state = self.links[link as usize];
        state.spare.max(0.0) / state.slope
    }

    /// Stops all that still rises on a full link.
    fn fill(&mut self, link: u32, level: f64, demands: &[Demand], fair: &mut [Fair]) {
        let first = self.users.of(link as usize).filter(|&(row, _)| self.rising[row]);
        let stopped: Vec<u32> = first.map(|(row, _)| row as u32).collect();
        for row in stopped {
            // A path may name a link twice.
            if self.rising[row as usize] {
                let Demand { weight, cap, .. } = demands[row as usize];
                let rate = (level * weight).min(cap);
                self.settle(row, demands, Fair { rate, limit: Some(link) }, fair);
            }
        }
    }

    fn settle(&mut self, row: u32, demands: &[Demand], what: Fair, fair: &mut [Fair]) {
        let Demand { weight, count, .. } = demands[row as usize];
        self.rising[row as usize] = false;
        fair[row as usize] = what;
        for (link, share) in self.paths.of(row as usize) {
            let state = &mut self.links[link];
            state.spare -= what.rate * count * share;
            state.slope -= weight * count * share;
            state.open -= 1;
        }
    }
}
