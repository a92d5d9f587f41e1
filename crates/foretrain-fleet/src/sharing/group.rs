//! Which layers of which models would become one.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use foretrain_core::Bytes;

use super::layers::ModelLayers;
use super::signature::{Rule, Signature};

/// One set of weights that several models could hold in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// Name of the layer in each model, in the order of the group's models.
    pub places: Vec<String>,
}

/// Equal instances in the same models.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// What the layers have in common.
    pub signature: Signature,
    /// What one of them takes.
    pub bytes: Bytes,
    /// Numbers of the models, ascending; at least two.
    pub models: Vec<usize>,
    /// The instances, in the order in which the first model has them; at least one.
    pub instances: Vec<Instance>,
}

impl Group {
    /// What is saved if all instances are shared by all models.
    pub fn saving(&self) -> Bytes {
        saving(self.bytes, self.instances.len(), self.models.len())
    }
}

/// What `layers` of this size save in so many models.
pub(super) fn saving(bytes: Bytes, layers: usize, models: usize) -> Bytes {
    let copies = (layers as u64).saturating_mul(models.saturating_sub(1) as u64);
    Bytes::new(bytes.get().saturating_mul(copies))
}

/// An instance under construction.
pub(super) struct Found {
    bytes: Bytes,
    models: Vec<usize>,
    places: Vec<String>,
}

/// The n-th layer of a signature in one model goes with the n-th in every other.
pub(super) fn instances(models: &[ModelLayers], rule: Rule) -> BTreeMap<Signature, Vec<Found>> {
    let mut all: BTreeMap<Signature, Vec<Found>> = BTreeMap::new();
    for (number, model) in models.iter().enumerate() {
        let mut met: BTreeMap<Signature, usize> = BTreeMap::new();
        for layer in &model.layers {
            let key = layer.signature.key(rule);
            let place = met.entry(key.clone()).or_insert(0);
            let found = all.entry(key).or_default();
            match found.get_mut(*place) {
                Some(instance) => {
                    instance.models.push(number);
                    instance.places.push(layer.name.clone());
                }
                None => found.push(Found {
                    bytes: layer.bytes,
                    models: vec![number],
                    places: vec![layer.name.clone()],
                }),
            }
            *place += 1;
        }
    }
    all
}

/// Groups the instances of at least two models; the largest saving first, and of equal ones the
/// larger layer.
pub(super) fn groups(all: BTreeMap<Signature, Vec<Found>>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (signature, found) in all {
        let mut by_models: BTreeMap<Vec<usize>, Group> = BTreeMap::new();
        for Found { bytes, models, places } in found {
            if models.len() < 2 {
                continue;
            }
            let group = by_models.entry(models.clone()).or_insert_with(|| Group {
                signature: signature.clone(),
                bytes,
                models,
                instances: Vec::new(),
            });
            group.instances.push(Instance { places });
        }
        groups.extend(by_models.into_values());
    }
    groups.sort_by_key(|group| (Reverse(group.saving()), Reverse(group.bytes)));
    groups
}
