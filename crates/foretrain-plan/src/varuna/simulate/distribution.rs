//! A step under many draws of jitter.

use foretrain_core::stats::quantile_sorted;
use foretrain_core::{InputError, Nanos, Result};
use rayon::prelude::*;

use super::engine::simulate_drawn;
use super::{Jitter, Step};

/// Runs that may be asked for.
const MOST_DRAWS: u32 = 100_000;

/// How long a step takes over many draws.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// The variation that was drawn.
    pub jitter: Jitter,
    /// Runs.
    pub draws: u32,
    /// The fifth percentile.
    pub p5: Nanos,
    /// The median.
    pub p50: Nanos,
    /// The 95th percentile.
    pub p95: Nanos,
    /// The mean.
    pub mean: Nanos,
}

/// Makespans of `count` runs; the same for any number of threads.
///
/// # Errors
/// If no run or too many are asked for.
pub fn draws(step: &Step, jitter: Jitter, count: u32) -> Result<Distribution> {
    if !(1..=MOST_DRAWS).contains(&count) {
        return Err(InputError::new(format!("{count} draws, expected 1 to {MOST_DRAWS}")));
    }
    let runs: Vec<u32> = (0..count).collect();
    let mut times: Vec<f64> = runs
        .par_iter()
        .map(|run| simulate_drawn(step, jitter, u64::from(*run)).makespan.nanos() as f64)
        .collect();
    let mean = times.iter().sum::<f64>() / f64::from(count);
    times.sort_by(f64::total_cmp);
    let at = |q| Nanos::from_nanos_f64(quantile_sorted(&times, q).unwrap_or_default());
    let (p5, p50, p95) = (at(0.05), at(0.5), at(0.95));
    Ok(Distribution { jitter, draws: count, p5, p50, p95, mean: Nanos::from_nanos_f64(mean) })
}
