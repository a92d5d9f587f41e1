//! From scenarios to rows.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use foretrain_core::{InputError, Result};
use foretrain_cost::kernels::KernelModel;
use foretrain_hardware::Cluster;
use foretrain_workload::model::Model;

use super::{Outcome, ResultRow, Scenario, Shard, Study, cluster_hash, model_hash};
use crate::layout::Wish;
use crate::memory::Fit;
use crate::plan::{Place, Question, Space};

/// What names in scenarios stand for.
pub trait Resolver {
    /// The model of this name or file.
    ///
    /// # Errors
    /// If there is none.
    fn model(&mut self, name: &str) -> Result<Model>;
    /// The cluster of this name or file.
    ///
    /// # Errors
    /// If there is none.
    fn cluster(&mut self, name: &str) -> Result<Cluster>;
    /// Kernel times of a cluster's devices.
    ///
    /// # Errors
    /// If there are none.
    fn kernels(&mut self, cluster: &Cluster) -> Result<KernelModel> {
        Ok(KernelModel::for_device(&cluster.node.device))
    }
}

/// Runs the scenarios of a shard, one after the other; each takes all threads. `None` if `stop` was
/// set before the end: part of a shard is of no use. `progress` is told how many are done of how
/// many.
///
/// # Errors
/// If a name stands for nothing, or for something else than when the scenario was written. A
/// scenario without a layout is no error, but a row that says so.
pub fn run(
    study: &Study,
    shard: Shard,
    resolver: &mut dyn Resolver,
    stop: &AtomicBool,
    progress: &dyn Fn(usize, usize),
) -> Result<Option<Vec<ResultRow>>> {
    let own: Vec<(usize, &Scenario)> =
        study.scenarios.iter().enumerate().filter(|(at, _)| shard.takes(*at)).collect();
    let mut known = Known { resolver, models: BTreeMap::new(), clusters: BTreeMap::new() };
    let mut rows = Vec::with_capacity(own.len());
    for (done, (at, scenario)) in own.iter().enumerate() {
        progress(done, own.len());
        let placed = |error: InputError| error.at(format!("scenario {}", at + 1));
        let model = known.model(scenario).map_err(placed)?;
        let cluster = known.cluster(scenario).map_err(placed)?;
        let kernels = known.resolver.kernels(&cluster).map_err(placed)?;
        let row = answer(scenario, &model, cluster, &kernels, stop);
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        rows.push(ResultRow { study: study.hash.clone(), scenario: *at as u64, ..row });
    }
    progress(own.len(), own.len());
    Ok(Some(rows))
}

struct Known<'a> {
    resolver: &'a mut dyn Resolver,
    models: BTreeMap<String, (Model, String)>,
    clusters: BTreeMap<String, (Cluster, String)>,
}

impl Known<'_> {
    fn model(&mut self, scenario: &Scenario) -> Result<Model> {
        let name = &scenario.model;
        if !self.models.contains_key(name) {
            let model = self.resolver.model(name)?;
            let hash = model_hash(&model);
            self.models.insert(name.clone(), (model, hash));
        }
        let (model, hash) = &self.models[name];
        same("model", name, scenario.model_hash.as_ref(), hash)?;
        Ok(model.clone())
    }

    fn cluster(&mut self, scenario: &Scenario) -> Result<Cluster> {
        let name = &scenario.cluster;
        if !self.clusters.contains_key(name) {
            let cluster = self.resolver.cluster(name)?;
            let hash = cluster_hash(&cluster);
            self.clusters.insert(name.clone(), (cluster, hash));
        }
        let (cluster, hash) = &self.clusters[name];
        same("cluster", name, scenario.cluster_hash.as_ref(), hash)?;
        Ok(cluster.clone())
    }
}

fn same(what: &str, name: &str, written: Option<&String>, found: &str) -> Result<()> {
    match written {
        Some(written) if written != found => Err(InputError::new(format!(
            "{what} {name:?} is not the one that the scenario was written for (hash {found}, \
             expected {written})"
        ))
        .hint(format!("bring the {what}'s file as it was, or write the scenarios again"))),
        _ => Ok(()),
    }
}

fn answer(
    scenario: &Scenario,
    model: &Model,
    mut cluster: Cluster,
    kernels: &KernelModel,
    stop: &AtomicBool,
) -> ResultRow {
    let refused = |error: &InputError| ResultRow {
        study: String::new(),
        scenario: 0,
        model: scenario.model.clone(),
        cluster: scenario.cluster.clone(),
        devices: scenario.devices,
        outcome: Outcome::Refused,
        reason: Some(error.to_string()),
        layout: None,
        step_ns: None,
        step_low_ns: None,
        step_high_ns: None,
        tokens_per_second: None,
        mfu: None,
        dollars_per_million_tokens: None,
        memory_bytes: None,
        looked_at: 0,
    };
    if let Some(price) = scenario.price {
        cluster.node.price_per_device_hour = Some(price);
    }
    let wish: Wish = match scenario.pins.parse() {
        Ok(wish) => wish,
        Err(error) => return refused(&error),
    };
    let mut space = Space::of(&scenario.software, wish);
    if !scenario.schedules.is_empty() {
        space.schedules.clone_from(&scenario.schedules);
    }
    let question = Question {
        model,
        training: &scenario.training,
        software: &scenario.software,
        cluster: &cluster,
        kernels,
        calibrated: None,
        devices: scenario.devices,
        space: &space,
        memory: scenario.memory,
    };
    match Place::search(&question, stop, &|_| {}, None) {
        Ok(place) => row(refused(&InputError::new("stopped")), &place),
        Err(error) => refused(&error),
    }
}

fn row(empty: ResultRow, place: &Place) -> ResultRow {
    let looked_at = place.found.looked_at as u64;
    if let Some(best) = place.found.ranked.first() {
        let time = best.time;
        return ResultRow {
            outcome: if best.fit == Fit::Yes { Outcome::Fits } else { Outcome::Tight },
            reason: None,
            layout: Some(best.layout.to_string()),
            step_ns: Some(time.value.nanos()),
            step_low_ns: Some(time.low.nanos()),
            step_high_ns: Some(time.high.nanos()),
            tokens_per_second: Some(nine_digits(place.rates.tokens_per_second(time.value))),
            mfu: place.rates.mfu(time.value).map(nine_digits),
            dollars_per_million_tokens: place
                .rates
                .dollars_per_million(time.value)
                .map(nine_digits),
            memory_bytes: Some(best.memory.get()),
            looked_at,
            ..empty
        };
    }
    match &place.found.nearest {
        Some((layout, memory)) => ResultRow {
            outcome: Outcome::TooLarge,
            reason: None,
            layout: Some(layout.to_string()),
            memory_bytes: Some(memory.get()),
            looked_at,
            ..empty
        },
        None => ResultRow { looked_at, ..empty },
    }
}

/// Rounded to nine significant digits.
fn nine_digits(value: f64) -> f64 {
    let rounded = format!("{value:.8e}").parse().unwrap_or(value);
    if f64::is_finite(rounded) { rounded } else { 0.0 }
}
