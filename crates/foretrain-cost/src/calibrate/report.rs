//! What a calibration found, for people.

use foretrain_core::{Bandwidth, Bytes, Nanos};
use foretrain_graph::CollectiveKind;
use foretrain_hardware::collectives::{Calibration, Constant, Prior};
use serde::Serialize;

use super::Observation;
use super::findings::Finding;
use super::sweeps::Group;
use crate::collective::bus_factor;

/// A measured row beside the fitted model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Residual {
    /// Which collective.
    pub kind: CollectiveKind,
    /// Ranks.
    pub ranks: u32,
    /// Nodes.
    pub nodes: u32,
    /// Size.
    pub bytes: Bytes,
    /// What was measured.
    pub measured: Nanos,
    /// What the fitted constants give.
    pub modelled: Nanos,
    /// Part of the fit.
    pub kept: bool,
}

impl Residual {
    /// What was measured, as bus bandwidth.
    pub fn bus_bandwidth(&self) -> Bandwidth {
        let rate = Bandwidth::of(self.bytes, self.measured).unwrap_or(Bandwidth::ZERO);
        rate * bus_factor(self.kind, self.ranks)
    }
}

/// A constant before and after. A spread is the standard deviation of the value's logarithm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fitted {
    /// Which.
    pub constant: Constant,
    /// What machines of the kind have.
    pub prior: f64,
    /// How far they lie apart.
    pub prior_spread: f64,
    /// What the measurements say.
    pub value: f64,
    /// How sure they are.
    pub spread: f64,
}

impl Fitted {
    /// Whether the measurements tell of it; else it keeps its prior.
    pub fn is_told(&self) -> bool {
        /// Share of the prior's spread that is left, at most.
        const SURER: f64 = 0.8;
        self.spread < SURER * self.prior_spread
    }
}

/// Where a calibration may be trusted for one collective, on one node or on several.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trust {
    /// Which collective.
    pub kind: CollectiveKind,
    /// On several nodes.
    pub many_nodes: bool,
    /// Fewest and most ranks measured.
    pub ranks: (u32, u32),
    /// Smallest and largest size measured.
    pub sizes: (Bytes, Bytes),
    /// Most ranks to which the trend was seen to carry: four times the measured with several
    /// numbers of ranks, twice with one. Beyond, the interval goes on widening.
    pub ranks_until: u32,
}

/// What a calibration found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Every row, by collective, ranks and size.
    pub residuals: Vec<Residual>,
    /// Constants that some row rests on, in the order of the files.
    #[serde(skip)]
    pub constants: Vec<Fitted>,
    /// What is odd.
    pub findings: Vec<Finding>,
    /// Where to trust it.
    pub trust: Vec<Trust>,
    /// Typical distance of the kept rows from the fitted constants, relative.
    pub typical_residual: f64,
    /// Relative scatter about the calibrated model.
    pub noise: f64,
}

impl Report {
    pub(super) fn new(
        groups: &[Group],
        observations: &[Observation],
        calibration: &Calibration,
        prior: &Prior,
        findings: Vec<Finding>,
        kept: &dyn Fn(usize) -> bool,
    ) -> Self {
        let residuals: Vec<Residual> = groups
            .iter()
            .flat_map(|group| {
                group.rows.iter().zip(&group.logs).map(|(&row, log)| {
                    let measured = observations[row].time();
                    Residual {
                        kind: group.kind,
                        ranks: group.ranks,
                        nodes: group.nodes,
                        bytes: observations[row].call.bytes,
                        measured,
                        modelled: measured.scale((-log).exp()),
                        kept: kept(row),
                    }
                })
            })
            .collect();
        let typical: Vec<f64> = groups
            .iter()
            .flat_map(|group| group.rows.iter().zip(&group.logs))
            .filter(|(row, _)| kept(**row))
            .map(|(_, log)| log.abs())
            .collect();
        let constants = calibration.constants.iter().map(|(&constant, &value)| Fitted {
            constant,
            prior: prior.values[constant],
            prior_spread: prior.spreads[constant],
            value,
            spread: calibration.spreads.get(&constant).copied().unwrap_or_default(),
        });
        Self {
            residuals,
            constants: constants.collect(),
            findings,
            trust: trust(groups, kept),
            typical_residual: foretrain_core::stats::median(&typical).unwrap_or(0.0),
            noise: calibration.noise,
        }
    }
}

fn trust(groups: &[Group], kept: &dyn Fn(usize) -> bool) -> Vec<Trust> {
    let used: Vec<&Group> =
        groups.iter().filter(|group| group.rows.iter().any(|row| kept(*row))).collect();
    let same = |a: &&Group, b: &&Group| a.kind == b.kind && (a.nodes > 1) == (b.nodes > 1);
    let trust = used.chunk_by(same).map(|alike| {
        let sizes = || alike.iter().flat_map(|group| group.sizes.iter().copied());
        let ranks = || alike.iter().map(|group| group.ranks);
        let most = ranks().max().unwrap_or(0);
        let factor = if alike.len() > 1 { 4 } else { 2 };
        Trust {
            kind: alike[0].kind,
            many_nodes: alike[0].nodes > 1,
            ranks: (ranks().min().unwrap_or(0), most),
            sizes: (sizes().min().unwrap_or_default(), sizes().max().unwrap_or_default()),
            ranks_until: most.saturating_mul(factor),
        }
    });
    trust.collect()
}
