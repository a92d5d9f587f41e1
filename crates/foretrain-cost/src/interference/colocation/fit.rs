//! Fitting the model to measured pairs.

use foretrain_core::stats::median;
use foretrain_core::{InputError, Result};

use super::{ColocationModel, FEATURES, JobLoad, MOST_SLOWDOWN, Turns, features};
use crate::boost::{BoostOptions, Regressor, Table};

/// One measured job of a pair that shared a device in slices of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Alone.
    pub victim: JobLoad,
    /// What ran beside it.
    pub other: JobLoad,
    /// Its step time beside the other over that alone. A measurement that was cut off at the speed
    /// alone counts as 1, the most it can have been.
    pub slowdown: f64,
}

/// Fewer pairs tell constants from chance no better than the defaults.
const FEWEST: usize = 20;
/// A device this busy has no idle time to give away.
const BUSY: f64 = 0.7;

const BOOST: BoostOptions =
    BoostOptions { trees: 60, depth: 2, rate: 0.1, least_rows: 30, ridge: 20.0, bins: 32 };
/// Labels beyond this factor from the formula are cut: such jobs met something else than each
/// other's kernels, as a common source of input.
const MOST_CORRECTION: f64 = 2.0;

/// Fits constants, then trees to what they leave over.
///
/// Slices of time are what the pairs are from. That kernels queued together take turns one by one
/// (exponent 1) follows from how such a queue works, and the cost of a turn is what busy pairs
/// show: each pair counts from both sides, so that unequal kernels cancel.
///
/// # Errors
/// If there are fewer than 20 usable pairs.
pub fn fit(pairs: &[Measured]) -> Result<ColocationModel> {
    let usable = |pair: &&Measured| pair.slowdown.is_finite() && pair.slowdown > 0.0;
    let pairs: Vec<Measured> = pairs.iter().filter(usable).copied().collect();
    if pairs.len() < FEWEST {
        return Err(InputError::new(format!(
            "{} measured jobs in pairs; at least {FEWEST} are needed",
            pairs.len()
        )));
    }
    let time_sliced = best_turns(&pairs);
    let busy = |pair: &&Measured| pair.victim.busy > BUSY && pair.other.busy > BUSY;
    let costs: Vec<f64> = pairs.iter().filter(busy).map(|pair| pair.slowdown - 1.0).collect();
    let cost = median(&costs).unwrap_or(time_sliced.cost).clamp(0.0, 10.0);
    // No pair tells more digits than that.
    let cost = (cost * 1e3).round() / 1e3;
    let mut rows = Table::new(FEATURES.len());
    let (mut targets, mut weights) = (Vec::new(), Vec::new());
    for Measured { victim, other, slowdown } in &pairs {
        let by_formula = time_sliced.slowdown(victim, std::slice::from_ref(other));
        rows.push(&features(victim, other, by_formula));
        let slowdown = slowdown.clamp(1.0, MOST_SLOWDOWN);
        let most = MOST_CORRECTION.ln();
        targets.push((slowdown.ln() - by_formula.ln()).clamp(-most, most));
        // Errors count relative to what was measured.
        weights.push(1.0 / slowdown);
    }
    let trees = Regressor::fit(&rows, &targets, &weights, &BOOST);
    Ok(ColocationModel {
        time_sliced,
        mps: Turns { cost, size_exponent: 1.0 },
        features: FEATURES.map(str::to_owned).to_vec(),
        trees,
    })
}

/// The constants of the least mean absolute error of logarithms, on a grid.
fn best_turns(pairs: &[Measured]) -> Turns {
    let error = |turns: Turns| -> f64 {
        let each = pairs.iter().map(|Measured { victim, other, slowdown }| {
            let by_formula = turns.slowdown(victim, std::slice::from_ref(other));
            (by_formula.ln() - slowdown.max(1.0).ln()).abs()
        });
        each.sum()
    };
    let costs = (1..=40).map(|step| 0.05 * f64::from(step));
    let grid = costs.flat_map(|cost| {
        (0..=24).map(move |step| Turns { cost, size_exponent: 0.05 * f64::from(step) })
    });
    let scored = grid.map(|turns| (error(turns), turns));
    let best = scored.min_by(|a, b| a.0.total_cmp(&b.0));
    best.map_or(Turns { cost: 1.0, size_exponent: 0.0 }, |(_, turns)| turns)
}
