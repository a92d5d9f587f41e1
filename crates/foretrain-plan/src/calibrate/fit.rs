//! Factors on a machine's times from steps that were measured on it.
//!
//! A few steps cannot tell four factors apart, so each factor is held to 1 by how well it is known
//! without them: the least squares of log errors plus the squares of log factors over their spreads.
//! Errors count linearly beyond what a good model leaves, so that one odd step moves little.

use foretrain_core::{InputError, Result};

use crate::times::Factors;

/// How far each factor may be off without any measurement, as a standard deviation of its logarithm.
pub(super) const SPREADS: [f64; 4] = [0.15, 0.20, 0.25, 0.50];
/// Error of a step that a good model leaves.
pub(super) const NOISE: f64 = 0.05;
/// Errors of so many times the noise and more count linearly.
const ODD: f64 = 2.0;
/// First step of the search, as a share; each round halves it.
const FIRST_STEP: f64 = 0.32;
/// Rounds of the search: the last steps are below a thousandth.
const ROUNDS: usize = 9;

/// Factors found, and what they leave.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitted {
    /// The factors.
    pub factors: Factors,
    /// Relative errors of the steps before, predicted over measured less one.
    pub before: Vec<f64>,
    /// The same after.
    pub after: Vec<f64>,
}

/// Factors under which `predict` comes nearest to `measured` steps (seconds each). `predict` gives
/// the time of a step by its position under given factors.
///
/// # Errors
/// Without steps, for a step that is no positive time, and where `predict` fails.
pub fn fit(
    measured: &[f64],
    predict: &(dyn Fn(usize, Factors) -> Result<f64> + Sync),
) -> Result<Fitted> {
    if measured.is_empty() {
        return Err(InputError::new("there are no measured steps to calibrate by"));
    }
    if let Some(wrong) = measured.iter().find(|time| !time.is_finite() || **time <= 0.0) {
        return Err(InputError::new(format!("a measured step of {wrong} s is no time")));
    }
    let errors = |factors: Factors| -> Result<Vec<f64>> {
        use rayon::prelude::*;
        let of = |at: usize| Ok(predict(at, factors)? / measured[at]);
        (0..measured.len()).into_par_iter().map(of).collect()
    };
    let cost = |factors: Factors| -> Result<f64> {
        let steps: f64 = errors(factors)?.into_iter().map(|ratio| odd(ratio.ln() / NOISE)).sum();
        let held = factors.to_array().into_iter().zip(SPREADS);
        Ok(steps + held.map(|(factor, spread)| (factor.ln() / spread).powi(2)).sum::<f64>())
    };
    let before = errors(Factors::default())?;
    let mut best = (cost(Factors::default())?, [1.0; 4]);
    let mut step = FIRST_STEP;
    for _ in 0..ROUNDS {
        // Around all factors until none moves, then in smaller steps.
        let mut moved = true;
        while moved {
            moved = false;
            for at in 0..SPREADS.len() {
                for change in [1.0 + step, 1.0 / (1.0 + step)] {
                    let mut tried = best.1;
                    tried[at] = (tried[at] * change).clamp(0.1, 10.0);
                    let cost = cost(Factors::from_array(tried))?;
                    if cost < best.0 - 1e-9 {
                        best = (cost, tried);
                        moved = true;
                    }
                }
            }
        }
        step /= 2.0;
    }
    let factors = Factors::from_array(best.1);
    let relative = |ratios: Vec<f64>| ratios.into_iter().map(|ratio| ratio - 1.0).collect();
    Ok(Fitted { factors, before: relative(before), after: relative(errors(factors)?) })
}

/// Square near zero, straight beyond (Huber, 1964).
fn odd(error: f64) -> f64 {
    let size = error.abs();
    if size <= ODD { size * size } else { ODD * (2.0 * size - ODD) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps that spend known shares on each of the four.
    fn step(shares: [f64; 4], factors: Factors) -> f64 {
        shares.iter().zip(factors.to_array()).map(|(share, factor)| share * factor).sum()
    }

    const SHARES: [[f64; 4]; 6] = [
        [0.9, 0.05, 0.05, 0.0],
        [0.3, 0.6, 0.1, 0.0],
        [0.2, 0.1, 0.7, 0.0],
        [0.1, 0.1, 0.0, 0.8],
        [0.5, 0.3, 0.1, 0.1],
        [0.6, 0.1, 0.1, 0.2],
    ];

    #[test]
    fn factors_that_steps_tell_apart_are_found() {
        let truth = Factors { products: 1.2, memory: 0.9, communication: 1.3, host: 1.5 };
        let measured = SHARES.map(|shares| step(shares, truth));
        let predict = |at: usize, factors| Ok(step(SHARES[at], factors));
        let fitted = fit(&measured, &predict).unwrap();
        for (found, truth) in fitted.factors.to_array().into_iter().zip(truth.to_array()) {
            assert!((found / truth - 1.0).abs() < 0.06, "{found} for {truth}");
        }
        assert!(fitted.after.iter().all(|error| error.abs() < 0.03), "{:?}", fitted.after);
    }

    #[test]
    fn one_step_moves_what_is_known_least_and_no_further_than_needed() {
        let measured = [1.3];
        let shares = [0.5, 0.0, 0.0, 0.5];
        let fitted = fit(&measured, &|_, factors| Ok(step(shares, factors))).unwrap();
        assert!(fitted.factors.host > fitted.factors.products);
        assert!((fitted.factors.memory - 1.0).abs() < 1e-6);
        assert!(fitted.after[0].abs() < 0.05);
    }

    #[test]
    fn one_odd_step_among_many_is_left_odd() {
        let mut measured = vec![1.0; 12];
        measured[3] = 4.0;
        let fitted = fit(&measured, &|_, factors| Ok(factors.products)).unwrap();
        assert!((fitted.factors.products - 1.0).abs() < 0.03, "{}", fitted.factors.products);
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(fit(&[], &|_, _| Ok(1.0)).is_err());
        assert!(fit(&[0.0], &|_, _| Ok(1.0)).is_err());
        assert!(fit(&[f64::NAN], &|_, _| Ok(1.0)).is_err());
    }
}
