//! What each cause of error leaves open, by the errors of described runs.
//!
//! The half-widths of 80 % intervals that make the errors most likely, if these follow Student's t
//! with few degrees of freedom: a run of which something is not described moves little. Sources count
//! by the square root of their runs. Few sources know some causes, so each half-width is held to what
//! is taken without any run by a weak prior.

use foretrain_core::stats::median;
use foretrain_plan::step::spread::{Cause, Causes};

/// A run's causes, and the logarithm of its measured over its predicted time.
#[derive(Clone, Debug)]
pub(super) struct Residual {
    /// Model and device.
    pub(super) group: String,
    pub(super) causes: Causes,
    pub(super) error: f64,
}

/// Taken without any run.
const PRIOR: [(Cause, f64); Cause::ALL.len()] = [
    (Cause::Form, 0.06),
    (Cause::Curves, 1.0),
    (Cause::Products, 0.08),
    (Cause::Attention, 0.10),
    (Cause::Memory, 0.15),
    (Cause::Experts, 0.30),
    (Cause::ExpertComm, 0.30),
    (Cause::Communication, 0.20),
    (Cause::Launch, 0.35),
    (Cause::Software, 0.10),
    (Cause::Machine, 0.15),
];
/// Standard deviation of a half-width's logarithm around that, about a factor of four.
const PRIOR_SPREAD: f64 = 1.3;
/// Degrees of freedom.
const FREEDOM: f64 = 4.0;
/// 0.9 quantile of Student's t with so many.
const T90: f64 = 1.533;
/// Sources whose median run is further off have a cause of their own.
const OWN_CAUSE: f64 = 0.35;
/// First step of the search, as a share; each round halves it.
const FIRST_STEP: f64 = 0.5;
/// Rounds of the search: the last steps are below half a percent.
const ROUNDS: usize = 8;

/// Half-widths by cause from the errors of sources.
pub(super) fn fit<'a>(sources: impl Iterator<Item = &'a [Residual]>) -> Causes {
    let usable = |source: &&[Residual]| {
        let errors: Vec<f64> = source.iter().map(|row| row.error).collect();
        median(&errors).is_some_and(|middle| middle.abs() < OWN_CAUSE)
    };
    let sources: Vec<&[Residual]> = sources.filter(usable).collect();
    let weights: f64 = sources.iter().map(|source| (source.len() as f64).sqrt()).sum();
    let count = sources.len() as f64;
    let prior = PRIOR.map(|(_, half_width)| half_width);
    let cost = |half_widths: [f64; Cause::ALL.len()]| -> f64 {
        let each = Causes::from_array(half_widths);
        let unlikely: f64 = sources
            .iter()
            .map(|source| {
                let rows: f64 = source.iter().map(|row| surprise(row, &each)).sum();
                rows / (source.len() as f64).sqrt()
            })
            .sum();
        let held = half_widths.iter().zip(prior).map(|(now, prior)| (now / prior).ln());
        let held: f64 = held.map(|off| 0.5 * (off / PRIOR_SPREAD).powi(2)).sum();
        if weights > 0.0 { count * unlikely / weights + held } else { held }
    };
    let mut best = (cost(prior), prior);
    let mut step = FIRST_STEP;
    for _ in 0..ROUNDS {
        let mut moved = true;
        while moved {
            moved = false;
            for at in 0..prior.len() {
                for change in [1.0 + step, 1.0 / (1.0 + step)] {
                    let mut tried = best.1;
                    tried[at] *= change;
                    let cost = cost(tried);
                    if cost < best.0 - 1e-6 {
                        best = (cost, tried);
                        moved = true;
                    }
                }
            }
        }
        step /= 2.0;
    }
    Causes::from_array(best.1)
}

/// What is left of a source's errors, in the order of its groups, where each group is calibrated by its
/// first run.
pub(super) fn calibrated(rows: &[Residual]) -> Vec<Residual> {
    let groups = rows.chunk_by(|a, b| a.group == b.group);
    let after = |group: &[Residual]| {
        let (first, others) = group.split_first()?;
        let error = |row: &Residual| row.error - first.error;
        Some(others.iter().map(|row| Residual { error: error(row), ..row.clone() }).collect())
    };
    groups.filter_map(after).flat_map(|rows: Vec<Residual>| rows).collect()
}

/// Minus the logarithm of an error's likelihood.
fn surprise(row: &Residual, each: &Causes) -> f64 {
    let scale = row.causes.spread(each).ln_1p() / T90;
    let off = row.error / scale;
    scale.ln() + 0.5 * (FREEDOM + 1.0) * (off * off / FREEDOM).ln_1p()
}

/// In words.
pub(super) fn note(each: &Causes) -> String {
    let of = |cause: &Cause| format!("{} {:.3}", cause.as_str(), each[*cause]);
    let all: Vec<String> = Cause::ALL.iter().map(of).collect();
    format!(
        "half-widths of 80 % intervals by cause, from the errors of the other sources: {}",
        all.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Errors spread evenly over the quantiles of a normal distribution.
    fn source(share: f64, half_width: f64, count: usize) -> Vec<Residual> {
        let mut causes = Causes::default();
        causes[Cause::Form] = 1.0;
        causes[Cause::ExpertComm] = share;
        let quantile = |at: usize| {
            let p = (at as f64 + 0.5) / count as f64;
            // Tukey's lambda stands in for the normal quantile.
            (p.powf(0.135) - (1.0 - p).powf(0.135)) / 0.1975
        };
        let error = |at| quantile(at) * half_width / foretrain_core::estimate::Z80;
        let group = String::new();
        (0..count).map(|at| Residual { group: group.clone(), causes, error: error(at) }).collect()
    }

    #[test]
    fn calibration_takes_out_what_a_group_has_in_common() {
        let row = |group: &str, error| Residual {
            group: group.into(),
            error,
            ..source(0.0, 0.1, 1).remove(0)
        };
        let rows = [row("a", 0.5), row("a", 0.6), row("b", -0.1), row("b", -0.4), row("c", 9.0)];
        let left: Vec<f64> = calibrated(&rows).iter().map(|row| row.error).collect();
        assert_eq!(left.len(), 2);
        assert!((left[0] - 0.1).abs() < 1e-12 && (left[1] + 0.3).abs() < 1e-12, "{left:?}");
    }

    #[test]
    fn half_widths_follow_the_errors_of_those_who_have_the_cause() {
        let plain = source(0.0, 0.05, 200);
        let apart = source(0.5, 0.30, 200);
        let rows = [&plain[..], &apart, &plain, &apart, &plain, &apart];
        let each = fit(rows.into_iter());
        assert!((0.04..0.07).contains(&each[Cause::Form]), "{each:?}");
        assert!((0.45..0.75).contains(&each[Cause::ExpertComm]), "{each:?}");
        // Nobody has this one.
        assert!((each[Cause::Experts] - 0.30).abs() < 1e-3, "{each:?}");
    }

    #[test]
    fn a_source_that_is_far_off_as_a_whole_moves_nothing() {
        let plain = source(0.0, 0.05, 50);
        let mut off = plain.clone();
        off.iter_mut().for_each(|row| row.error += 0.8);
        assert_eq!(fit([&plain[..], &off].into_iter()), fit([&plain[..]].into_iter()));
    }

    #[test]
    fn without_runs_the_prior_is_left() {
        assert_eq!(fit(std::iter::empty()).to_array(), PRIOR.map(|(_, half_width)| half_width));
    }
}
