//! The JSON of `fleet project` and `fleet sweep`.

use foretrain_core::Ledger;
use foretrain_fleet::pai::project::{Gains, Infeasible, Projection, Projections};
use foretrain_fleet::pai::sweep::{ClassEffects, Sweep};
use foretrain_fleet::pai::{Overlap, Resource};
use schemars::JsonSchema;
use serde::Serialize;

use super::characterise::FleetPointReport;
use super::steps::{FleetMethodReport, FleetRowsReport, method, rows};
use crate::json::common::{CoverageReport, LedgerReport, finite};

/// Jobs in other classes than their own.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetProjectReport {
    /// `foretrain/fleet-project/1`.
    pub schema: String,
    /// The table, or the models in its place.
    pub of: String,
    /// How steps were timed.
    pub method: FleetMethodReport,
    /// Whether parts of a step were taken to hide each other.
    pub overlap: bool,
    /// Rows it rests on.
    pub rows: FleetRowsReport,
    /// From class to class.
    pub projections: Vec<FleetProjectionReport>,
    /// What was met.
    pub ledger: LedgerReport,
}

/// Jobs of one class in another.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetProjectionReport {
    /// Whose jobs: a class, or a model of a preset.
    pub jobs_of: String,
    /// Their class.
    pub from: String,
    /// The other.
    pub to: String,
    /// Jobs that can run there.
    pub feasible: CoverageReport,
    /// Why others cannot.
    pub infeasible: Vec<FleetReasonReport>,
    /// Of one replica: old step over new step.
    pub single: FleetGainsReport,
    /// Of whole jobs: by the samples of all replicas.
    pub overall: FleetGainsReport,
}

/// A reason and how many jobs have it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FleetReasonReport {
    /// Why.
    pub reason: String,
    /// Jobs.
    pub jobs: u64,
}

/// Speed-ups of the jobs that can run there.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetGainsReport {
    /// Jobs that get faster, of all of the class.
    pub faster: CoverageReport,
    /// Mean speed-up; `null` if no job can run there.
    pub mean: Option<f64>,
    /// Median, to a per cent.
    pub median: Option<f64>,
    /// A tenth is below.
    pub low: Option<f64>,
    /// A tenth is above.
    pub high: Option<f64>,
}

/// What changes of hardware or software buy.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetSweepReport {
    /// `foretrain/fleet-sweep/1`.
    pub schema: String,
    /// The table, or the models in its place.
    pub of: String,
    /// How steps were timed before the change.
    pub method: FleetMethodReport,
    /// Whether parts of a step were taken to hide each other.
    pub overlap: bool,
    /// Whether the changes are the recalled grid of the study.
    pub recalled_grid: bool,
    /// Rows it rests on.
    pub rows: FleetRowsReport,
    /// The changes.
    pub changes: Vec<FleetChangeReport>,
    /// Effects on all jobs, on each class, on each model of a preset.
    pub effects: Vec<FleetEffectsReport>,
    /// What was met.
    pub ledger: LedgerReport,
}

/// A change.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetChangeReport {
    /// For people.
    pub name: String,
    /// How many times as fast resources are, those that change.
    pub times: Vec<FleetTimesReport>,
}

/// A resource and how many times as fast it is.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetTimesReport {
    /// The resource.
    pub resource: String,
    /// Times.
    pub times: f64,
}

/// Effects of all changes on some jobs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetEffectsReport {
    /// A class, a model, or `all`.
    pub jobs_of: String,
    /// Jobs.
    pub jobs: u64,
    /// Speed-ups in the order of the changes.
    pub speed_ups: Vec<FleetSpeedUpReport>,
    /// Mean speed-up if one resource alone were twice as fast.
    pub doubled: Vec<FleetTimesReport>,
    /// The resource that is worth most to double.
    pub most_sensitive: String,
}

/// Speed-ups by one change.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetSpeedUpReport {
    /// Mean over jobs.
    pub mean: f64,
    /// Median, and where a tenth is below and above, each to a per cent.
    pub quantiles: Vec<FleetPointReport>,
}

impl FleetProjectReport {
    /// The report of projections.
    pub fn new(of: &str, answer: &Projections, ledger: &Ledger) -> Self {
        Self {
            schema: "foretrain/fleet-project/1".into(),
            of: of.into(),
            method: method(&answer.method),
            overlap: answer.overlap == Overlap::Ideal,
            rows: rows(&answer.rows),
            projections: answer.projections.iter().map(projection).collect(),
            ledger: ledger.into(),
        }
    }
}

fn projection(projection: &Projection) -> FleetProjectionReport {
    let reasons = Infeasible::ALL.into_iter().zip(projection.infeasible);
    let covered = |used| CoverageReport { what: "jobs".into(), used, total: projection.jobs.total };
    let gains = |gains: &Gains| {
        let some = |value: f64| (projection.jobs.used > 0).then(|| finite(value));
        FleetGainsReport {
            faster: covered(gains.jobs),
            mean: some(gains.mean),
            median: some(gains.median),
            low: some(gains.tenths[0]),
            high: some(gains.tenths[1]),
        }
    };
    FleetProjectionReport {
        jobs_of: projection.of.clone(),
        from: projection.from.name().into(),
        to: projection.to.name().into(),
        feasible: covered(projection.jobs.used),
        infeasible: reasons
            .filter(|(_, jobs)| *jobs > 0)
            .map(|(reason, jobs)| FleetReasonReport { reason: reason.name().into(), jobs })
            .collect(),
        single: gains(&projection.single),
        overall: gains(&projection.overall),
    }
}

impl FleetSweepReport {
    /// The report of a sweep; `recalled_grid` if its changes are those of the study.
    pub fn new(of: &str, answer: &Sweep, recalled_grid: bool, ledger: &Ledger) -> Self {
        let changes = answer.changes.iter().map(|change| FleetChangeReport {
            name: change.name.clone(),
            times: times(change.times).into_iter().filter(|one| one.times != 1.0).collect(),
        });
        Self {
            schema: "foretrain/fleet-sweep/1".into(),
            of: of.into(),
            method: method(&answer.method),
            overlap: answer.overlap == Overlap::Ideal,
            recalled_grid,
            rows: rows(&answer.rows),
            changes: changes.collect(),
            effects: answer.classes.iter().map(effects).collect(),
            ledger: ledger.into(),
        }
    }
}

fn times(all: [f64; 5]) -> Vec<FleetTimesReport> {
    let resources = Resource::ALL.into_iter().zip(all);
    resources
        .map(|(resource, times)| FleetTimesReport {
            resource: resource.name().into(),
            times: finite(times),
        })
        .collect()
}

fn effects(effects: &ClassEffects) -> FleetEffectsReport {
    let speed_ups = effects.effects.iter().map(|effect| {
        let quantiles = [(0.1, effect.tenths[0]), (0.5, effect.median), (0.9, effect.tenths[1])];
        let point = |(at, value)| FleetPointReport { at, value: finite(value) };
        FleetSpeedUpReport { mean: finite(effect.mean), quantiles: quantiles.map(point).into() }
    });
    FleetEffectsReport {
        jobs_of: effects.of.clone(),
        jobs: effects.effects.first().map_or(0, |effect| effect.jobs),
        speed_ups: speed_ups.collect(),
        doubled: times(effects.doubled),
        most_sensitive: effects.most_sensitive().name().into(),
    }
}
