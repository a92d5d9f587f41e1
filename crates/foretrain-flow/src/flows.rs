//! What is to be transferred.

use std::hash::{Hash, Hasher};

use foretrain_core::{Bandwidth, Nanos};
use rustc_hash::{FxHashMap, FxHasher};

use crate::paths::Paths;

/// One transfer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flow {
    /// When its first byte may leave.
    pub start: Nanos,
    /// Bytes.
    pub size: f64,
    /// From the last byte's departure to its arrival, whatever the rate.
    pub latency: Nanos,
    /// Its part of a full link beside others, above zero.
    pub weight: f64,
    /// The most it can use.
    pub cap: Bandwidth,
}

impl Flow {
    /// Starts at zero, takes all it gets, and arrives without delay.
    pub const fn new(size: f64) -> Self {
        let cap = Bandwidth::from_bytes_per_sec(f64::INFINITY);
        Self { start: Nanos::ZERO, size, latency: Nanos::ZERO, weight: 1.0, cap }
    }
}

/// Flows with their paths. Equal flows over the same path are kept as one that counts for several.
#[derive(Clone, Debug, Default)]
pub struct Flows {
    pub(crate) flows: Vec<Flow>,
    pub(crate) counts: Vec<u32>,
    pub(crate) paths: Paths,
    /// Which row stands for each flow that was pushed.
    pub(crate) rows: Vec<u32>,
    known: FxHashMap<u64, u32>,
}

impl Flows {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a flow over these links, each with its share of the flow.
    pub fn push(&mut self, flow: Flow, path: &[(u32, f64)]) {
        let key = key(&flow, path);
        let next = self.flows.len() as u32;
        let row = *self.known.entry(key).or_insert(next);
        if row != next && self.flows[row as usize] == flow && self.paths.is_row(row as usize, path)
        {
            self.counts[row as usize] += 1;
            return self.rows.push(row);
        }
        self.rows.push(next);
        self.flows.push(flow);
        self.counts.push(1);
        self.paths.push(path.iter().copied());
    }

    /// Start of a row in nanoseconds from `origin`.
    pub(crate) fn start(&self, row: u32, origin: Nanos) -> f64 {
        (self.flows[row as usize].start - origin).nanos() as f64
    }

    /// How many were added.
    pub fn len(&self) -> usize {
        self.rows.len()
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
    /// Entries of all distinct paths together: what memory and time go by.
    pub fn entries(&self) -> usize {
        self.paths.entries()
    }

    /// Bytes that pass each of `links` links.
    pub fn loads(&self, links: usize) -> Vec<f64> {
        let mut loads = vec![0.0; links];
        for (row, (flow, &count)) in self.flows.iter().zip(&self.counts).enumerate() {
            for (link, share) in self.paths.of(row) {
                loads[link] += flow.size * f64::from(count) * share;
            }
        }
        loads
    }
}

fn key(flow: &Flow, path: &[(u32, f64)]) -> u64 {
    let mut hasher = FxHasher::default();
    flow.start.nanos().hash(&mut hasher);
    flow.size.to_bits().hash(&mut hasher);
    for (link, _) in path {
        link.hash(&mut hasher);
    }
    hasher.finish()
}
