//! Fitting the collective model to measurements.
//!
//! ```text
//! observations ──fit──▶ constants ──ratios──▶ sweeps ──findings──▶ what is odd ──(without it)──▶ fit again
//! ```
//!
//! The result is a [`Calibration`] that a cluster file carries, and a [`Report`] for people.

mod findings;
mod fit;
mod linear;
mod report;
mod sweeps;
#[cfg(test)]
mod tests;

use foretrain_core::{InputError, Nanos, Result};
use foretrain_graph::CollectiveKind;
use foretrain_hardware::collectives::{Calibration, Choice, Constant, Constants, Prior};

use crate::collective::{CollectiveCall, Fabric, Known, Library, Pick, bus_factor, candidates_of};
use crate::nccl_tuner::{TunerTable, Version};

pub use findings::Finding;
pub use report::{Fitted, Report, Residual, Trust};
use sweeps::group;

/// One measured time.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// What ran.
    pub call: CollectiveCall,
    /// On what; its own calibration, if any, is not used.
    pub fabric: Fabric,
    pub(crate) log_ns: f64,
    /// Processor time that the call took of each rank, if that was measured.
    pub(crate) processor: Option<Nanos>,
}

impl Observation {
    /// `None` for a time of zero or less, one rank, or an operation without data.
    pub fn new(call: CollectiveCall, fabric: Fabric, time: Nanos) -> Option<Self> {
        let usable = time > Nanos::ZERO
            && fabric.ranks > 1
            && !matches!(call.kind, CollectiveKind::Unknown | CollectiveKind::Barrier);
        let fabric = Fabric { calibrated: None, ..fabric };
        usable.then(|| Self { call, fabric, log_ns: (time.nanos() as f64).ln(), processor: None })
    }

    /// With the processor time that the call took of each rank. It says nothing if it is not above
    /// zero, or if devices do the work.
    #[must_use]
    pub fn with_processor(self, time: Option<Nanos>) -> Self {
        let works = !self.fabric.library.is_nccl_like();
        Self { processor: time.filter(|time| works && *time > Nanos::ZERO), ..self }
    }

    /// Whether the processor time of the call is known.
    pub fn tells_processor(&self) -> bool {
        self.processor.is_some()
    }

    /// The measured time.
    pub fn time(&self) -> Nanos {
        Nanos::from_nanos_f64(self.log_ns.exp())
    }

    fn bus_gb_per_sec(&self) -> f64 {
        self.call.bytes.as_f64() / self.log_ns.exp() * bus_factor(self.call.kind, self.fabric.ranks)
    }
}

/// Gain of the objective per observation on several nodes for which another version's choice is
/// believed.
const TABLE_GAIN: f64 = 0.02;
/// For which NCCL is not believed to choose by its cost model at all.
const FASTEST_GAIN: f64 = 0.5;

/// Fits constants to the observations and finds what does not belong to the trend.
///
/// `logs` names them, for people.
///
/// # Errors
/// Without any observation.
pub fn calibrate(observations: &[Observation], logs: Vec<String>) -> Result<(Calibration, Report)> {
    calibrate_from(None, observations, logs)
}

/// As [`calibrate`], starting from `prior` instead of the constants of the interconnect's kind; the
/// calibration then states every constant.
///
/// # Errors
/// As [`calibrate`].
pub fn calibrate_from(
    prior: Option<&'static Prior>,
    observations: &[Observation],
    logs: Vec<String>,
) -> Result<(Calibration, Report)> {
    let Some(first) = observations.first() else {
        return Err(InputError::new(
            "nothing to calibrate from: no row with a time on several ranks",
        )
        .hint("give logs of nccl-tests or rccl-tests that ran on at least two ranks"));
    };
    let mut groups = group(observations);
    // Of a sweep in fine steps a few rows per doubling of size tell as much as all.
    let mut standing = vec![0.0; observations.len()];
    for row in groups.iter().flat_map(sweeps::Group::representatives) {
        standing[row] = 1.0;
    }
    let mut weights = standing.clone();
    let (mut fitted, pick) = fit_all(observations, &weights, Start { first, prior });
    let mut findings = Vec::new();
    // What is odd is odd against a fit that it may have bent, so look again without it.
    for _ in 0..2 {
        for group in &mut groups {
            group.compare(observations, &fitted.values, pick);
        }
        findings = findings::find(&groups, observations);
        let before = weights.clone();
        weights.copy_from_slice(&standing);
        for finding in &findings {
            for &row in finding.excluded() {
                weights[row] = 0.0;
            }
        }
        if weights == before {
            break;
        }
        fitted = fit_with(observations, &weights, Start { first, prior }, pick);
    }
    for group in &mut groups {
        group.compare(observations, &fitted.values, pick);
    }
    let kept = |row: usize| weights[row] > 0.0;
    let used = prior.is_none().then(|| touched(observations, &fitted.values, pick));
    let is_stated = |constant: Constant| used.is_none_or(|used| used[constant as usize]);
    let stated = |values: &Constants| values.iter().filter(|(c, _)| is_stated(*c)).collect();
    let noise = sweeps::noise(&groups, &kept);
    let is_odd = |group: &sweeps::Group| findings.iter().any(|finding| finding.is_odd(group));
    let measured = groups.iter().filter_map(|group| group.sweep(is_odd(group), &kept)).collect();
    let calibration = Calibration {
        logs,
        choice: pick.choice,
        nccl: pick.nccl.map(|Version(major, minor)| (major, minor)),
        noise,
        constants: stated(&fitted.values),
        spreads: stated(&fitted.spreads),
        measured,
        processors: groups.iter().filter_map(|group| group.processors(observations)).collect(),
    };
    let prior = prior.unwrap_or_else(|| first.fabric.prior_with(pick.nccl));
    let report = Report::new(&groups, observations, &calibration, prior, findings, &kept);
    Ok((calibration, report))
}

/// Constants that fit measurements of several machines of one kind: the prior for the next.
///
/// All observations share the constants; each has its own fabric. `start` and its spreads are the
/// prior before that.
pub fn fit_constants(
    observations: &[Observation],
    start: &Constants,
    spreads: &Constants,
) -> (Constants, Constants) {
    let weighted: Vec<(&Observation, f64)> = observations.iter().map(|o| (o, 1.0)).collect();
    let fit = fit::fit(&weighted, start, spreads, Pick::default(), fit::Machines::Several);
    (fit.values, fit.spreads)
}

/// Where a fit starts.
#[derive(Clone, Copy)]
struct Start<'a> {
    /// Whose fabric's kind has the prior.
    first: &'a Observation,
    /// Unless it is given.
    prior: Option<&'static Prior>,
}

fn fit_with(
    observations: &[Observation],
    weights: &[f64],
    start: Start<'_>,
    pick: Pick,
) -> fit::Fit {
    let used = observations.iter().zip(weights.iter().copied()).filter(|(_, weight)| *weight > 0.0);
    let prior = start.prior.unwrap_or_else(|| start.first.fabric.prior_with(pick.nccl));
    fit::fit(&used.collect::<Vec<_>>(), &prior.values, &prior.spreads, pick, fit::Machines::One)
}

/// The way of picking that the measurements speak for.
///
/// NCCL's cost model differs from version to version, and logs rarely name theirs: the table of
/// the fabric's version is taken unless another one fits clearly better, and the fastest way only
/// where no table fits.
fn fit_all(observations: &[Observation], weights: &[f64], start: Start<'_>) -> (fit::Fit, Pick) {
    let own = Pick::default();
    let mut best = (fit_with(observations, weights, start, own), own);
    let several = observations.iter().filter(|o| o.fabric.nodes > 1).count();
    let Library::Nccl(version) = start.first.fabric.library else { return best };
    let known = TunerTable::for_version(version).since;
    let others = TunerTable::all().iter().rev().map(|table| table.since);
    let tables = others.filter(|since| *since != known);
    let tables = tables.map(|nccl| Pick { choice: Choice::Tuner, nccl: Some(nccl) });
    let fastest = Pick { choice: Choice::Fastest, nccl: None };
    // On one node the fastest way is taken anyway, and versions differ in their constants only.
    let fastest = (several > 0).then_some(fastest);
    for pick in tables.chain(fastest) {
        let fit = fit_with(observations, weights, start, pick);
        let needed = match pick.choice {
            Choice::Fastest => FASTEST_GAIN * several as f64,
            Choice::Tuner => TABLE_GAIN * observations.len() as f64,
        };
        if best.0.objective - fit.objective > needed {
            best = (fit, pick);
        }
    }
    best
}

/// Which constants some observation rests on.
fn touched(
    observations: &[Observation],
    values: &Constants,
    pick: Pick,
) -> [bool; Constant::COUNT] {
    let mut used = [false; Constant::COUNT];
    for Observation { call, fabric, .. } in observations {
        for candidate in candidates_of(call, fabric, Known { values, pick }).iter() {
            for (constant, _) in candidate.sensitivities() {
                used[constant as usize] = true;
            }
        }
    }
    used
}
