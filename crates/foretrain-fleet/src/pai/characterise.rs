//! What the steps of many jobs consist of.

use foretrain_core::diagnostics::Coverage;
use foretrain_core::{Ledger, Severity};

use super::distribution::Distributions;
use super::hardware::{Hardware, Resource};
use super::histogram::Shares;
use super::step::{Overlap, Step};
use super::work::{Refusal, Work};
use crate::jobs::{Class, Job, TrafficCounts};

/// What rows that come from a generator have in their column of sources.
pub const SYNTHETIC: &str = "synthetic";

/// How jobs are timed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Method {
    /// The machine.
    pub hardware: Hardware,
    /// What a count of traffic holds where the table does not say.
    pub traffic: TrafficCounts,
}

impl Method {
    /// As recalled of the study.
    pub const PAI_2019: Method =
        Method { hardware: Hardware::pai_2019(), traffic: TrafficCounts::SentAndReceived };
}

/// Rows on their way to being timed: what could be, what not and why.
#[derive(Clone, Debug)]
pub(super) struct Timed {
    pub(super) method: Method,
    rows: u64,
    used: u64,
    synthetic: u64,
    traffic_assumed: u64,
    refused: [(u64, Option<u64>); Refusal::ALL.len()],
}

impl Timed {
    pub(super) fn new(method: Method) -> Self {
        let refused = [(0, None); Refusal::ALL.len()];
        Self { method, rows: 0, used: 0, synthetic: 0, traffic_assumed: 0, refused }
    }

    pub(super) fn work(&mut self, job: &Job) -> Option<Work> {
        self.rows += 1;
        match Work::of(job, &self.method.hardware, self.method.traffic) {
            Ok(work) => {
                self.used += 1;
                self.synthetic += u64::from(job.queue == SYNTHETIC);
                let features = &job.features;
                let silent = features.traffic_counts.is_none() && features.traffic.is_some();
                self.traffic_assumed += u64::from(silent && work.class != Class::OneWorkerOneGpu);
                Some(work)
            }
            Err(refusal) => {
                let (count, first) = &mut self.refused[refusal as usize];
                *count += 1;
                first.get_or_insert(job.row);
                None
            }
        }
    }

    pub(super) fn rows(&self) -> Rows {
        Rows { timed: Coverage { used: self.used, total: self.rows }, synthetic: self.synthetic }
    }

    pub(super) fn record(&self, ledger: &mut Ledger) {
        ledger.cover("rows with the features of a step", self.used, self.rows);
        for (refusal, (count, first)) in Refusal::ALL.into_iter().zip(self.refused) {
            refusal.record(count, first, ledger);
        }
        ledger.record_many(
            Severity::Inferred,
            "traffic-directions-assumed",
            match self.method.traffic {
                TrafficCounts::SentAndReceived => {
                    "traffic without its directions, taken as sent + received"
                }
                TrafficCounts::Sent => {
                    "traffic without its directions, taken as sent only and doubled"
                }
            },
            self.traffic_assumed,
            None,
        );
    }
}

/// Which rows an answer rests on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// Rows that could be timed, of all.
    pub timed: Coverage,
    /// Of these, rows that a generator made.
    pub synthetic: u64,
}

/// Shares of communication that the answer counts jobs above.
pub const ABOVE: [f64; 4] = [0.2, 0.5, 0.8, 0.9];
/// Parts of the jobs whose shares of communication are given.
pub const QUANTILES: [f64; 6] = [0.1, 0.25, 0.5, 0.75, 0.9, 0.99];

/// One weighting: every job once, or every cNode once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Weighted {
    /// Mean shares of input, compute-bound and memory-bound operations, and traffic.
    pub shares: [f64; 4],
    /// Mean shares by resource, in the order of [`Resource::ALL`].
    pub resources: [f64; 5],
    /// Part with at least [`ABOVE`] of its step in communication.
    pub above: [f64; ABOVE.len()],
    /// Shares of communication at [`QUANTILES`].
    pub communication: [f64; QUANTILES.len()],
    /// Part with at least half of its step in input.
    pub input_above_half: f64,
}

/// What the jobs of a class, or all of them, spend their steps on.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// The class; all jobs without one.
    pub class: Option<Class>,
    /// Jobs.
    pub jobs: u64,
    /// Their replicas.
    pub cnodes: u64,
    /// Every job counted once.
    pub by_job: Weighted,
    /// Every replica counted once: what the cluster spends its time on.
    pub by_cnode: Weighted,
    /// Jobs whose longest part is on a resource, in the order of [`Resource::ALL`].
    pub bottlenecks: [u64; 5],
    /// Mean speed-up if input, computation and traffic hid each other wholly.
    pub ideal_overlap: f64,
}

impl Profile {
    /// The resource that an average job spends most on.
    pub fn bottleneck(&self) -> Resource {
        let shares = &self.by_job.resources;
        let most = |a: &Resource, b: &Resource| shares[a.index()].total_cmp(&shares[b.index()]);
        Resource::ALL.into_iter().max_by(most).unwrap_or(Resource::Memory)
    }
}

/// What a fleet spends its steps on.
#[derive(Clone, Debug)]
pub struct Characterisation {
    /// How jobs were timed.
    pub method: Method,
    /// Rows it rests on.
    pub rows: Rows,
    /// All jobs.
    pub all: Option<Profile>,
    /// By class, those that have any.
    pub classes: Vec<Profile>,
    /// What can be said without features: times, waits, GPUs.
    pub distributions: Distributions,
}

/// Takes jobs in one after the other.
#[derive(Clone, Debug)]
pub struct Characteriser {
    timed: Timed,
    classes: Vec<Sums>,
    distributions: Distributions,
}

impl Characteriser {
    /// Without any job yet.
    pub fn new(method: Method) -> Self {
        Self {
            timed: Timed::new(method),
            classes: vec![Sums::default(); Class::ALL.len()],
            distributions: Distributions::default(),
        }
    }

    /// Takes in a row.
    pub fn add(&mut self, job: &Job) {
        self.distributions.add(job);
        if let Some(work) = self.timed.work(job) {
            let step = Step::of(&work, &self.timed.method.hardware);
            self.classes[work.class.index()].add(&step, work.cnodes);
        }
    }

    /// The answer; what could not be used goes to the ledger.
    pub fn finish(self, ledger: &mut Ledger) -> Characterisation {
        self.timed.record(ledger);
        ledger.record_many(
            Severity::Inferred,
            "slices-of-gpus",
            "job that asks for slices of GPUs (by its kind of GPU): each counts as its sevenths of one",
            self.distributions.slices(),
            None,
        );
        let profiles: Vec<Profile> = Class::ALL
            .into_iter()
            .zip(&self.classes)
            .filter(|(_, sums)| sums.jobs > 0)
            .map(|(class, sums)| sums.profile(Some(class)))
            .collect();
        let mut all = Sums::default();
        for sums in &self.classes {
            all.merge(sums);
        }
        Characterisation {
            method: self.timed.method,
            rows: self.timed.rows(),
            all: (all.jobs > 0).then(|| all.profile(None)),
            classes: profiles,
            distributions: self.distributions,
        }
    }
}

#[derive(Clone, Debug, Default)]
struct Sums {
    jobs: u64,
    cnodes: u64,
    by_job: Weights,
    by_cnode: Weights,
    bottlenecks: [u64; 5],
    ideal: f64,
}

#[derive(Clone, Debug, Default)]
struct Weights {
    weight: f64,
    shares: [f64; 4],
    resources: [f64; 5],
    communication: Shares,
    input: Shares,
}

impl Sums {
    fn add(&mut self, step: &Step, cnodes: u32) {
        let shares = step.shares();
        let total = step.total(Overlap::None).secs_f64();
        let resources = Resource::ALL.map(|resource| step.on(resource).secs_f64() / total);
        self.jobs += 1;
        self.cnodes += u64::from(cnodes);
        self.by_job.add(&shares, &resources, 1.0);
        self.by_cnode.add(&shares, &resources, f64::from(cnodes));
        let longest = (0..5).max_by(|a, b| resources[*a].total_cmp(&resources[*b]));
        self.bottlenecks[longest.unwrap_or(0)] += 1;
        self.ideal += total / step.total(Overlap::Ideal).secs_f64();
    }

    fn merge(&mut self, other: &Self) {
        self.jobs += other.jobs;
        self.cnodes += other.cnodes;
        self.by_job.merge(&other.by_job);
        self.by_cnode.merge(&other.by_cnode);
        for (sum, count) in self.bottlenecks.iter_mut().zip(other.bottlenecks) {
            *sum += count;
        }
        self.ideal += other.ideal;
    }

    fn profile(&self, class: Option<Class>) -> Profile {
        Profile {
            class,
            jobs: self.jobs,
            cnodes: self.cnodes,
            by_job: self.by_job.finish(),
            by_cnode: self.by_cnode.finish(),
            bottlenecks: self.bottlenecks,
            ideal_overlap: self.ideal / self.jobs as f64,
        }
    }
}

impl Weights {
    fn add(&mut self, shares: &[f64; 4], resources: &[f64; 5], weight: f64) {
        self.weight += weight;
        for (sum, share) in self.shares.iter_mut().zip(shares) {
            *sum += share * weight;
        }
        for (sum, share) in self.resources.iter_mut().zip(resources) {
            *sum += share * weight;
        }
        self.communication.add(shares[3], weight);
        self.input.add(shares[0], weight);
    }

    fn merge(&mut self, other: &Self) {
        self.weight += other.weight;
        for (sum, share) in self.shares.iter_mut().zip(other.shares) {
            *sum += share;
        }
        for (sum, share) in self.resources.iter_mut().zip(other.resources) {
            *sum += share;
        }
        self.communication.merge(&other.communication);
        self.input.merge(&other.input);
    }

    fn finish(&self) -> Weighted {
        Weighted {
            shares: self.shares.map(|sum| sum / self.weight),
            resources: self.resources.map(|sum| sum / self.weight),
            above: ABOVE.map(|share| self.communication.at_least(share)),
            communication: QUANTILES.map(|part| self.communication.quantile(part)),
            input_above_half: self.input.at_least(0.5),
        }
    }
}
