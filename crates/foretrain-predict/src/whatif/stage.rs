//! What scenarios share, and their outcomes.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use foretrain_core::{Nanos, Result};
use foretrain_hardware::Cluster;
use foretrain_rewrite::BucketCaps;
use foretrain_rewrite::strategy::Registry;
use rayon::prelude::*;

use super::Asked;
use super::answer::Outcome;
use super::apply::apply;
use super::setting::Setting;
use super::sketch::{Ground, Sketch};
use super::watch::Watch;
use crate::scale::PredictOptions;
use crate::scale::base::Base;

/// Drafted jobs that are kept at a time: each holds copies of the graphs.
const GROUNDS: usize = 16;

/// An outcome, and what the changes did, in words.
pub(super) type Found = Result<(Outcome, Vec<String>)>;

/// One cluster for each device among the settings: what depends on the device is made once.
pub(super) fn by_device(settings: &[Setting]) -> Vec<Cluster> {
    let mut clusters: Vec<Cluster> = Vec::new();
    for setting in settings {
        if !clusters.iter().any(|known| known.node.device == setting.cluster.node.device) {
            clusters.push(setting.cluster.clone());
        }
    }
    clusters
}

/// What the job's structure depends on.
#[derive(PartialEq)]
struct Key {
    base: usize,
    gpus: u32,
    buckets: BucketCaps,
    strategy: Option<String>,
    /// Strategies decide by costs.
    cluster: Option<Cluster>,
}

impl Key {
    fn new(base: usize, setting: &Setting, predict: &PredictOptions, on: &Base<'_>) -> Self {
        let other_buckets = setting.buckets != predict.buckets;
        let strategy = match &setting.strategy {
            Some(passes) => Some(passes.clone()),
            // Other buckets than were recorded; what copies them is in the recording.
            None if other_buckets && on.ranks.lead().layout.synchronises() => {
                let BucketCaps { first, other } = setting.buckets;
                Some(format!("fuse({}B, first={}B)", other.get(), first.get()))
            }
            None => None,
        };
        let decides = strategy.is_some() || predict.strategy.is_some();
        let cluster = decides.then(|| setting.cluster.clone());
        Self { base, gpus: setting.gpus, buckets: setting.buckets, strategy, cluster }
    }

    fn options(&self, predict: &PredictOptions) -> Result<PredictOptions> {
        let mut options = PredictOptions { buckets: self.buckets, ..predict.clone() };
        if let Some(passes) = &self.strategy {
            options.strategy = Some(Arc::new(Registry::current().parse(passes)?));
        }
        Ok(options)
    }
}

/// What scenarios share: the reading per device, and which of them have one drafted job.
pub(super) struct Stage<'a> {
    settings: &'a [Setting],
    predict: &'a PredictOptions,
    bases: Vec<Base<'a>>,
    /// Which base each setting is of.
    base_of: Vec<usize>,
    keys: Vec<Key>,
    /// The settings of each key, in order.
    members: Vec<Vec<usize>>,
}

impl<'a> Stage<'a> {
    pub(super) fn new(
        settings: &'a [Setting],
        bases: Vec<Base<'a>>,
        predict: &'a PredictOptions,
    ) -> Self {
        let mut base_of = Vec::with_capacity(settings.len());
        let mut keys: Vec<Key> = Vec::new();
        let mut members: Vec<Vec<usize>> = Vec::new();
        for (i, setting) in settings.iter().enumerate() {
            let device = &setting.cluster.node.device;
            let of = |base: &Base<'_>| base.cluster.node.device == *device;
            let base = bases.iter().position(of).unwrap_or(0);
            base_of.push(base);
            let key = Key::new(base, setting, predict, &bases[base]);
            match keys.iter().position(|known| *known == key) {
                Some(known) => members[known].push(i),
                None => {
                    keys.push(key);
                    members.push(vec![i]);
                }
            }
        }
        Self { settings, predict, bases, base_of, keys, members }
    }

    /// The reading that the setting at `index` starts from.
    pub(super) fn base(&self, index: usize) -> &Base<'a> {
        &self.bases[self.base_of[index]]
    }

    /// The outcome of the first of `asked`, the baseline, and those of all others in order. A
    /// scenario that cannot be made ends it, unless `lenient`; those that had not begun when `watch`
    /// ended it have none.
    pub(super) fn outcomes(
        &self,
        asked: &[Asked],
        lenient: bool,
        watch: Watch<'_>,
    ) -> Result<(Outcome, Vec<Option<Found>>)> {
        let first = self.ground(0).map_err(|error| asked[0].explain(error))?;
        let (baseline, _) = self.outcome(&asked[0], 0, &first, None)?;
        let before = Some(baseline.step_time.value);
        let mut found: Vec<Option<Found>> = asked.iter().skip(1).map(|_| None).collect();
        let done = AtomicUsize::new(0);
        let keys: Vec<usize> = (0..self.keys.len()).collect();
        for keys in keys.chunks(GROUNDS) {
            let ground = |&key: &usize| (key > 0 && !watch.is_over()).then(|| self.ground(key));
            let grounds: Vec<Option<Result<Ground>>> = keys.par_iter().map(ground).collect();
            let members = keys.iter().zip(&grounds).flat_map(|(&key, ground)| {
                self.members[key].iter().filter(|&&i| i > 0).map(move |&i| (i, ground))
            });
            let members: Vec<(usize, &Option<Result<Ground>>)> = members.collect();
            let of = |&(i, ground): &(usize, &Option<Result<Ground>>)| {
                if watch.is_over() {
                    return None;
                }
                let outcome = match ground {
                    None => self.outcome(&asked[i], i, &first, before),
                    Some(Ok(ground)) => self.outcome(&asked[i], i, ground, before),
                    Some(Err(error)) => Err(error.clone()),
                };
                watch.one_more(&done, asked.len() - 1);
                Some((i, outcome))
            };
            let mut outcomes: Vec<(usize, Found)> = members.par_iter().filter_map(of).collect();
            outcomes.sort_by_key(|(i, _)| *i);
            for (i, outcome) in outcomes {
                match outcome {
                    Err(error) if !lenient => return Err(asked[i].explain(error)),
                    outcome => found[i - 1] = Some(outcome),
                }
            }
        }
        Ok((baseline, found))
    }

    /// The drafted job of a key.
    fn ground(&self, key: usize) -> Result<Ground> {
        let (first, key) = (self.members[key][0], &self.keys[key]);
        let setting = &self.settings[first];
        let on = Base { cluster: &setting.cluster, ..self.bases[key.base].clone() };
        Ground::new(on.draft(setting.gpus, &key.options(self.predict)?)?)
    }

    /// The job under the changes of `asked`, which have the setting at `index`, and what they did.
    fn outcome(
        &self,
        asked: &Asked,
        index: usize,
        ground: &Ground,
        before: Option<Nanos>,
    ) -> Found {
        let setting = &self.settings[index];
        let base = Base {
            cluster: &setting.cluster,
            latency: setting.latency,
            ..self.base(index).clone()
        };
        base.replicas(setting.gpus)?;
        let mut sketch = Sketch::new(&base, ground)?;
        for change in asked.scenario.made() {
            apply(&mut sketch, change)?;
        }
        let outcome = sketch.outcome(before, self.predict.replica_batch)?;
        Ok((outcome, sketch.notes))
    }
}
