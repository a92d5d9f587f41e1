//! How to run a recorded job: every number of devices with every way to synchronise it.
//!
//! What a recording tells of a layer is what it cost as it was divided, so a plan from a recording
//! keeps that division and chooses what can be chosen on top of it: how many replicas, which
//! strategy synchronises them, and how large its buckets are.

use std::collections::BTreeMap;

use foretrain_core::{InputError, Nanos, Result};
use foretrain_graph::StepGraph;
use foretrain_hardware::Catalogue;
use foretrain_rewrite::strategy::Registry;

use crate::recording::Recording;
use crate::whatif::answer::Outcome;
use crate::whatif::{Change, Scenario, WhatIf, WhatIfOptions, what_if, what_if_graphs};

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
}

/// Bucket sizes that plain data parallelism is tried with.
const BUCKETS: [&str; 3] = ["5MiB", "100MiB", "400MiB"];
/// Presets that give another result than synchronous training, or none of use.
const NOT_TRIED: [&str; 2] = ["async", "bsp"];

/// Plans a job recorded on one or more ranks.
///
/// # Errors
/// As [`what_if`]; if no number of devices is asked, or a strategy is not known.
pub fn plan(
    recordings: &[Recording],
    catalogue: &Catalogue,
    options: &RecordedPlanOptions,
) -> Result<RecordedPlan> {
    let asked = asked(options)?;
    Ok(ranked(what_if(recordings, catalogue, &asked)?, options))
}

/// The same from step graphs with times, one per rank.
///
/// # Errors
/// As [`plan`].
pub fn plan_graphs(
    graphs: &[StepGraph],
    catalogue: &Catalogue,
    options: &RecordedPlanOptions,
) -> Result<RecordedPlan> {
    let asked = asked(options)?;
    Ok(ranked(what_if_graphs(graphs, catalogue, &asked)?, options))
}

/// Every number of devices with every strategy, as scenarios.
fn asked(options: &RecordedPlanOptions) -> Result<WhatIfOptions> {
    if options.gpus.is_empty() || options.gpus.contains(&0) {
        return Err(InputError::new("a plan needs numbers of devices, each at least 1")
            .hint("such as --gpus 8,16,32"));
    }
    let registry = Registry::builtin();
    let strategies =
        if options.strategies.is_empty() { tried(&registry) } else { options.strategies.clone() };
    let mut sweeps = Vec::new();
    for &gpus in &options.gpus {
        for strategy in &strategies {
            registry.parse(strategy)?;
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

fn ranked(mut start: WhatIf, options: &RecordedPlanOptions) -> RecordedPlan {
    let scenarios = std::mem::take(&mut start.scenarios);
    let mut choices = Vec::with_capacity(scenarios.len());
    for &gpus in &options.gpus {
        let mut of_size: Vec<_> =
            scenarios.iter().filter(|scenario| scenario.outcome.gpus == gpus).collect();
        // Equal throughput: the order asked.
        of_size.sort_by(|a, b| b.outcome.throughput.value.total_cmp(&a.outcome.throughput.value));
        let Some(best) = of_size.first().map(|best| best.outcome.clone()) else { continue };
        choices.extend(of_size.into_iter().map(|scenario| {
            let throughput = scenario.outcome.throughput;
            RecordedChoice {
                strategy: scenario.label.clone(),
                of_best: throughput.value / best.throughput.value.max(f64::MIN_POSITIVE),
                ties: throughput.high >= best.throughput.value,
                outcome: scenario.outcome.clone(),
            }
        }));
    }
    RecordedPlan {
        cluster: start.cluster.clone(),
        left_out: std::mem::take(&mut start.left_out),
        start,
        choices,
    }
}

impl RecordedPlan {
    /// What the runner-up on as many devices as `best` spends more than it, by owner: the largest
    /// first.
    pub fn why(best: &RecordedChoice, other: &RecordedChoice) -> Vec<(&'static str, Nanos)> {
        let mut both: BTreeMap<&'static str, Nanos> = BTreeMap::new();
        for (owner, time) in &other.outcome.breakdown.parts {
            *both.entry(owner.code()).or_default() += *time;
        }
        for (owner, time) in &best.outcome.breakdown.parts {
            let more = both.entry(owner.code()).or_default();
            *more -= *time;
        }
        let mut more: Vec<(&'static str, Nanos)> =
            both.into_iter().filter(|(_, more)| *more != Nanos::ZERO).collect();
        more.sort_by_key(|(name, more)| (-more.nanos().abs(), *name));
        more
    }
}
