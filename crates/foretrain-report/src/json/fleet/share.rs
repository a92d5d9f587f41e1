//! The JSON of `fleet share`.

use foretrain_core::{Bytes, Nanos};
use foretrain_fleet::sharing::{Group, Pair, Plan, Rule, Spread, Step, Workload};
use schemars::JsonSchema;
use serde::Serialize;

/// What models could hold in common, and what they would by retraining.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetShareReport {
    /// `foretrain/fleet-share/1`.
    pub schema: String,
    /// By what layers were compared: `exact`, `any-stride` or `weights`.
    pub rule: String,
    /// The model that does not tell enough for the rule that was wanted, if any: then weights were
    /// compared.
    pub weakened_by: Option<String>,
    /// The models.
    pub models: Vec<FleetShareModelReport>,
    /// What all layers that could be shared take, every copy counted.
    pub bytes: u64,
    /// What is saved if all that could be shared is.
    pub most_saved_bytes: u64,
    /// The same as a part of `bytes`.
    pub most_saved_fraction: f64,
    /// All pairs of two models, the largest saving first.
    pub pairs: Vec<FleetSharePairReport>,
    /// Groups of the same layer in the same models, the largest saving first.
    pub groups: Vec<FleetShareGroupReport>,
    /// What retraining would keep; `null` unless it was asked for.
    pub plan: Option<FleetSharePlanReport>,
}

/// A model.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetShareModelReport {
    /// Its name.
    pub name: String,
    /// Layers that could be shared.
    pub layers: usize,
    /// What they take.
    pub bytes: u64,
    /// What its other weights take.
    pub private_bytes: u64,
}

/// Two models.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetSharePairReport {
    /// Name of the first.
    pub a: String,
    /// Name of the second.
    pub b: String,
    /// Layers of each that have a partner in the other.
    pub layers: usize,
    /// What they take in one model: saved if they are shared.
    pub bytes: u64,
    /// The same as a part of what both models' layers take.
    pub fraction: f64,
}

/// Equal layers of the same models.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetShareGroupReport {
    /// What the layers have in common; tables of outcomes name them so.
    pub layer: String,
    /// How many.
    pub layers: usize,
    /// The models that have them.
    pub models: Vec<String>,
    /// What one takes.
    pub layer_bytes: u64,
    /// What is saved if all are shared.
    pub saving_bytes: u64,
}

/// Retrainings and what they save.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetSharePlanReport {
    /// Where the outcomes of retrainings come from.
    pub accuracy: String,
    /// What is odd about that, as rows of a table that answer nothing.
    pub notes: Vec<String>,
    /// What is saved in the end.
    pub saved_bytes: u64,
    /// Epochs of all models in all retrainings.
    pub model_epochs: u64,
    /// Time of all retrainings; `null` if no epoch's time was given.
    pub time_ns: Option<i64>,
    /// All retrainings in order.
    pub steps: Vec<FleetShareStepReport>,
    /// How plans differ by luck; `null` if luck plays no part.
    pub spread: Option<FleetShareSpreadReport>,
}

/// One retraining.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetShareStepReport {
    /// Position of the group in `groups`, from 0.
    pub group: usize,
    /// Layers of it that were to be shared.
    pub layers: usize,
    /// Models that were to share them.
    pub models: Vec<String>,
    /// Those that keep them.
    pub kept: Vec<String>,
    /// Models that were trained.
    pub trained: usize,
    /// Epochs.
    pub epochs: u32,
    /// Time; `null` if no epoch's time was given.
    pub time_ns: Option<i64>,
    /// What is saved after it.
    pub saved_bytes: u64,
}

/// Quantiles over plans with other luck.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetShareSpreadReport {
    /// Plans.
    pub draws: u32,
    /// What is saved: the 0.1, 0.5 and 0.9 quantile.
    pub saved_bytes: [u64; 3],
    /// Time of all retrainings: the same quantiles; `null` if no epoch's time was given.
    pub time_ns: Option<[i64; 3]>,
}

/// A plan and how it came about.
#[derive(Clone, Debug)]
pub struct SharePlan<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// Where the outcomes of retrainings come from.
    pub accuracy: &'a str,
    /// What is odd about that.
    pub notes: &'a [String],
    /// Whether epochs' times were given.
    pub timed: bool,
    /// How plans differ by luck.
    pub spread: Option<Spread>,
}

impl FleetShareReport {
    /// Of a workload and, if wanted, a plan for it.
    pub fn new(workload: &Workload, plan: Option<&SharePlan<'_>>) -> Self {
        let names: Vec<&str> = workload.models().iter().map(|model| model.name.as_str()).collect();
        let models = workload.models().iter().map(|model| FleetShareModelReport {
            name: model.name.clone(),
            layers: model.layers.len(),
            bytes: model.bytes().get(),
            private_bytes: model.private.get(),
        });
        let mut pairs = workload.pairs();
        pairs.retain(|pair| pair.a != pair.b);
        pairs.sort_by_key(|pair| std::cmp::Reverse(pair.bytes));
        let groups = workload.groups();
        let most_saved: Bytes = groups.iter().map(Group::saving).sum();
        let fraction_of_pair = |pair: &Pair| {
            let both = workload.models()[pair.a].bytes() + workload.models()[pair.b].bytes();
            part(pair.bytes, both)
        };
        Self {
            schema: "foretrain/fleet-share/1".into(),
            rule: match workload.rule() {
                Rule::Exact => "exact",
                Rule::AnyStride => "any-stride",
                Rule::Weights => "weights",
            }
            .into(),
            weakened_by: workload.weakened_by().map(Into::into),
            models: models.collect(),
            bytes: workload.bytes().get(),
            most_saved_bytes: most_saved.get(),
            most_saved_fraction: part(most_saved, workload.bytes()),
            pairs: pairs
                .iter()
                .map(|pair| FleetSharePairReport {
                    a: names[pair.a].into(),
                    b: names[pair.b].into(),
                    layers: pair.layers,
                    bytes: pair.bytes.get(),
                    fraction: fraction_of_pair(pair),
                })
                .collect(),
            groups: groups.iter().map(|group| FleetShareGroupReport::new(group, &names)).collect(),
            plan: plan.map(|plan| FleetSharePlanReport::new(plan, &names)),
        }
    }
}

fn part(bytes: Bytes, of: Bytes) -> f64 {
    bytes.as_f64() / of.as_f64().max(1.0)
}

fn named(models: &[usize], names: &[&str]) -> Vec<String> {
    models.iter().map(|&model| names[model].to_owned()).collect()
}

impl FleetShareGroupReport {
    fn new(group: &Group, names: &[&str]) -> Self {
        Self {
            layer: group.signature.to_string(),
            layers: group.instances.len(),
            models: named(&group.models, names),
            layer_bytes: group.bytes.get(),
            saving_bytes: group.saving().get(),
        }
    }
}

impl FleetSharePlanReport {
    fn new(planned: &SharePlan<'_>, names: &[&str]) -> Self {
        let SharePlan { plan, accuracy, notes, timed, spread } = planned;
        let time = |time: Nanos| timed.then(|| time.nanos());
        let step = |step: &Step| FleetShareStepReport {
            group: step.group,
            layers: step.layers,
            models: named(&step.models, names),
            kept: named(&step.kept, names),
            trained: step.trained,
            epochs: step.epochs,
            time_ns: time(step.time),
            saved_bytes: step.saved.get(),
        };
        let epochs = plan.steps.iter().map(|step| u64::from(step.epochs) * step.trained as u64);
        Self {
            accuracy: (*accuracy).to_owned(),
            notes: notes.to_vec(),
            saved_bytes: plan.saved().get(),
            model_epochs: epochs.sum(),
            time_ns: time(plan.time()),
            steps: plan.steps.iter().map(step).collect(),
            spread: spread.map(|spread| FleetShareSpreadReport {
                draws: spread.draws,
                saved_bytes: spread.saved.map(Bytes::get),
                time_ns: timed.then(|| spread.time.map(Nanos::nanos)),
            }),
        }
    }
}
