//! Observations by collective and ranks, and how far they lie from the model.

use foretrain_core::stats::median;
use foretrain_core::{Bytes, Nanos};
use foretrain_graph::CollectiveKind;
use foretrain_hardware::collectives::{Constants, ProcessorSweep, Sweep};

use super::Observation;
use crate::collective::{Known, Pick, best_of};

/// One collective on one number of ranks and nodes.
pub(super) struct Group {
    pub(super) kind: CollectiveKind,
    pub(super) ranks: u32,
    pub(super) nodes: u32,
    /// Rows by size, then by order.
    pub(super) rows: Vec<usize>,
    /// Log of measured over modelled, by row of `rows`.
    pub(super) logs: Vec<f64>,
    pub(super) sizes: Vec<Bytes>,
    /// What the model takes for each row.
    ways: Vec<&'static str>,
}

/// Groups in the order of kinds, nodes and ranks.
pub(super) fn group(observations: &[Observation]) -> Vec<Group> {
    let key = |row: &usize| {
        let Observation { call, fabric, .. } = &observations[*row];
        (call.kind.as_str(), fabric.nodes, fabric.ranks)
    };
    let mut rows: Vec<usize> = (0..observations.len()).collect();
    rows.sort_by_key(|row| (key(row), observations[*row].call.bytes, *row));
    let same = |a: &usize, b: &usize| key(a) == key(b);
    let groups = rows.chunk_by(same).map(|rows| {
        let Observation { call, fabric, .. } = &observations[rows[0]];
        Group {
            kind: call.kind,
            ranks: fabric.ranks,
            nodes: fabric.nodes,
            rows: rows.to_vec(),
            logs: vec![0.0; rows.len()],
            ways: vec![""; rows.len()],
            sizes: rows.iter().map(|&row| observations[row].call.bytes).collect(),
        }
    });
    groups.collect()
}

/// Rows of a sweep that all take part; of a finer one, those nearest to so many steps per doubling.
const FINE: usize = 128;
const PER_DOUBLING: f64 = 4.0;

impl Group {
    /// The rows that stand for the sweep: all, or of a very fine one the first of each step.
    pub(super) fn representatives(&self) -> Vec<usize> {
        if self.rows.len() <= FINE {
            return self.rows.clone();
        }
        let step = |at: usize| (log2(self.sizes[at]) * PER_DOUBLING).floor();
        (0..self.rows.len())
            .filter(|&at| at == 0 || step(at) > step(at - 1))
            .map(|at| self.rows[at])
            .collect()
    }

    /// Sets how far each row lies from the model.
    pub(super) fn compare(&mut self, observations: &[Observation], values: &Constants, pick: Pick) {
        for ((log, way), &row) in self.logs.iter_mut().zip(&mut self.ways).zip(&self.rows) {
            let Observation { call, fabric, log_ns, .. } = &observations[row];
            let best = best_of(call, fabric, Known { values, pick });
            *way = best.way();
            let modelled = best.total().ln();
            *log = if modelled.is_finite() { log_ns - modelled } else { 0.0 };
        }
    }

    /// Sizes with the median deviation of their rows that are kept.
    pub(super) fn curve(&self, kept: &dyn Fn(usize) -> bool) -> Vec<(Bytes, f64)> {
        self.medians(kept, |at| self.logs[at])
    }

    /// Log2 of each size with the median logarithm of its times.
    pub(super) fn times(&self, observations: &[Observation]) -> Vec<(f64, f64)> {
        let times = self.medians(&|_| true, |at| observations[self.rows[at]].log_ns);
        times.into_iter().map(|(size, log)| (log2(size), log)).collect()
    }

    /// The median value of each size's rows that are kept.
    fn medians(
        &self,
        kept: &dyn Fn(usize) -> bool,
        value: impl Fn(usize) -> f64,
    ) -> Vec<(Bytes, f64)> {
        let places: Vec<usize> = (0..self.rows.len()).filter(|&at| kept(self.rows[at])).collect();
        let sizes = places.chunk_by(|&a, &b| self.sizes[a] == self.sizes[b]);
        sizes
            .map(|same| {
                let values: Vec<f64> = same.iter().map(|&at| value(at)).collect();
                (self.sizes[same[0]], median(&values).unwrap_or(0.0))
            })
            .collect()
    }

    /// Median processor time by size, of the rows that tell it.
    pub(super) fn processors(&self, observations: &[Observation]) -> Option<ProcessorSweep> {
        let micros = |row: usize| observations[row].processor.map(Nanos::micros_f64);
        let told = |row: usize| micros(row).is_some();
        let curve = self.medians(&told, |at| micros(self.rows[at]).unwrap_or_default());
        (!curve.is_empty()).then(|| ProcessorSweep {
            collective: self.kind.as_str().to_owned(),
            ranks: self.ranks,
            nodes: self.nodes,
            sizes: curve.iter().map(|(size, _)| *size).collect(),
            times_us: curve.iter().map(|(_, time)| *time).collect(),
        })
    }

    fn way_at(&self, size: Bytes) -> &'static str {
        let at = self.sizes.iter().position(|known| *known == size);
        at.map_or("", |at| self.ways[at])
    }

    /// What a cluster file keeps; `None` if nothing is kept. A group that is `odd` keeps its rows,
    /// for its own ranks alone.
    pub(super) fn sweep(&self, odd: bool, kept: &dyn Fn(usize) -> bool) -> Option<Sweep> {
        let curve = self.curve(if odd { &|_| true } else { kept });
        (!curve.is_empty()).then(|| Sweep {
            collective: self.kind.as_str().to_owned(),
            ranks: self.ranks,
            nodes: self.nodes,
            odd,
            sizes: curve.iter().map(|(size, _)| *size).collect(),
            ratios: curve.iter().map(|(_, log)| log.exp().clamp(1e-3, 1e3)).collect(),
            ways: curve.iter().map(|(size, _)| self.way_at(*size).to_owned()).collect(),
        })
    }
}

/// Doublings of size.
fn log2(size: Bytes) -> f64 {
    size.as_f64().max(1.0).log2()
}

/// How far a point lies above the line through its neighbours.
pub(super) fn above_line(before: (f64, f64), here: (f64, f64), after: (f64, f64)) -> f64 {
    let part = (here.0 - before.0) / (after.0 - before.0);
    here.1 - (before.1 + part * (after.1 - before.1))
}

/// Scatter of two runs of a benchmark; nothing is surer.
const LEAST_NOISE: f64 = 0.02;
/// Where too few rows tell.
const USUAL_NOISE: f64 = 0.05;

/// Relative error of interpolating between measured sizes: each row from its two neighbours.
pub(super) fn noise(groups: &[Group], kept: &dyn Fn(usize) -> bool) -> f64 {
    let mut errors = Vec::new();
    for group in groups {
        let curve = group.curve(kept);
        for three in curve.windows(3) {
            let [before, here, after] = [0, 1, 2].map(|at| (log2(three[at].0), three[at].1));
            errors.push(above_line(before, here, after).abs());
        }
    }
    if errors.len() < 4 {
        return USUAL_NOISE;
    }
    errors.sort_by(f64::total_cmp);
    // The 80th of 100 errors is 1.28 standard deviations off.
    let high = errors[(errors.len() * 4 / 5).min(errors.len() - 1)] / 1.28;
    high.clamp(LEAST_NOISE, 0.5)
}
