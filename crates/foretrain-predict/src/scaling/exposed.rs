//! The time that a step loses between nodes: fitted, and carried to other sizes.
//!
//! `T = work x c + E`. What a point on several nodes takes beyond the work of one node is `E`. It
//! is explained by the bytes that leave a node (a ring's barely grow with the number of ranks), by
//! the number of ranks (latency of a ring's hops), by the logarithm of the number of nodes (lateness,
//! a tree's hops), or by bytes and that logarithm. Coefficients are least squares of relative errors
//! and never negative; bytes are believed unless another form halves the error.

use foretrain_core::Estimate;
use foretrain_core::stats::median;
use foretrain_cost::Synchronisation;

use super::normal::{Normal, Normalised};

/// A loss below this share of the step is within the noise of the measurement.
const NOISE: f64 = 0.02;
/// Relative spread of a single point's loss: batches, clocks and placements differ.
const ONE_POINT: f64 = 0.2;
/// Another form must leave less than this of the error.
const BETTER: f64 = 0.5;
/// No fit is trusted more than this.
const LEAST_SPREAD: f64 = 0.08;

/// What the lost time grows with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grows {
    Bytes,
    Ranks,
    Nodes,
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

impl Size {
    /// How often gradients cross the network per step.
    fn syncs(self, normal: &Normalised<'_>) -> f64 {
        let deferred = !normal.series.known.synchronises_each;
        if deferred && self.way.synchronises_once() { 1.0 } else { f64::from(self.micro) }
    }
    fn term(self, normal: &Normalised<'_>, grows: Grows) -> f64 {
        match grows {
            Grows::Bytes => 0.0,
            Grows::Ranks => f64::from(self.gpus - 1) * self.syncs(normal),
            Grows::Nodes | Grows::BytesAndNodes => {
                f64::from(self.nodes).log2() * self.syncs(normal)
            }
        }
    }
}

impl Exposed {
    /// Of what points on several nodes lose against one node's cost. `None` if none loses more than
    /// noise.
    pub(super) fn fit(normal: &Normalised<'_>, node_cost: f64) -> Option<Self> {
        let lost = |point: &Normal<'_>| (point.time() - point.work * node_cost).max(0.0);
        if !normal.spread().any(|point| lost(point) > NOISE * point.time()) {
            return None;
        }
        // Small losses are mostly noise: the weights are bounded.
        let steps: Vec<f64> = normal.spread().map(Normal::time).collect();
        let floor = NOISE * median(&steps).unwrap_or(1.0);
        let rows = |grows: Grows| -> Vec<Row> {
            let row = |point: &Normal<'_>| Row {
                bytes: normal.node_bytes(point),
                more: Size::from(point).term(normal, grows),
                lost: lost(point),
                weight: 1.0 / lost(point).max(floor),
            };
            normal.spread().map(row).collect()
        };
        let mut sizes: Vec<u32> = normal.spread().map(|point| point.gpus).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let mut best = Fit::of(Grows::Bytes, &rows(Grows::Bytes))?;
        for grows in [Grows::Ranks, Grows::Nodes, Grows::BytesAndNodes] {
            let needed = if grows == Grows::BytesAndNodes { 3 } else { 2 };
            if sizes.len() >= needed
                && let Some(fit) = Fit::of(grows, &rows(grows))
                && fit.off < BETTER * best.off
            {
                best = fit;
            }
        }
        let spread = if steps.len() < 2 { ONE_POINT } else { best.off.clamp(LEAST_SPREAD, 0.5) };
        Some(Self {
            grows: best.grows,
            per_byte: best.per_byte,
            per_more: best.per_more,
            spread,
            points: steps.len(),
        })
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
        self.per_byte * step.per_node().total() + self.per_more * size.term(normal, self.grows)
    }

    /// How much of it goes with bytes, 0 to 1.
    pub(super) fn share_of_bytes(&self, normal: &Normalised<'_>, size: Size) -> f64 {
        let all = self.at(normal, size);
        let rest = self.per_more * size.term(normal, self.grows);
        if all > 0.0 { (1.0 - rest / all).clamp(0.0, 1.0) } else { 1.0 }
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

/// One point of a fit.
struct Row {
    bytes: f64,
    more: f64,
    lost: f64,
    weight: f64,
}

/// Coefficients and the root mean square of the relative errors that they leave.
struct Fit {
    grows: Grows,
    per_byte: f64,
    per_more: f64,
    off: f64,
}

impl Fit {
    /// Weighted least squares; `None` if a coefficient is negative or nothing determines it.
    fn of(grows: Grows, rows: &[Row]) -> Option<Self> {
        let sum = |of: &dyn Fn(&Row) -> f64| -> f64 {
            rows.iter().map(|row| of(row) * row.weight * row.weight).sum()
        };
        let (aa, bb) = (sum(&|r| r.bytes * r.bytes), sum(&|r| r.more * r.more));
        let (ay, by) = (sum(&|r| r.bytes * r.lost), sum(&|r| r.more * r.lost));
        let (per_byte, per_more) = match grows {
            Grows::Bytes => (ay / aa, 0.0),
            Grows::Ranks | Grows::Nodes => (0.0, by / bb),
            Grows::BytesAndNodes => {
                let ab = sum(&|r| r.bytes * r.more);
                let determinant = aa * bb - ab * ab;
                if determinant <= 1e-9 * aa * bb {
                    return None;
                }
                ((ay * bb - by * ab) / determinant, (by * aa - ay * ab) / determinant)
            }
        };
        let usable = |x: f64| x.is_finite() && x >= 0.0;
        if !(usable(per_byte) && usable(per_more)) {
            return None;
        }
        let error =
            |row: &Row| (per_byte * row.bytes + per_more * row.more - row.lost) * row.weight;
        let squares: f64 = rows.iter().map(|row| error(row).powi(2)).sum();
        Some(Self { grows, per_byte, per_more, off: (squares / rows.len() as f64).sqrt() })
    }
}
