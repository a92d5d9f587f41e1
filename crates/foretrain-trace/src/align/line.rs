//! How one clock runs against another, from the ends of operations that both saw.

use foretrain_core::{Nanos, stats};

/// Drift is only sought with this many points.
const MIN_DRIFT_POINTS: usize = 6;
/// Drift must exceed its standard error this many times to be believed.
const DRIFT_SIGNIFICANCE: f64 = 4.0;
/// No working oscillator drifts further; more means mismatched operations.
const MAX_DRIFT: f64 = 1e-3;
/// All pairs of points up to this many, then pairs half the points apart.
const ALL_PAIRS: usize = 64;
/// Time stamps in whole microseconds scatter by at least this (1 us / sqrt 12).
const STAMP_NOISE_NANOS: f64 = 289.0;

/// `reference = at_origin + (local - origin) / (1 + drift)`.
pub(super) struct Line {
    pub(super) origin: Nanos,
    pub(super) at_origin: Nanos,
    pub(super) drift: f64,
    /// Robust standard deviation of the points around the line in ns, 0 for a single point.
    pub(super) noise: f64,
}

/// Fits (local end, reference end) points.
pub(super) fn fit_line(points: &[(Nanos, Nanos)]) -> Option<Line> {
    let mut points = points.to_vec();
    points.sort_unstable();
    let (x0, y0) = *points.get(points.len() / 2)?;
    // Differences against a point in the middle keep nanoseconds exact in floating point.
    let near: Vec<(f64, f64)> = points
        .iter()
        .map(|&(x, y)| ((x - x0).nanos() as f64, ((y - x) - (y0 - x0)).nanos() as f64))
        .collect();
    let lag = |slope: f64| near.iter().map(|(x, d)| d - slope * x).collect::<Vec<f64>>();
    let slope = believable_slope(&near).unwrap_or(0.0);
    let lag = lag(slope);
    let intercept = stats::median(&lag)?;
    Some(Line {
        origin: x0,
        at_origin: y0 + Nanos::from_nanos_f64(intercept),
        // d(reference - local)/d(local) = 1/(1 + drift) - 1
        drift: 1.0 / (1.0 + slope) - 1.0,
        noise: stats::robust_std(&lag).unwrap_or(0.0),
    })
}

/// The Theil-Sen slope of points in order of x, if it is more than noise.
fn believable_slope(points: &[(f64, f64)]) -> Option<f64> {
    let n = points.len();
    if n < MIN_DRIFT_POINTS {
        return None;
    }
    let slope = stats::median(&pair_slopes(points))?;
    let left: Vec<f64> = points.iter().map(|(x, d)| d - slope * x).collect();
    let noise = stats::robust_std(&left)?.max(STAMP_NOISE_NANOS);
    let center = points.iter().map(|(x, _)| x).sum::<f64>() / n as f64;
    let squares: f64 = points.iter().map(|(x, _)| (x - center).powi(2)).sum();
    // The standard error of a least-squares slope, larger by the efficiency lost to medians.
    let error = 1.25 * noise / squares.sqrt();
    let believable = slope.abs() > DRIFT_SIGNIFICANCE * error && slope.abs() <= MAX_DRIFT;
    believable.then_some(slope)
}

fn pair_slopes(points: &[(f64, f64)]) -> Vec<f64> {
    let slope = |a: &(f64, f64), b: &(f64, f64)| {
        let run = b.0 - a.0;
        (run > 0.0).then(|| (b.1 - a.1) / run)
    };
    if points.len() <= ALL_PAIRS {
        let pairs = points
            .iter()
            .enumerate()
            .flat_map(|(i, a)| points[i + 1..].iter().filter_map(move |b| slope(a, b)));
        return pairs.collect();
    }
    let half = points.len() / 2;
    points.iter().zip(&points[half..]).filter_map(|(a, b)| slope(a, b)).collect()
}
