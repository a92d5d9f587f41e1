//! Maximum a-posteriori constants from measured times.
//!
//! The logarithm of a time is fitted, so that every size counts alike. A constant may leave its
//! prior as far as the prior's spread allows for what the measurements gain by it; measurements
//! far from the model lose weight (Student's t), so an odd one does not bend the trend.
//!
//! Where several numbers of ranks were measured at a size, what the model has wrong at that size
//! is much the same for all of them. So those rows share an unknown offset, and what ranks cost is
//! learned from the differences between them, as it must be to hold for more ranks.

use foretrain_hardware::collectives::{Constant, Constants};

use super::Observation;
use super::linear::Cholesky;
use crate::collective::{Candidate, Known, Pick, candidates_of};

/// Relative error of the model where it is right, beside the noise of measurements.
const MISFIT: f64 = 0.06;
/// Standard deviation of the offset that rows of one size share.
const SHARED: f64 = 0.1;
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
    machines: Machines,
) -> Fit {
    let problem = Problem { bins: bins(observations, machines), start, spreads, pick };
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

/// Whose rows are fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Machines {
    /// Those of one machine, which share what the model has wrong at a size.
    One,
    /// Those of several, which do not.
    Several,
}

struct Problem<'a> {
    bins: Vec<Bin<'a>>,
    start: &'a Constants,
    spreads: &'a Constants,
    pick: Pick,
}

/// Rows of one collective and size, on one node or on several.
struct Bin<'a> {
    rows: Vec<(&'a Observation, f64)>,
    /// They are of several numbers of ranks and share an offset.
    shares: bool,
}

/// Rows by size, in an order that does not depend on theirs.
fn bins<'a>(observations: &[(&'a Observation, f64)], machines: Machines) -> Vec<Bin<'a>> {
    let key = |(row, _): &(&Observation, f64)| {
        (row.call.kind.as_str(), row.fabric.nodes > 1, row.call.bytes)
    };
    let mut rows = observations.to_vec();
    rows.sort_by_key(key);
    let alike = rows.chunk_by(|a, b| key(a) == key(b));
    let bin = |rows: &[(&'a Observation, f64)]| {
        let first = rows[0].0.fabric.ranks;
        let shares =
            machines == Machines::One && rows.iter().any(|(row, _)| row.fabric.ranks != first);
        Bin { rows: rows.to_vec(), shares }
    };
    alike.map(bin).collect()
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
        let mut rows: Vec<Seen> = Vec::new();
        for bin in &self.bins {
            rows.clear();
            for &(observation, prior_weight) in &bin.rows {
                let known = Known { values: &values, pick: self.pick };
                let mut slopes = Vec::with_capacity(16);
                if let Some(log) = soft_time(observation, known, sharpness, &mut slopes) {
                    let off = log - observation.log_ns;
                    rows.push(Seen { off, prior_weight, weight: 0.0, slopes });
                }
            }
            let shared = if bin.shares { shared_offset(&rows) } else { 0.0 };
            if bin.shares {
                objective += 0.5 * (shared / SHARED).powi(2);
            }
            // Rows that share an offset tell only how they differ: what they have in common is
            // taken out of gradient and Hessian (the offset is eliminated).
            let (mut common, mut weights, mut pull) = ([0.0; N], 0.0, 0.0);
            for row in &mut rows {
                let off = (row.off - shared) / MISFIT;
                objective +=
                    row.prior_weight * 0.5 * (TAILS + 1.0) * (1.0 + off * off / TAILS).ln();
                row.weight = row.prior_weight * student(off) / (MISFIT * MISFIT);
                weights += row.weight;
                pull += row.weight * row.off;
                for &(a, slope) in &row.slopes {
                    gradient[a] += row.weight * row.off * slope;
                    common[a] += row.weight * slope;
                    for &(b, other) in &row.slopes {
                        hessian[a * N + b] += row.weight * slope * other;
                    }
                }
            }
            if bin.shares {
                let total = weights + SHARED.powi(-2);
                for a in (0..N).filter(|&a| common[a] != 0.0) {
                    gradient[a] -= common[a] * pull / total;
                    for b in 0..N {
                        hessian[a * N + b] -= common[a] * common[b] / total;
                    }
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

/// A row at the point: how far the model is off, and its slopes.
struct Seen {
    off: f64,
    prior_weight: f64,
    weight: f64,
    slopes: Vec<(usize, f64)>,
}

/// Weight of an error of so many standard deviations.
fn student(off: f64) -> f64 {
    (TAILS + 1.0) / (TAILS + off * off)
}

/// The offset that explains most of what rows of one size have in common.
fn shared_offset(rows: &[Seen]) -> f64 {
    let mut shared = 0.0;
    for _ in 0..4 {
        let (mut sum, mut weights) = (0.0, SHARED.powi(-2));
        for row in rows {
            let off = (row.off - shared) / MISFIT;
            let weight = row.prior_weight * student(off) / (MISFIT * MISFIT);
            sum += weight * row.off;
            weights += weight;
        }
        shared = sum / weights;
    }
    shared
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
