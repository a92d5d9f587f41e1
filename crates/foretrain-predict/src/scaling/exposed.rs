//! The time that a step loses between nodes: fitted, and carried to other sizes.
//!
//! `T = work x c + E`. What a point on several nodes takes beyond the work of one node is `E`. It
//! is explained by the bytes that leave a node (a ring's barely grow with the number of ranks), by
//! the number of ranks (latency of a ring's hops), or by bytes and the logarithm of the number of
//! nodes (lateness and tree hops). Coefficients are least squares of relative errors and never
//! negative; the form with two terms must halve the error to be taken.

use foretrain_core::Estimate;
use foretrain_core::stats::median;
use foretrain_cost::Synchronisation;

use super::normal::{Normal, Normalised};

/// A loss below this share of the step is within the noise of the measurement.
const NOISE: f64 = 0.02;
/// Relative spread of a single point's loss: batches, clocks and placements differ.
const ONE_POINT: f64 = 0.2;
/// No fit is trusted more than this.
const LEAST_SPREAD: f64 = 0.08;

/// What the lost time grows with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grows {
    Bytes,
    Ranks,
    BytesAndNodes,
}

/// The lost time as a function of size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exposed {
    pub(super) grows: Grows,
    /// Micro-steps of the smallest point per byte.
    per_byte: f64,
    /// Micro-steps per rank, or per doubling of nodes.
    per_more: f64,
    /// Relative spread of the points around it.
    pub(super) spread: f64,
    /// How many points it rests on.
    pub(super) points: usize,
}

/// A size to ask for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) way: Synchronisation,
    pub(super) gpus: u32,
    pub(super) nodes: u32,
    pub(super) micro: u32,
}

impl From<&Normal<'_>> for Size {
    fn from(point: &Normal<'_>) -> Self {
        Self { way: point.way, gpus: point.gpus, nodes: point.nodes, micro: point.micro }
    }
}

/// One point of the fit.
struct Lost {
    bytes: f64,
    ranks: f64,
    doublings: f64,
    lost: f64,
}

impl Exposed {
    /// Of what points on several nodes lose against one node's cost. `None` if none loses more than
    /// noise.
    pub(super) fn fit(normal: &Normalised<'_>, node_cost: f64) -> Option<Self> {
        let lost: Vec<Lost> = normal
            .spread()
            .map(|point| Lost {
                bytes: normal.node_bytes(point),
                ranks: f64::from(point.gpus - 1),
                doublings: f64::from(point.nodes).log2(),
                lost: (point.time() - point.work * node_cost).max(0.0),
            })
            .filter(|row| row.bytes > 0.0)
            .collect();
        let steps: Vec<f64> = normal.spread().map(Normal::time).collect();
        let matters = lost.iter().zip(&steps).any(|(row, step)| row.lost > NOISE * step);
        if !matters {
            return None;
        }
        // Weighted by the inverse of what was lost, with a floor: small losses are mostly noise.
        let floor = NOISE * median(&steps).unwrap_or(1.0);
        let weight = |row: &Lost| 1.0 / row.lost.max(floor);
        let sizes = {
            let mut sizes: Vec<u32> = normal.spread().map(|point| point.gpus).collect();
            sizes.sort_unstable();
            sizes.dedup();
            sizes.len()
        };
        let one = |of: fn(&Lost) -> f64| {
            let (mut top, mut below) = (0.0, 0.0);
            for row in &lost {
                let x = of(row) * weight(row);
                top += x * row.lost * weight(row);
                below += x * x;
            }
            if below > 0.0 { top / below } else { 0.0 }
        };
        let error = |per_byte: f64, per_more: f64, more: fn(&Lost) -> f64| {
            let sum: f64 = lost
                .iter()
                .map(|row| {
                    let off = per_byte * row.bytes + per_more * more(row) - row.lost;
                    (off * weight(row)).powi(2)
                })
                .sum();
            (sum / lost.len() as f64).sqrt()
        };
        let bytes = one(|row| row.bytes);
        let mut best = (Grows::Bytes, bytes, 0.0, error(bytes, 0.0, |row| row.ranks));
        if sizes >= 2 {
            let ranks = one(|row| row.ranks);
            let off = error(0.0, ranks, |row| row.ranks);
            if off < 0.5 * best.3 {
                best = (Grows::Ranks, 0.0, ranks, off);
            }
        }
        if sizes >= 3
            && let Some((a, b)) = two_terms(&lost, &weight)
        {
            let off = error(a, b, |row| row.doublings);
            if off < 0.5 * best.3 {
                best = (Grows::BytesAndNodes, a, b, off);
            }
        }
        let (grows, per_byte, per_more, off) = best;
        let spread = if lost.len() < 2 { ONE_POINT } else { off.clamp(LEAST_SPREAD, 0.5) };
        Some(Self { grows, per_byte, per_more, spread, points: lost.len() })
    }

    /// From one synchronisation's cost in micro-steps at a size, however it was found.
    pub(super) fn from_sync(normal: &Normalised<'_>, at: Size, sync: f64, spread: f64) -> Self {
        let once = normal.synchronised(at.way, at.gpus, at.nodes, 1).per_node().total();
        Self {
            grows: Grows::Bytes,
            per_byte: if once > 0.0 { sync / once } else { 0.0 },
            per_more: 0.0,
            spread: spread.clamp(LEAST_SPREAD, 0.5),
            points: 2,
        }
    }

    /// From a rate in bytes per micro-step of the smallest point that nobody measured.
    pub(super) fn from_rate(bytes_per_micro_step: f64, spread: f64) -> Self {
        Self {
            grows: Grows::Bytes,
            per_byte: 1.0 / bytes_per_micro_step,
            per_more: 0.0,
            spread,
            points: 0,
        }
    }

    /// What a size loses per step, in micro-steps of the smallest point.
    pub(super) fn at(&self, normal: &Normalised<'_>, size: Size) -> f64 {
        if size.nodes <= 1 {
            return 0.0;
        }
        let step = normal.synchronised(size.way, size.gpus, size.nodes, size.micro);
        let syncs =
            if step.deferred && size.way.synchronises_once() { 1.0 } else { f64::from(size.micro) };
        let more = match self.grows {
            Grows::Bytes => 0.0,
            Grows::Ranks => f64::from(size.gpus - 1) * syncs,
            Grows::BytesAndNodes => f64::from(size.nodes).log2() * syncs,
        };
        self.per_byte * step.per_node().total() + self.per_more * more
    }

    /// The same with its interval.
    pub(super) fn between(&self, normal: &Normalised<'_>, size: Size) -> Estimate<f64> {
        Estimate::with_relative_spread(self.at(normal, size), self.spread)
    }

    /// Bytes per micro-step of the smallest point; `None` where bytes do not explain the loss.
    pub(super) fn rate(&self) -> Option<f64> {
        (self.per_byte > 0.0).then(|| 1.0 / self.per_byte)
    }
}

/// Bytes and doublings of nodes together, if both count.
fn two_terms(lost: &[Lost], weight: &dyn Fn(&Lost) -> f64) -> Option<(f64, f64)> {
    let (mut aa, mut ab, mut bb, mut ay, mut by) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for row in lost {
        let w = weight(row);
        let (a, b, y) = (row.bytes * w, row.doublings * w, row.lost * w);
        aa += a * a;
        ab += a * b;
        bb += b * b;
        ay += a * y;
        by += b * y;
    }
    let determinant = aa * bb - ab * ab;
    if determinant <= 1e-9 * aa * bb {
        return None;
    }
    let (a, b) = ((ay * bb - by * ab) / determinant, (by * aa - ay * ab) / determinant);
    (a >= 0.0 && b > 0.0).then_some((a, b))
}
