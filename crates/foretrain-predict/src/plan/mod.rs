//! How to run a recorded job: every number of devices with every way to synchronise it.
//!
//! What a recording tells of a layer is what it cost as it was divided, so a plan from a recording
//! keeps that division and chooses what can be chosen on top of it: how many replicas, which
//! strategy synchronises them, and how large its buckets are.

mod kept;

use std::collections::{BTreeMap, BTreeSet};

use foretrain_core::{InputError, Nanos, Result};
use foretrain_graph::StepGraph;
use foretrain_hardware::Catalogue;
use foretrain_rewrite::strategy::Registry;

use crate::breakdown::Owner;
use crate::recording::Recording;
use crate::whatif::answer::Outcome;
use crate::whatif::{
    Change, Scenario, Watch, WhatIf, WhatIfOptions, what_if_graphs_watched, what_if_watched,
};

pub use kept::Kept;

/// What to plan.
#[derive(Clone, Debug)]
pub struct RecordedPlanOptions {
    /// Cluster and what predictions are told. Its scenarios are not used.
    pub asked: WhatIfOptions,
    /// Numbers of devices.
    pub gpus: Vec<u32>,
    /// Strategies, presets or lists of passes; empty for every preset that trains synchronously, with
    /// plain data parallelism at several bucket sizes.
    pub strategies: Vec<String>,
    /// A strategy that is put beside the best one, whether or not it is among those.
    pub explain: Option<String>,
}

/// One way to run the job.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedChoice {
    /// The strategy as asked.
    pub strategy: String,
    /// The job under it.
    pub outcome: Outcome,
    /// Throughput over that of the best choice on as many devices.
    pub of_best: f64,
    /// Whether the best choice on as many devices lies within its interval: a tie as far as the
    /// model can tell.
    pub ties: bool,
    /// US dollars per hour of what it takes; `None` where the cluster has no price.
    pub dollars_per_hour: Option<f64>,
}

/// The answer.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedPlan {
    /// Cluster of the plan.
    pub cluster: String,
    /// The recorded job and what the numbers rest on.
    pub start: WhatIf,
    /// Choices by number of devices in the order asked, the fastest first within each.
    pub choices: Vec<RecordedChoice>,
    /// What could not be simulated, and why.
    pub left_out: Vec<(String, String)>,
    /// What is as it was recorded, and why.
    pub kept: Vec<Kept>,
    /// The strategy that was asked about.
    pub explain: Option<String>,
    /// Choices that were looked at, simulated or not.
    pub looked_at: usize,
    /// Choices that there are; more than were looked at if somebody ended the search.
    pub all: usize,
}

/// Bucket sizes that plain data parallelism is tried with.
const BUCKETS: [&str; 3] = ["5MiB", "100MiB", "400MiB"];
/// Presets that give another result than synchronous training, or none of use.
const NOT_TRIED: [&str; 2] = ["async", "bsp"];

/// Plans a job recorded on one or more ranks. Where `watch` ends it early, the answer holds what
/// was simulated until then.
///
/// # Errors
/// As [`what_if`](crate::whatif::what_if); if no number of devices is asked, or a strategy is not
/// known.
pub fn plan(
    recordings: &[Recording],
    catalogue: &Catalogue,
    options: &RecordedPlanOptions,
    watch: Watch<'_>,
) -> Result<RecordedPlan> {
    let asked = asked(options)?;
    let all = asked.sweeps.len();
    Ok(ranked(what_if_watched(recordings, catalogue, &asked, watch)?, options, all))
}

/// The same from step graphs with times, one per rank.
///
/// # Errors
/// As [`plan`].
pub fn plan_graphs(
    graphs: &[StepGraph],
    catalogue: &Catalogue,
    options: &RecordedPlanOptions,
    watch: Watch<'_>,
) -> Result<RecordedPlan> {
    let asked = asked(options)?;
    let all = asked.sweeps.len();
    Ok(ranked(what_if_graphs_watched(graphs, catalogue, &asked, watch)?, options, all))
}

/// Every number of devices with every strategy, as scenarios.
fn asked(options: &RecordedPlanOptions) -> Result<WhatIfOptions> {
    if options.gpus.is_empty() || options.gpus.contains(&0) {
        return Err(InputError::new("a plan needs numbers of devices, each at least 1")
            .hint("such as --gpus 8,16,32"));
    }
    let registry = Registry::current();
    let mut strategies =
        if options.strategies.is_empty() { tried(&registry) } else { options.strategies.clone() };
    strategies.extend(options.explain.clone());
    let mut once = BTreeSet::new();
    strategies.retain(|strategy| once.insert(strategy.clone()));
    for strategy in &strategies {
        registry.parse(strategy)?;
    }
    let mut sweeps = Vec::new();
    for &gpus in &options.gpus {
        for strategy in &strategies {
            sweeps.push(Scenario {
                name: Some(strategy.clone()),
                changes: vec![Change::Gpus(gpus), Change::Strategy(strategy.clone())],
            });
        }
    }
    let gpus = options.asked.gpus.or_else(|| options.gpus.first().copied());
    Ok(WhatIfOptions {
        scenarios: Vec::new(),
        sweeps,
        lenient: true,
        gpus,
        ..options.asked.clone()
    })
}

fn tried(registry: &Registry) -> Vec<String> {
    let presets = registry.presets().iter().map(|preset| preset.name);
    let named = presets.filter(|name| !NOT_TRIED.contains(name)).map(str::to_owned);
    let buckets = BUCKETS.iter().map(|size| format!("copies | fuse({size})"));
    named.chain(buckets).collect()
}

fn ranked(mut start: WhatIf, options: &RecordedPlanOptions, all: usize) -> RecordedPlan {
    let scenarios = std::mem::take(&mut start.scenarios);
    let node = options.asked.cluster.as_ref().map(|cluster| &cluster.node);
    let mut choices = Vec::with_capacity(scenarios.len());
    for &gpus in &options.gpus {
        let mut of_size: Vec<_> =
            scenarios.iter().filter(|scenario| scenario.outcome.gpus == gpus).collect();
        // Equal throughput: the order asked.
        of_size.sort_by(|a, b| b.outcome.throughput.value.total_cmp(&a.outcome.throughput.value));
        let Some(best) = of_size.first().map(|best| best.outcome.throughput.value) else {
            continue;
        };
        choices.extend(of_size.into_iter().map(|scenario| {
            let throughput = scenario.outcome.throughput;
            RecordedChoice {
                strategy: scenario.label.clone(),
                of_best: throughput.value / best.max(f64::MIN_POSITIVE),
                ties: throughput.high >= best,
                dollars_per_hour: node.and_then(|node| node.dollars_per_hour(gpus.into())),
                outcome: scenario.outcome.clone(),
            }
        }));
    }
    let left_out = std::mem::take(&mut start.left_out);
    RecordedPlan {
        cluster: start.cluster.clone(),
        kept: kept::kept(&start.recorded),
        explain: options.explain.clone(),
        looked_at: scenarios.len() + left_out.len(),
        all,
        left_out,
        start,
        choices,
    }
}

impl RecordedPlan {
    /// The choices on each number of devices, fastest first.
    pub fn sizes(&self) -> impl Iterator<Item = &[RecordedChoice]> {
        self.choices.chunk_by(|one, next| one.outcome.gpus == next.outcome.gpus)
    }

    /// Whether every choice was looked at.
    pub fn is_complete(&self) -> bool {
        self.looked_at == self.all
    }
}

impl RecordedChoice {
    /// Who owns its step, whatever the groups: strategies have groups of their own.
    pub fn owners(&self) -> BTreeMap<Owner, Nanos> {
        let mut owners: BTreeMap<Owner, Nanos> = BTreeMap::new();
        for (owner, time) in &self.outcome.breakdown.parts {
            *owners.entry(alike(owner)).or_default() += *time;
        }
        owners
    }

    /// What `other` spends more per step, by owner: the largest first.
    pub fn why(&self, other: &Self) -> Vec<(Owner, Nanos)> {
        let mut both = other.owners();
        for (owner, time) in self.owners() {
            *both.entry(owner).or_default() -= time;
        }
        let mut more: Vec<(Owner, Nanos)> =
            both.into_iter().filter(|(_, more)| *more != Nanos::ZERO).collect();
        more.sort_by(|a, b| (-a.1.nanos().abs(), &a.0).cmp(&(-b.1.nanos().abs(), &b.0)));
        more
    }
}

/// The owner without its group.
fn alike(owner: &Owner) -> Owner {
    match owner {
        Owner::ExposedCommunication { kind, .. } => {
            Owner::ExposedCommunication { group: String::new(), kind: *kind }
        }
        other => other.clone(),
    }
}
