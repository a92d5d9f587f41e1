//! What a workload's models could save by sharing, two at a time and all together.

use std::collections::BTreeMap;

use foretrain_core::{Bytes, InputError, Result};

use super::group::{Group, groups, instances};
use super::layers::ModelLayers;
use super::signature::{Rule, Signature};

/// Models that a device serves together.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    models: Vec<ModelLayers>,
    rule: Rule,
    weakened_by: Option<String>,
}

/// What two models could hold in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Number of the first model in the workload.
    pub a: usize,
    /// Number of the second, which may be the first again.
    pub b: usize,
    /// Layers of either that have a partner in the other.
    pub layers: usize,
    /// What those layers take in one model: saved if they are shared.
    pub bytes: Bytes,
}

/// Most models of a workload. Pairs grow with the square.
const MOST: usize = 1024;

impl Workload {
    /// Models under a rule. If a model's description does not tell what the rule compares, all are
    /// compared by their weights: rules that differ from model to model would find pairs that do
    /// not fit together.
    ///
    /// # Errors
    /// If there are no models, more than can be compared, or one that holds nothing to share.
    pub fn new(models: Vec<ModelLayers>, rule: Rule) -> Result<Self> {
        if models.is_empty() || models.len() > MOST {
            let message = format!("{} models; expected 1 to {MOST}", models.len());
            return Err(InputError::new(message));
        }
        if let Some(empty) = models.iter().find(|model| model.layers.is_empty()) {
            let message = format!("{} holds no layer that could be shared", empty.name);
            return Err(InputError::new(message)
                .hint("layers are convolutions, matrices, embeddings and recurrent gates"));
        }
        let is_known =
            |model: &&ModelLayers| model.layers.iter().all(|layer| layer.signature.is_known(rule));
        let weakened_by = models.iter().find(|model| !is_known(model)).map(|m| m.name.clone());
        let rule = if weakened_by.is_some() { Rule::Weights } else { rule };
        Ok(Self { models, rule, weakened_by })
    }

    /// The models.
    pub fn models(&self) -> &[ModelLayers] {
        &self.models
    }

    /// By what layers are compared.
    pub fn rule(&self) -> Rule {
        self.rule
    }

    /// The model that does not tell enough for the rule that was wanted, if any.
    pub fn weakened_by(&self) -> Option<&str> {
        self.weakened_by.as_deref()
    }

    /// What the models take, those layers that could be shared alone.
    pub fn bytes(&self) -> Bytes {
        self.models.iter().map(ModelLayers::bytes).sum()
    }

    /// All pairs, each model with itself first: two instances of one model share everything.
    pub fn pairs(&self) -> Vec<Pair> {
        let counted: Vec<BTreeMap<Signature, (usize, Bytes)>> =
            self.models.iter().map(|model| counted(model, self.rule)).collect();
        let count = self.models.len();
        let pairs = (0..count).flat_map(|a| (a..count).map(move |b| (a, b)));
        pairs.map(|(a, b)| pair((a, &counted[a]), (b, &counted[b]))).collect()
    }

    /// Layers that at least two models could hold in common, in groups of the same layer in the same
    /// models, the largest saving first.
    pub fn groups(&self) -> Vec<Group> {
        groups(instances(&self.models, self.rule))
    }

    /// What is saved if every group is shared.
    pub fn most_saved(&self) -> Bytes {
        self.groups().iter().map(Group::saving).sum()
    }
}

fn counted(model: &ModelLayers, rule: Rule) -> BTreeMap<Signature, (usize, Bytes)> {
    let mut counted = BTreeMap::new();
    for layer in &model.layers {
        let entry = counted.entry(layer.signature.key(rule)).or_insert((0, layer.bytes));
        entry.0 += 1;
    }
    counted
}

type Counted<'a> = (usize, &'a BTreeMap<Signature, (usize, Bytes)>);

fn pair((a, of_a): Counted<'_>, (b, of_b): Counted<'_>) -> Pair {
    let mut pair = Pair { a, b, layers: 0, bytes: Bytes::ZERO };
    for (signature, &(count, bytes)) in of_a {
        let shared = count.min(of_b.get(signature).map_or(0, |&(count, _)| count));
        pair.layers += shared;
        pair.bytes += Bytes::new(bytes.get().saturating_mul(shared as u64));
    }
    pair
}
