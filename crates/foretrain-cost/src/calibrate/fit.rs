//! Maximum a-posteriori constants from measured times.
//!
//! The logarithm of a time is fitted, so that every size counts alike. A constant may leave its
//! prior as far as the prior's spread allows for what the measurements gain by it; measurements
//! far from the model lose weight (Student's t), so an odd one does not bend the trend.

use foretrain_hardware::collectives::{Constant, Constants};

use super::Observation;
use super::linear::Cholesky;
use crate::collective::{Candidate, Known, Pick, candidates_of};

/// Relative error of the model where it is right, beside the noise of measurements.
const MISFIT: f64 = 0.06;
/// Degrees of freedom of the errors: heavy tails.
const TAILS: f64 = 4.0;
/// How sharply the fastest candidate is taken while fitting; a blunt start lets candidates that
/// are not yet the fastest learn.
const SHARPNESS: [f64; 2] = [16.0, 48.0];
/// Steps per sharpness at most.
const STEPS: usize = 25;
/// A gain of the objective below this ends a stage.
const ENOUGH: f64 = 1e-4;

/// Fitted constants.
pub(super) struct Fit {
    pub(super) values: Constants,
    /// Posterior standard deviation of each logarithm.
    pub(super) spreads: Constants,
    /// What was minimised.
    pub(super) objective: f64,
}

/// Fits `start` to the observations of weight above zero; `spreads` are its prior's.
pub(super) fn fit(
    observations: &[(&Observation, f64)],
    start: &Constants,
    spreads: &Constants,
    pick: Pick,
) -> Fit {
    let problem = Problem { observations, start, spreads, pick };
    let mut point = [0.0; Constant::COUNT];
    let mut damping = 1e-2;
    let mut state = problem.at(&point, SHARPNESS[0]);
    for sharpness in SHARPNESS {
        state = problem.at(&point, sharpness);
        for _ in 0..STEPS {
            let Some((next, reached)) = problem.step(&point, &state, sharpness, &mut damping)
            else {
                break;
            };
            let gain = state.objective - reached.objective;
            (point, state) = (next, reached);
            if gain < ENOUGH {
                break;
            }
        }
    }
    let variances = state.factor(0.0).map(|factor| factor.inverse_diagonal());
    let mut posterior = spreads.clone();
    for (at, constant) in Constant::ALL.into_iter().enumerate() {
        if let Some(variances) = &variances {
            posterior[constant] = variances[at].max(0.0).sqrt().min(spreads[constant]);
        }
    }
    Fit { values: problem.values(&point), spreads: posterior, objective: state.objective }
}

struct Problem<'a> {
    observations: &'a [(&'a Observation, f64)],
    start: &'a Constants,
    spreads: &'a Constants,
    pick: Pick,
}

/// The objective and its quadratic model at a point.
struct State {
    objective: f64,
    gradient: Vec<f64>,
    hessian: Vec<f64>,
}

impl State {
    fn factor(&self, damping: f64) -> Option<Cholesky> {
        let mut matrix = self.hessian.clone();
        for at in 0..Constant::COUNT {
            matrix[at * Constant::COUNT + at] *= 1.0 + damping;
        }
        Cholesky::of(&matrix, Constant::COUNT)
    }
}

impl Problem<'_> {
    /// Logarithms relative to the prior, as constants within their bounds.
    fn values(&self, point: &[f64; Constant::COUNT]) -> Constants {
        let mut values = self.start.clone();
        for (constant, shift) in Constant::ALL.into_iter().zip(point) {
            let (low, high) = constant.bounds();
            values[constant] = (self.start[constant] * shift.exp()).clamp(low, high);
        }
        values
    }

    fn at(&self, point: &[f64; Constant::COUNT], sharpness: f64) -> State {
        const N: usize = Constant::COUNT;
        let values = self.values(point);
        let (mut gradient, mut hessian) = (vec![0.0; N], vec![0.0; N * N]);
        let mut objective = 0.0;
        for (at, constant) in Constant::ALL.into_iter().enumerate() {
            let precision = self.spreads[constant].powi(-2);
            objective += 0.5 * precision * point[at] * point[at];
            gradient[at] = precision * point[at];
            hessian[at * N + at] = precision;
        }
        let mut row: Vec<(usize, f64)> = Vec::with_capacity(24);
        for &(observation, weight) in self.observations {
            let known = observation.fabric.known_with(&values, self.pick);
            row.clear();
            let Some(log) = soft_time(observation, known, sharpness, &mut row) else { continue };
            let off = (log - observation.log_ns) / MISFIT;
            objective += weight * 0.5 * (TAILS + 1.0) * (1.0 + off * off / TAILS).ln();
            let weight = weight * (TAILS + 1.0) / (TAILS + off * off) / MISFIT;
            for &(a, slope) in &row {
                gradient[a] += weight * off * slope;
                for &(b, other) in &row {
                    hessian[a * N + b] += weight / MISFIT * slope * other;
                }
            }
        }
        State { objective, gradient, hessian }
    }

    /// A damped Newton step that improves the objective; `None` when none does.
    fn step(
        &self,
        point: &[f64; Constant::COUNT],
        state: &State,
        sharpness: f64,
        damping: &mut f64,
    ) -> Option<([f64; Constant::COUNT], State)> {
        /// No constant changes by more than this factor's logarithm at once.
        const LONGEST: f64 = 0.7;
        for _ in 0..10 {
            if let Some(factor) = state.factor(*damping) {
                let step = factor.solve(&state.gradient);
                let longest = step.iter().fold(0.0f64, |most, part| most.max(part.abs()));
                let scale = (LONGEST / longest).min(1.0);
                let mut next = *point;
                for (place, part) in next.iter_mut().zip(&step) {
                    *place -= scale * part;
                }
                let reached = self.at(&next, sharpness);
                if reached.objective < state.objective {
                    *damping = (*damping / 4.0).max(1e-6);
                    return Some((next, reached));
                }
            }
            *damping *= 8.0;
        }
        None
    }
}

/// Logarithm of the time in ns, smooth in the constants, and its slopes. `None` where the fabric
/// gives no finite time.
fn soft_time(
    observation: &Observation,
    known: Known<'_>,
    sharpness: f64,
    slopes: &mut Vec<(usize, f64)>,
) -> Option<f64> {
    let candidates = candidates_of(&observation.call, &observation.fabric, known);
    let finite = || candidates.iter().filter(|c| c.total().is_finite() && c.total() > 0.0);
    let least = finite().map(Candidate::total).min_by(f64::total_cmp)?;
    let share = |total: f64| (-sharpness * (total / least).ln()).exp();
    let sum: f64 = finite().map(|c| share(c.total())).sum();
    for candidate in finite() {
        let part = share(candidate.total()) / sum;
        if part < 1e-4 {
            continue;
        }
        for (constant, slope) in candidate.sensitivities() {
            let at = constant as usize;
            match slopes.iter_mut().find(|(known, _)| *known == at) {
                Some((_, known)) => *known += part * slope,
                None => slopes.push((at, part * slope)),
            }
        }
    }
    Some(least.ln() - sum.ln() / sharpness)
}
