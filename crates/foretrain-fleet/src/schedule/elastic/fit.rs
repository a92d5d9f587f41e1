//! A curve through measured steps.
//!
//! Computation is linear in the samples of a GPU, synchronisation in the number of GPUs, with
//! constants of its own within a node and between nodes; the two overlap in part:
//! `step = (compute^g + sync^g)^(1/g)`. Source: Pollux, OSDI 2021, equations 8 to 11.

use super::step_times::Measured;

/// The curve. Times are in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Curve {
    /// Computation: constant, and per sample of a GPU.
    compute: (f64, f64),
    /// Synchronisation within one node: of two GPUs, and per further GPU.
    inside: (f64, f64),
    /// The same across nodes.
    across: (f64, f64),
    /// How far the two overlap: 1 for not at all, large for wholly.
    overlap: f64,
}

/// Overlaps tried.
const OVERLAPS: [f64; 9] = [1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 5.0, 10.0];

impl Curve {
    /// Seconds of a step, and of it what synchronisation adds.
    pub(super) fn step(&self, gpus: u32, nodes: u32, local: u64) -> (f64, f64) {
        let compute = self.compute.0 + self.compute.1 * local as f64;
        let more = f64::from(gpus.saturating_sub(2));
        let sync = match (nodes, gpus) {
            (_, 0 | 1) => 0.0,
            (0 | 1, _) => self.inside.0 + self.inside.1 * more,
            _ => self.across.0 + self.across.1 * more,
        };
        let step = joined(compute, sync, self.overlap);
        (step, step - compute)
    }
}

fn joined(compute: f64, sync: f64, overlap: f64) -> f64 {
    (compute.powf(overlap) + sync.powf(overlap)).powf(overlap.recip())
}

/// The curve of the least error of the logarithms of step times; `None` without steps.
pub(super) fn fit(steps: &[Measured]) -> Option<Curve> {
    let alone = |step: &Measured| (step.local as f64, step.step - step.sync);
    let compute = line(steps.iter().map(alone))?;
    let with_overlap = |overlap: f64| {
        let sync = |step: &&Measured| {
            let compute = compute.0 + compute.1 * step.local as f64;
            let left = (step.step.powf(overlap) - compute.powf(overlap)).max(0.0);
            let gpus: u32 = step.per_node.iter().sum();
            (f64::from(gpus.saturating_sub(2)), left.powf(overlap.recip()))
        };
        let gpus = |step: &Measured| step.per_node.iter().sum::<u32>();
        let is_inside = |step: &&Measured| step.per_node.len() == 1 && gpus(step) > 1;
        let is_across = |step: &&Measured| step.per_node.len() > 1;
        let inside = line(steps.iter().filter(is_inside).map(|step| sync(&step)));
        let across = line(steps.iter().filter(is_across).map(|step| sync(&step)));
        // What was not measured is no better than what was.
        let inside_or = inside.or(across).unwrap_or((0.0, 0.0));
        let across_or = across.or(inside).unwrap_or((0.0, 0.0));
        let curve = Curve { compute, inside: inside_or, across: across_or, overlap };
        let error = |step: &Measured| {
            let (by_curve, _) = curve.step(gpus(step), step.per_node.len() as u32, step.local);
            (by_curve.max(f64::MIN_POSITIVE) / step.step).ln().powi(2)
        };
        (steps.iter().map(error).sum::<f64>(), curve)
    };
    let curves = OVERLAPS.into_iter().map(with_overlap);
    curves.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, curve)| curve)
}

/// Constant and slope, neither below zero, of the line with the least relative error.
fn line(points: impl Iterator<Item = (f64, f64)>) -> Option<(f64, f64)> {
    let (mut w, mut wx, mut wxx, mut wy, mut wxy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    let mut count = 0;
    for (x, y) in points {
        count += 1;
        if y <= 0.0 {
            // Hidden wholly: says that the line is low here, but has no relative error.
            continue;
        }
        let weight = (y * y).recip();
        w += weight;
        wx += weight * x;
        wxx += weight * x * x;
        wy += weight * y;
        wxy += weight * x * y;
    }
    if count == 0 {
        return None;
    }
    if w == 0.0 {
        return Some((0.0, 0.0));
    }
    let spread = w * wxx - wx * wx;
    let slope =
        if spread > 1e-12 * w * wxx.max(1e-300) { (w * wxy - wx * wy) / spread } else { 0.0 };
    let constant = (wy - slope * wx) / w;
    Some(match (constant >= 0.0, slope >= 0.0) {
        (true, true) => (constant, slope),
        (false, _) if wxx > 0.0 => (0.0, (wxy / wxx).max(0.0)),
        _ => (wy / w, 0.0),
    })
}
