//! The JSON of `fleet characterise`.

use foretrain_core::Ledger;
use foretrain_fleet::jobs::{Class, Status};
use foretrain_fleet::pai::characterise::{
    ABOVE, Characterisation, Method, Profile, QUANTILES, Weighted,
};
use foretrain_fleet::pai::distribution::{self, Distributions, Group, Spread};
use foretrain_fleet::pai::{Case, Overlap, Resource, Step};
use schemars::JsonSchema;
use serde::Serialize;

use super::steps::{FleetMethodReport, FleetRowsReport, method, rows};
use crate::json::common::{LedgerReport, finite};

/// What jobs of a fleet spend their steps on, and how long they run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetCharacteriseReport {
    /// `foretrain/fleet-characterise/1`.
    pub schema: String,
    /// The table, or the models in its place.
    pub of: String,
    /// How steps were timed.
    pub method: FleetMethodReport,
    /// Rows the shares rest on.
    pub rows: FleetRowsReport,
    /// All jobs; `null` if none could be timed.
    pub all: Option<FleetProfileReport>,
    /// By class.
    pub classes: Vec<FleetProfileReport>,
    /// The models of a preset one by one, all of their features recalled.
    pub cases: Vec<FleetCaseReport>,
    /// What can be said without features of steps.
    pub distributions: FleetDistributionsReport,
    /// What was met.
    pub ledger: LedgerReport,
}

/// What the jobs of a class spend their steps on.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetProfileReport {
    /// The class, or `all`.
    pub class: String,
    /// Jobs.
    pub jobs: u64,
    /// Their replicas.
    pub cnodes: u64,
    /// Every job counted once.
    pub by_job: FleetWeightedReport,
    /// Every replica counted once.
    pub by_cnode: FleetWeightedReport,
    /// The resource that an average job spends most on.
    pub bottleneck: String,
    /// Jobs whose longest part is on a resource.
    pub longest_on: Vec<FleetCountReport>,
    /// Mean speed-up if input, computation and traffic hid each other wholly.
    pub ideal_overlap_speed_up: f64,
}

/// Mean shares under one weighting; parts of 1.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetWeightedReport {
    /// Input to the device.
    pub input: f64,
    /// Compute-bound operations.
    pub compute_bound: f64,
    /// Memory-bound operations.
    pub memory_bound: f64,
    /// Weight traffic.
    pub traffic: f64,
    /// By resource.
    pub resources: Vec<FleetResourceShareReport>,
    /// Part of the jobs with at least this share of communication.
    pub communication_at_least: Vec<FleetPointReport>,
    /// Share of communication below which a part of the jobs lies, to a thousandth.
    pub communication_quantiles: Vec<FleetPointReport>,
    /// Part of the jobs with at least half of their step in input.
    pub input_at_least_half: f64,
}

/// A resource and a share.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetResourceShareReport {
    /// The resource.
    pub resource: String,
    /// The share.
    pub share: f64,
}

/// A resource and a number of jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FleetCountReport {
    /// The resource.
    pub resource: String,
    /// Jobs.
    pub jobs: u64,
}

/// A point of a distribution.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetPointReport {
    /// Where: a share, or a part of the jobs.
    pub at: f64,
    /// The value there.
    pub value: f64,
}

/// A model of a preset.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetCaseReport {
    /// Its name.
    pub model: String,
    /// Its domain.
    pub domain: String,
    /// Its class.
    pub class: String,
    /// Always `recalled`: the figures could not be read in the paper.
    pub source: String,
    /// Input.
    pub input_ns: i64,
    /// Compute-bound operations.
    pub compute_bound_ns: i64,
    /// Memory-bound operations.
    pub memory_bound_ns: i64,
    /// Weight traffic.
    pub traffic_ns: i64,
    /// All, one after the other.
    pub step_ns: i64,
    /// The longest of input, computation and traffic.
    pub ideal_overlap_ns: i64,
    /// The step with the same features in every class.
    pub step_by_class: Vec<FleetClassTimeReport>,
}

/// A class and a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FleetClassTimeReport {
    /// The class.
    pub class: String,
    /// The step.
    pub step_ns: i64,
}

/// Distributions of a table of jobs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetDistributionsReport {
    /// Rows of the table.
    pub rows: u64,
    /// Rows with a time of submission.
    pub submitted: u64,
    /// Seconds that jobs ran.
    pub run_seconds: Option<FleetSpreadReport>,
    /// Seconds that jobs waited.
    pub wait_seconds: Option<FleetSpreadReport>,
    /// GPUs.
    pub gpus: Option<FleetSpreadReport>,
    /// GPU-hours.
    pub gpu_hours: Option<FleetSpreadReport>,
    /// By how jobs ended.
    pub by_status: Vec<FleetGroupReport>,
    /// Rows that do not say how.
    pub without_status: u64,
    /// By their GPUs.
    pub by_gpus: Vec<FleetGroupReport>,
}

/// The distribution of a quantity.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetSpreadReport {
    /// Rows that have it.
    pub rows: u64,
    /// Mean.
    pub mean: f64,
    /// Values below which a part of the rows lies, to a per cent.
    pub quantiles: Vec<FleetPointReport>,
    /// The most.
    pub most: f64,
    /// All added up.
    pub sum: f64,
}

/// A group of jobs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetGroupReport {
    /// What they have in common.
    pub group: String,
    /// Jobs.
    pub jobs: u64,
    /// Jobs whose GPUs and run time are known.
    pub timed_jobs: u64,
    /// Their GPU-hours; `null` if no job's are known.
    pub gpu_hours: Option<f64>,
}

impl FleetCharacteriseReport {
    /// The report of a characterisation; `cases` are the models of a preset.
    pub fn new(of: &str, answer: &Characterisation, cases: &[Case], ledger: &Ledger) -> Self {
        Self {
            schema: "foretrain/fleet-characterise/1".into(),
            of: of.into(),
            method: method(&answer.method),
            rows: rows(&answer.rows),
            all: answer.all.as_ref().map(profile),
            classes: answer.classes.iter().map(profile).collect(),
            cases: cases.iter().map(|case| of_case(case, &answer.method)).collect(),
            distributions: distributions(&answer.distributions),
            ledger: ledger.into(),
        }
    }
}

fn profile(profile: &Profile) -> FleetProfileReport {
    let counts = Resource::ALL.into_iter().zip(profile.bottlenecks);
    FleetProfileReport {
        class: profile.class.map_or("all", Class::name).into(),
        jobs: profile.jobs,
        cnodes: profile.cnodes,
        by_job: weighted(&profile.by_job),
        by_cnode: weighted(&profile.by_cnode),
        bottleneck: profile.bottleneck().name().into(),
        longest_on: counts
            .map(|(resource, jobs)| FleetCountReport { resource: resource.name().into(), jobs })
            .collect(),
        ideal_overlap_speed_up: finite(profile.ideal_overlap),
    }
}

fn weighted(weighted: &Weighted) -> FleetWeightedReport {
    let [input, compute_bound, memory_bound, traffic] = weighted.shares.map(finite);
    let resources = Resource::ALL.into_iter().zip(weighted.resources);
    FleetWeightedReport {
        input,
        compute_bound,
        memory_bound,
        traffic,
        resources: resources
            .map(|(resource, share)| FleetResourceShareReport {
                resource: resource.name().into(),
                share: finite(share),
            })
            .collect(),
        communication_at_least: points(&ABOVE, &weighted.above),
        communication_quantiles: points(&QUANTILES, &weighted.communication),
        input_at_least_half: finite(weighted.input_above_half),
    }
}

fn points(at: &[f64], values: &[f64]) -> Vec<FleetPointReport> {
    let points = at.iter().zip(values);
    points.map(|(at, value)| FleetPointReport { at: *at, value: finite(*value) }).collect()
}

fn of_case(case: &Case, method: &Method) -> FleetCaseReport {
    let step = Step::of(&case.work, &method.hardware);
    let by_class = Class::ALL.map(|class| {
        let step = Step::of(&case.in_class(class), &method.hardware);
        FleetClassTimeReport {
            class: class.name().into(),
            step_ns: step.total(Overlap::None).nanos(),
        }
    });
    FleetCaseReport {
        model: case.name.into(),
        domain: case.domain.into(),
        class: case.work.class.name().into(),
        source: "recalled".into(),
        input_ns: step.input.nanos(),
        compute_bound_ns: step.flops.nanos(),
        memory_bound_ns: step.memory.nanos(),
        traffic_ns: step.traffic().nanos(),
        step_ns: step.total(Overlap::None).nanos(),
        ideal_overlap_ns: step.total(Overlap::Ideal).nanos(),
        step_by_class: by_class.into(),
    }
}

fn distributions(found: &Distributions) -> FleetDistributionsReport {
    let by_status = found.by_status();
    let statuses = by_status.iter().map(|(status, of)| group(Status::name(*status), of));
    FleetDistributionsReport {
        rows: found.rows(),
        submitted: found.submitted(),
        run_seconds: found.run_seconds().as_ref().map(spread),
        wait_seconds: found.wait_seconds().as_ref().map(spread),
        gpus: found.gpus().as_ref().map(spread),
        gpu_hours: found.gpu_hours().as_ref().map(spread),
        by_status: statuses.collect(),
        without_status: found.without_status(),
        by_gpus: found.by_gpus().iter().map(|(name, of)| group(name, of)).collect(),
    }
}

fn group(name: &str, of: &Group) -> FleetGroupReport {
    let gpu_hours = (of.timed > 0).then(|| finite(of.gpu_seconds / 3600.0));
    FleetGroupReport { group: name.into(), jobs: of.jobs, timed_jobs: of.timed, gpu_hours }
}

fn spread(spread: &Spread) -> FleetSpreadReport {
    FleetSpreadReport {
        rows: spread.rows,
        mean: finite(spread.mean),
        quantiles: points(&distribution::QUANTILES, &spread.quantiles),
        most: finite(spread.most),
        sum: finite(spread.sum),
    }
}
