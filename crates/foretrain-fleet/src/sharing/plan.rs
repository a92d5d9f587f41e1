//! Which layers to share, one retraining after the other.

use std::collections::BTreeSet;

use foretrain_core::stats::quantile;
use foretrain_core::{Bytes, Nanos};

use super::AccuracyOracle;
use super::group::{Group, saving};
use super::oracle::Trial;
use super::savings::Workload;

/// What retraining costs.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanOptions {
    /// Most epochs of a retraining; one that fails takes them all.
    pub epochs: u32,
    /// An epoch's time of each model of the workload.
    pub epoch_times: Vec<Nanos>,
}

/// One retraining.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Number of the group in [`Workload::groups`].
    pub group: usize,
    /// Instances of it that were to be shared, from its first.
    pub layers: usize,
    /// Models that were to share them.
    pub models: Vec<usize>,
    /// Those that met their accuracy, and so share them from now on; none, or at least two.
    pub kept: Vec<usize>,
    /// Models that were trained: those above, and all that share layers with them already.
    pub trained: usize,
    /// Epochs.
    pub epochs: u32,
    /// Time, all trained models one after the other.
    pub time: Nanos,
    /// What is saved after this step.
    pub saved: Bytes,
}

/// Layers that are shared in the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confirmed {
    /// Number of the group in [`Workload::groups`].
    pub group: usize,
    /// Instances of it, from its first.
    pub layers: usize,
    /// Models that share them, at least two.
    pub models: Vec<usize>,
}

/// A plan with its history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// All retrainings in order: the curve of memory saved over time spent.
    pub steps: Vec<Step>,
    /// What is shared.
    pub confirmed: Vec<Confirmed>,
}

impl Plan {
    /// What is saved.
    pub fn saved(&self) -> Bytes {
        self.steps.last().map_or(Bytes::ZERO, |step| step.saved)
    }

    /// What all retrainings take.
    pub fn time(&self) -> Nanos {
        self.steps.iter().fold(Nanos::ZERO, |all, step| all + step.time)
    }
}

/// Goes through the groups of a workload, the largest saving first. A group is shared on top of all
/// that was kept before; models that meet their accuracy keep it if they are two or more. The
/// others try again with the first half of the group's layers, unless the next group promises to
/// save more.
///
/// # Panics
/// If there are not as many epoch times as models.
pub fn plan(workload: &Workload, options: &PlanOptions, oracle: &mut dyn AccuracyOracle) -> Plan {
    assert_eq!(options.epoch_times.len(), workload.models().len(), "an epoch time per model");
    let groups = workload.groups();
    let mut plan = Plan::default();
    for number in 0..groups.len() {
        let next = groups.get(number + 1).map_or(Bytes::ZERO, Group::saving);
        try_group(workload, options, oracle, (number, &groups[number], next), &mut plan);
    }
    plan
}

fn try_group(
    workload: &Workload,
    options: &PlanOptions,
    oracle: &mut dyn AccuracyOracle,
    (number, group, next): (usize, &Group, Bytes),
    plan: &mut Plan,
) {
    let (mut layers, mut models) = (group.instances.len(), group.models.clone());
    while layers > 0 && models.len() >= 2 {
        let verdicts: Vec<_> = models
            .iter()
            .map(|&model| {
                let name = &workload.models()[model].name;
                let trial = Trial { signature: &group.signature, layers, model: name };
                (model, oracle.retrain(&trial))
            })
            .collect();
        let took = |epochs: Option<u32>| epochs.unwrap_or(options.epochs).min(options.epochs);
        let epochs = verdicts.iter().map(|(_, epochs)| took(*epochs)).max().unwrap_or(0);
        let met = verdicts.iter().filter(|(_, epochs)| epochs.is_some());
        let mut kept: Vec<usize> = met.map(|&(model, _)| model).collect();
        if kept.len() < 2 {
            kept.clear();
        }
        let trained = closure(&models, &plan.confirmed);
        let once = trained.iter().map(|&model| options.epoch_times[model]);
        let time = once.fold(Nanos::ZERO, |all, time| all + time).scale(f64::from(epochs));
        let gained = saving(group.bytes, layers, kept.len());
        plan.steps.push(Step {
            group: number,
            layers,
            models: models.clone(),
            kept: kept.clone(),
            trained: trained.len(),
            epochs,
            time,
            saved: plan.saved() + gained,
        });
        models.retain(|model| !kept.contains(model));
        if !kept.is_empty() {
            plan.confirmed.push(Confirmed { group: number, layers, models: kept });
        }
        layers /= 2;
        if saving(group.bytes, layers, models.len()) < next {
            break;
        }
    }
}

/// These models, and all that share layers with them, however many models lie between.
fn closure(models: &[usize], confirmed: &[Confirmed]) -> BTreeSet<usize> {
    let mut all: BTreeSet<usize> = models.iter().copied().collect();
    loop {
        let before = all.len();
        for shared in confirmed {
            if shared.models.iter().any(|model| all.contains(model)) {
                all.extend(&shared.models);
            }
        }
        if all.len() == before {
            return all;
        }
    }
}

/// How plans differ by the luck of their retrainings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Plans drawn.
    pub draws: u32,
    /// What is saved: the 0.1, 0.5 and 0.9 quantile.
    pub saved: [Bytes; 3],
    /// Time of all retrainings: the same quantiles.
    pub time: [Nanos; 3],
}

/// Plans with oracles of other luck; `None` without draws.
pub fn spread<O: AccuracyOracle>(
    workload: &Workload,
    options: &PlanOptions,
    draws: u32,
    oracle: impl Fn(u32) -> O,
) -> Option<Spread> {
    let plans: Vec<Plan> =
        (0..draws).map(|draw| plan(workload, options, &mut oracle(draw))).collect();
    let quantiles = |of: &dyn Fn(&Plan) -> f64| {
        let values: Vec<f64> = plans.iter().map(of).collect();
        Some([quantile(&values, 0.1)?, quantile(&values, 0.5)?, quantile(&values, 0.9)?])
    };
    Some(Spread {
        draws,
        saved: quantiles(&|plan| plan.saved().as_f64())?.map(Bytes::from_f64),
        time: quantiles(&|plan| plan.time().secs_f64())?.map(Nanos::from_secs_f64),
    })
}
