//! A cost that grows linearly with size, above a floor.

use foretrain_core::{Bytes, Estimate, Nanos};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

/// `max(floor, offset + per_byte x bytes)`, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinearCost {
    /// What even the smallest buffer takes, in ns.
    #[serde(default, deserialize_with = "not_negative")]
    pub floor_ns: f64,
    /// Where the line meets zero bytes, in ns; below zero where small buffers are quicker than the
    /// line says.
    #[serde(deserialize_with = "plausible")]
    pub offset_ns: f64,
    /// Slope in ns per byte.
    #[serde(deserialize_with = "not_negative")]
    pub ns_per_byte: f64,
    /// Relative standard deviation of measurements around the line.
    #[serde(default, deserialize_with = "not_negative")]
    pub relative_spread: f64,
}

impl LinearCost {
    /// No cost at all.
    pub const FREE: Self =
        Self { floor_ns: 0.0, offset_ns: 0.0, ns_per_byte: 0.0, relative_spread: 0.0 };

    /// Costs `latency_ns` and then `ns_per_byte`.
    pub const fn new(latency_ns: f64, ns_per_byte: f64) -> Self {
        Self { floor_ns: 0.0, offset_ns: latency_ns, ns_per_byte, relative_spread: 0.0 }
    }

    /// The cost of so many bytes, which need not be whole, in ns.
    pub fn ns(&self, bytes: f64) -> f64 {
        (self.offset_ns + self.ns_per_byte * bytes).max(self.floor_ns).max(0.0)
    }

    /// The cost of a buffer with its interval.
    pub fn time(&self, bytes: Bytes) -> Estimate<Nanos> {
        let value = Nanos::from_nanos_f64(self.ns(bytes.as_f64()));
        Estimate::with_relative_spread(value, self.relative_spread)
    }

    /// The line through measured `(bytes, ns)` points that has the least relative error, with the
    /// floor at the quickest of the small buffers it lies below. Points that are not positive and
    /// finite do not count. `None` with fewer than two sizes, or where the figures of the line are none of a machine.
    ///
    /// Weights are those of relative error, so that a large buffer's nanoseconds do not drown a
    /// small one's; two rounds of reweighting with Huber's function keep single slow measurements
    /// from bending the line.
    pub fn fit(points: &[(f64, f64)]) -> Option<LinearFit> {
        let good = |p: &&(f64, f64)| p.0.is_finite() && p.0 >= 0.0 && p.1.is_finite() && p.1 > 0.0;
        let points: Vec<(f64, f64)> = points.iter().filter(good).copied().collect();
        let mut sizes: Vec<f64> = points.iter().map(|p| p.0).collect();
        sizes.sort_by(f64::total_cmp);
        sizes.dedup();
        if sizes.len() < 2 {
            return None;
        }
        let mut robust = vec![1.0; points.len()];
        let mut line = (0.0, 0.0);
        for _ in 0..ROUNDS {
            line = weighted_line(&points, &robust)?;
            let errors: Vec<f64> = points.iter().map(|p| relative(line, *p).abs()).collect();
            let scale = HUBER * median(&errors) / NORMAL_MAD;
            for (weight, error) in robust.iter_mut().zip(&errors) {
                *weight = if *error > scale && scale > 0.0 { scale / error } else { 1.0 };
            }
        }
        let (offset_ns, ns_per_byte) = line;
        let quickest = points.iter().map(|p| p.1).fold(f64::INFINITY, f64::min);
        let floor_ns = if offset_ns < quickest { quickest } else { 0.0 };
        let mut cost = Self { floor_ns, offset_ns, ns_per_byte, relative_spread: 0.0 };
        let errors: Vec<f64> = points.iter().map(|p| (cost.ns(p.0) / p.1 - 1.0).abs()).collect();
        cost.relative_spread = median(&errors) / NORMAL_MAD;
        let figures = [offset_ns, ns_per_byte, floor_ns, cost.relative_spread];
        if !figures.iter().all(|figure| figure.abs() <= FARTHEST) {
            return None;
        }
        let worst = errors.iter().copied().fold(0.0, f64::max);
        Some(LinearFit { cost, points: points.len(), median_error: median(&errors), worst })
    }
}

/// A fitted cost and how far the measurements lie from it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinearFit {
    /// The line.
    pub cost: LinearCost,
    /// Measurements used.
    pub points: usize,
    /// Median of the absolute relative errors.
    pub median_error: f64,
    /// The largest absolute relative error.
    pub worst: f64,
}

fn plausible<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let value = f64::deserialize(deserializer)?;
    if value.abs() <= FARTHEST {
        return Ok(value);
    }
    Err(D::Error::custom(format!("expected a number of at most {FARTHEST:e}, found {value:e}")))
}

fn not_negative<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let value = plausible(deserializer)?;
    if value >= 0.0 {
        return Ok(value);
    }
    Err(D::Error::custom(format!("expected no negative number, found {value}")))
}

/// No figure of a line is larger: nanoseconds beyond it are decades.
pub(super) const FARTHEST: f64 = 1e18;
const ROUNDS: usize = 3;
/// Huber's usual bend, in standard deviations.
const HUBER: f64 = 1.345;
/// Median absolute deviation of a normal distribution, in standard deviations.
const NORMAL_MAD: f64 = 0.6745;

/// Least squares on relative errors; slopes are never negative.
fn weighted_line(points: &[(f64, f64)], robust: &[f64]) -> Option<(f64, f64)> {
    let (mut w, mut wx, mut wy, mut wxx, mut wxy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (&(x, y), r) in points.iter().zip(robust) {
        let weight = r / (y * y);
        w += weight;
        wx += weight * x;
        wy += weight * y;
        wxx += weight * x * x;
        wxy += weight * x * y;
    }
    let determinant = w * wxx - wx * wx;
    if !(determinant.is_finite() && determinant > 0.0) {
        return None;
    }
    let slope = ((w * wxy - wx * wy) / determinant).max(0.0);
    Some(((wy - slope * wx) / w, slope))
}

fn relative((offset, slope): (f64, f64), (x, y): (f64, f64)) -> f64 {
    (offset + slope * x) / y - 1.0
}

fn median(values: &[f64]) -> f64 {
    foretrain_core::stats::median(values).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clean_line_is_found_exactly() {
        let points: Vec<_> =
            [1e3, 1e4, 1e5, 1e6].iter().map(|&b| (b, 5_000.0 + 0.25 * b)).collect();
        let fit = LinearCost::fit(&points).unwrap();
        assert!((fit.cost.offset_ns - 5_000.0).abs() < 1e-6 && fit.worst < 1e-9);
        assert!((fit.cost.ns_per_byte - 0.25).abs() < 1e-12);
        assert_eq!(fit.cost.time(Bytes::new(4_000)).value, Nanos::from_nanos(6_000));
    }

    #[test]
    fn a_slow_outlier_bends_the_line_little_and_small_buffers_meet_the_floor() {
        let mut points: Vec<_> =
            (10..24).map(|i| f64::from(1 << i)).map(|b| (b, 0.1 * b)).collect();
        points[7].1 *= 30.0;
        points.push((1.0, 900.0));
        let fit = LinearCost::fit(&points).unwrap();
        assert!((fit.cost.ns_per_byte / 0.1 - 1.0).abs() < 0.05, "{fit:?}");
        assert!(fit.worst > 0.9 && fit.median_error < 0.2, "{fit:?}");
    }

    #[test]
    fn one_size_or_nonsense_is_no_line() {
        assert!(LinearCost::fit(&[(8.0, 1.0), (8.0, 2.0)]).is_none());
        assert!(LinearCost::fit(&[(8.0, f64::NAN), (9.0, -2.0), (10.0, 1.0)]).is_none());
    }

    proptest::proptest! {
        #[test]
        fn never_negative_and_never_falling(
            points in proptest::collection::vec((0.0f64..1e9, 1.0f64..1e9), 0..30),
            a in 0.0f64..1e9, b in 0.0f64..1e9,
        ) {
            if let Some(fit) = LinearCost::fit(&points) {
                let (low, high) = (a.min(b), a.max(b));
                proptest::prop_assert!(fit.cost.ns(low) >= 0.0);
                proptest::prop_assert!(fit.cost.ns(low) <= fit.cost.ns(high));
                proptest::prop_assert!(fit.median_error.is_finite());
            }
        }
    }
}
