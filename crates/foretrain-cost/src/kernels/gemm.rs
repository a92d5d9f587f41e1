//! Matrix products: tiles in waves over the processors, against the memory.

use serde::Deserialize;

use super::curve::{Limits, both};
use super::operation::Gemm;

/// How a device's library multiplies, for one class of types.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GemmCurve {
    /// Shortest kernel.
    pub(super) floor_us: f64,
    /// Share of the peak in the inner loop of a 128 x 128 tile.
    pub(super) efficiency: f64,
    /// Loss of narrow tiles: a tile's rate goes with `1 / (1 + narrow (1/rows + 1/columns))`.
    narrow: f64,
    /// Filling and draining a 128 x 128 tile.
    tile_us: f64,
    /// Share of the memory's rate.
    memory: f64,
    /// The same of what fits the cache.
    resident: f64,
    /// Traffic of partial sums when the sums are split among processors, over what they need once.
    split: f64,
    /// How little the two limits hinder each other.
    sharpness: f64,
    /// Loss of clock with time under full load, per factor e beyond 1 ms.
    sustained: f64,
}

/// Tiles that libraries have, rows and columns.
const TILES: [(f64, f64); 7] = [
    (64.0, 64.0),
    (64.0, 128.0),
    (128.0, 64.0),
    (128.0, 128.0),
    (128.0, 256.0),
    (256.0, 128.0),
    (256.0, 256.0),
];
/// Parts that the sums may be split into.
const SPLITS: [f64; 5] = [1.0, 2.0, 4.0, 8.0, 16.0];
/// Sums come in steps of so many terms; shorter parts than [`LEAST_PART`] are not split off.
const STEP: f64 = 32.0;
const LEAST_PART: f64 = 256.0;
/// Clocks have settled by then, seconds.
const SETTLED: f64 = 0.1;

/// A curve on a device's limits, with all that no shape changes worked out.
#[derive(Clone, Debug)]
pub(super) struct GemmTimer {
    curve: GemmCurve,
    limits: Limits,
    peak: f64,
    tiles: [Tile; TILES.len()],
}

#[derive(Clone, Copy, Debug)]
struct Tile {
    rows: f64,
    columns: f64,
    seconds_per_term: f64,
    overhead: f64,
}

impl GemmTimer {
    /// `peak` in FLOP per second.
    pub(super) fn new(curve: GemmCurve, limits: Limits, peak: f64) -> Self {
        let loss = |rows: f64, columns: f64| 1.0 + curve.narrow * (1.0 / rows + 1.0 / columns);
        let best = peak * curve.efficiency / limits.processors * loss(128.0, 128.0);
        let tiles = TILES.map(|(rows, columns)| Tile {
            rows,
            columns,
            seconds_per_term: 2.0 * rows * columns * loss(rows, columns) / best,
            overhead: curve.tile_us * 1e-6 * (rows * columns).sqrt() / 128.0,
        });
        Self { curve, limits, peak, tiles }
    }

    pub(super) fn seconds(&self, gemm: &Gemm) -> f64 {
        self.seconds_moving(gemm, gemm.bytes().as_f64())
    }

    /// As [`Self::seconds`], with so many bytes moved.
    pub(super) fn seconds_moving(&self, gemm: &Gemm, bytes: f64) -> f64 {
        let compute = self.compute(gemm).max(gemm.flops().get() / self.peak);
        let settled = (compute.min(SETTLED) / 1e-3).ln_1p();
        let compute = compute * (1.0 + self.curve.sustained * settled);
        let memory = self.limits.moving(bytes, self.curve.memory, self.curve.resident, 2);
        self.curve.floor_us * 1e-6 + both(compute, memory, self.curve.sharpness)
    }

    /// The best of the tilings: what the library's choice comes close to.
    fn compute(&self, gemm: &Gemm) -> f64 {
        let (m, n, k, batch) = (gemm.m as f64, gemm.n as f64, gemm.k as f64, gemm.batch as f64);
        let sums = 4.0 * m * n * batch * self.curve.split / self.limits.bandwidth;
        let terms = SPLITS.map(|parts| up(k / (parts * STEP)) * STEP);
        let mut best = f64::INFINITY;
        for tile in &self.tiles {
            let tiles = up(m / tile.rows) * up(n / tile.columns) * batch;
            for (parts, terms) in SPLITS.into_iter().zip(terms) {
                // Whole waves of the split sums alone would be no faster: so is nothing that follows.
                let ideal = tiles * k * tile.seconds_per_term / self.limits.processors;
                if parts > 1.0 && (terms < LEAST_PART || ideal + parts * sums >= best) {
                    break;
                }
                let waves = up(tiles * parts / self.limits.processors);
                let partial = if parts > 1.0 { parts * sums } else { 0.0 };
                let time = waves * (terms * tile.seconds_per_term + tile.overhead) + partial;
                best = best.min(time);
            }
        }
        best
    }
}

/// The next whole number. Numbers here are positive and far below 2^63.
fn up(value: f64) -> f64 {
    let whole = value as i64 as f64;
    if whole < value { whole + 1.0 } else { whole }
}
