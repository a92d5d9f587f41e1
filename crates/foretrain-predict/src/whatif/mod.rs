//! What each change to a job would buy.
//!
//! A scenario is a list of [changes](Change). Those of the *setting* (size, machine, links, buckets)
//! choose or build the drafted job; the others are made on top of it, in order, by the modules of
//! `apply`. The changed job is then simulated exactly as `predict` simulates one. Scenarios share
//! what they do not change: the reading, the joining of ranks, the drafted job of each size, and
//! its layout for the engine. They run in parallel, and their order and their bytes do not depend
//! on the threads.

pub mod answer;
mod apply;
pub mod language;
mod run;
mod setting;
mod sketch;
mod standard;

use std::sync::Arc;

use foretrain_core::{InputError, Nanos, Result};
use foretrain_graph::StepGraph;
use foretrain_hardware::{Catalogue, Cluster};
use foretrain_rewrite::BucketCaps;
use foretrain_rewrite::strategy::Registry;
use rayon::prelude::*;

use crate::devices::recorded_cluster;
use crate::recording::Recording;
use crate::scale::base::Base;
use crate::scale::{PredictOptions, Start};

use answer::Outcome;
pub use answer::{ScenarioAnswer, Share, WhatIf};
use apply::apply;
pub use language::{Axis, Change, Scenario, ScenarioFile, grid};
use setting::Setting;
pub use setting::check_names;
use sketch::{Ground, Sketch};
use standard::standard;

/// What to ask.
#[derive(Clone, Debug)]
pub struct WhatIfOptions {
    /// What a prediction is told; its sizes are not used.
    pub predict: PredictOptions,
    /// Cluster of the job [default: that of the recording].
    pub cluster: Option<Cluster>,
    /// Job size in devices [default: as recorded].
    pub gpus: Option<u32>,
    /// Scenarios that are answered with the worth of each of their changes. If there are neither
    /// these nor `sweeps`, the standard list is.
    pub scenarios: Vec<Scenario>,
    /// Scenarios that are answered without it.
    pub sweeps: Vec<Scenario>,
}

/// Answers scenarios about a job recorded on one or more ranks.
///
/// # Errors
/// As [`predict`](crate::predict); if the machine is not known; if a change changes nothing or
/// cannot be made, with its scenario.
pub fn what_if(
    recordings: &[Recording],
    catalogue: &Catalogue,
    options: &WhatIfOptions,
) -> Result<WhatIf> {
    let start = Start::of_recordings(recordings, &options.predict.roles)?;
    answer(start, catalogue, options)
}

/// The same about step graphs with times, one per rank.
///
/// # Errors
/// As [`what_if`], or if no graph holds times.
pub fn what_if_graphs(
    graphs: &[StepGraph],
    catalogue: &Catalogue,
    options: &WhatIfOptions,
) -> Result<WhatIf> {
    answer(Start::of_graphs(graphs, &options.predict.roles)?, catalogue, options)
}

fn answer(start: Start, catalogue: &Catalogue, options: &WhatIfOptions) -> Result<WhatIf> {
    let mut catalogue = catalogue.clone();
    let mut predict = options.predict.clone();
    let cluster = machine(&start, &catalogue, options, &mut predict)?;
    let setting = Setting {
        gpus: options.gpus.unwrap_or(start.ranks.lead().origin.world_size),
        cluster,
        latency: 1.0,
        buckets: predict.buckets,
        strategy: None,
    };
    let is_standard = options.scenarios.is_empty() && options.sweeps.is_empty();
    let mut asked: Vec<Asked> = vec![Asked::whole(&Scenario::default())];
    for scenario in &options.scenarios {
        asked.push(Asked::whole(scenario));
        asked.extend(parts_of(scenario));
    }
    asked.extend(options.sweeps.iter().map(Asked::whole));
    if is_standard {
        asked.extend(standard().iter().map(Asked::whole));
    }
    let mut settings = Vec::with_capacity(asked.len());
    for one in &asked {
        let setting = setting.under(&one.scenario, &mut catalogue);
        settings.push(setting.map_err(|error| one.explain(error))?);
    }
    let clusters = by_device(&settings);
    let bases: Vec<Base<'_>> = clusters
        .iter()
        .map(|cluster| Base::new(start.clone(), cluster, &catalogue, &predict))
        .collect::<Result<_>>()?;
    drop(start);
    let stage =
        Stage::new(&settings, bases, &predict).map_err(|(i, error)| asked[i].explain(error))?;
    let baseline = stage.outcome(&asked[0], 0, None)?.0;
    let before = baseline.step_time.value;
    let results: Vec<Result<(Outcome, Vec<String>)>> = (1..asked.len())
        .into_par_iter()
        .map(|i| stage.outcome(&asked[i], i, Some(before)))
        .collect();
    let mut found = Vec::with_capacity(results.len());
    let mut left_out = Vec::new();
    for (one, result) in asked[1..].iter().zip(results) {
        match result {
            Ok(result) => found.push((one, result)),
            Err(error) if is_standard => left_out.push((one.scenario.label(), error.to_string())),
            Err(error) => return Err(one.explain(error)),
        }
    }
    let mut scenarios = gather(&found, before);
    if is_standard {
        scenarios.sort_by_key(|scenario| std::cmp::Reverse(scenario.saving));
    }
    let base = &stage.bases[stage.base_of[0]];
    let mut evidence = base.evidence.clone();
    evidence.sort_by_key(|line| line.kind);
    let mut warnings = base.warnings.clone();
    let unsettled = scenarios.iter().filter(|one| !one.outcome.converged).count();
    if unsettled > 0 || !baseline.converged {
        warnings.push(format!(
            "simulated step times had not settled in {unsettled} scenarios{}; the last one is shown",
            if baseline.converged { "" } else { " and the baseline" }
        ));
    }
    Ok(WhatIf {
        recorded: base.recorded.clone(),
        cluster: settings[0].cluster.name.clone(),
        baseline,
        scenarios,
        is_standard,
        left_out,
        evidence,
        warnings,
    })
}

/// The cluster of the job. One that the recording does not name is taken for the one it was
/// recorded on, so that its measured times stand.
fn machine(
    start: &Start,
    catalogue: &Catalogue,
    options: &WhatIfOptions,
    predict: &mut PredictOptions,
) -> Result<Cluster> {
    let origin = &start.ranks.lead().origin;
    let recorded = predict
        .recorded_on
        .clone()
        .or_else(|| recorded_cluster(catalogue, origin, &mut Vec::new(), &mut Vec::new()));
    match (&options.cluster, recorded) {
        (Some(cluster), Some(_)) => Ok(cluster.clone()),
        (Some(cluster), None) => {
            predict.recorded_on = Some(cluster.clone());
            Ok(cluster.clone())
        }
        (None, Some(recorded)) => Ok(recorded),
        (None, None) => Err(InputError::new("the machine of the recording is not known")
            .in_file(&origin.path)
            .hint("name it: --on dgx-a100, or a catalogue file; `foretrain hardware list` lists those known")),
    }
}

/// What part of a scenario is asked about.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Whole,
    /// This change alone.
    Only(usize),
    /// All changes but this.
    Without(usize),
}

struct Asked {
    scenario: Scenario,
    part: Part,
}

impl Asked {
    fn whole(scenario: &Scenario) -> Self {
        Self { scenario: scenario.clone(), part: Part::Whole }
    }

    fn explain(&self, error: InputError) -> InputError {
        let place = match self.part {
            Part::Whole => format!("scenario `{}`", self.scenario.label()),
            _ => format!(
                "scenario `{}`, of which the worth of each change is asked",
                self.scenario.label()
            ),
        };
        error.at(place)
    }
}

/// A scenario's changes one by one, and all but each: what tells the worth of each.
fn parts_of(scenario: &Scenario) -> Vec<Asked> {
    let count = scenario.changes.len();
    if count < 2 {
        return Vec::new();
    }
    let of = |keep: &dyn Fn(usize) -> bool| Scenario {
        name: None,
        changes: (0..count).filter(|&i| keep(i)).map(|i| scenario.changes[i].clone()).collect(),
    };
    let only = (0..count).map(|i| Asked { scenario: of(&|j| j == i), part: Part::Only(i) });
    let without = (0..count).map(|i| Asked { scenario: of(&|j| j != i), part: Part::Without(i) });
    only.chain(without).collect()
}

/// One cluster for each device among the settings: what depends on the device is made once.
fn by_device(settings: &[Setting]) -> Vec<Cluster> {
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
            options.strategy = Some(Arc::new(Registry::builtin().parse(passes)?));
        }
        Ok(options)
    }
}

/// What scenarios share.
struct Stage<'a> {
    settings: &'a [Setting],
    bases: Vec<Base<'a>>,
    /// Which base each setting is of.
    base_of: Vec<usize>,
    grounds: Vec<Ground>,
    /// Which ground each setting stands on.
    ground_of: Vec<usize>,
    replica_batch: Option<f64>,
}

impl<'a> Stage<'a> {
    /// On failure, with the index of the setting that is at fault.
    fn new(
        settings: &'a [Setting],
        bases: Vec<Base<'a>>,
        predict: &PredictOptions,
    ) -> std::result::Result<Self, (usize, InputError)> {
        let (mut base_of, mut ground_of) = (Vec::new(), Vec::new());
        let mut keys: Vec<Key> = Vec::new();
        let mut grounds = Vec::new();
        for (i, setting) in settings.iter().enumerate() {
            let device = &setting.cluster.node.device;
            let of = |base: &Base<'_>| base.cluster.node.device == *device;
            let base = bases.iter().position(of).unwrap_or(0);
            let key = Key::new(base, setting, predict, &bases[base]);
            let ground = match keys.iter().position(|known| *known == key) {
                Some(known) => known,
                None => {
                    let on = Base { cluster: &setting.cluster, ..bases[base].clone() };
                    let ground = key
                        .options(predict)
                        .and_then(|options| on.draft(setting.gpus, &options))
                        .and_then(Ground::new);
                    grounds.push(ground.map_err(|error| (i, error))?);
                    keys.push(key);
                    keys.len() - 1
                }
            };
            base_of.push(base);
            ground_of.push(ground);
        }
        let replica_batch = predict.replica_batch;
        Ok(Self { settings, bases, base_of, grounds, ground_of, replica_batch })
    }

    /// The job under the changes of `asked`, which have the setting at `index`, and what they did.
    fn outcome(
        &self,
        asked: &Asked,
        index: usize,
        before: Option<Nanos>,
    ) -> Result<(Outcome, Vec<String>)> {
        let setting = &self.settings[index];
        let base = Base {
            cluster: &setting.cluster,
            latency: setting.latency,
            ..self.bases[self.base_of[index]].clone()
        };
        base.replicas(setting.gpus)?;
        let mut sketch = Sketch::new(&base, &self.grounds[self.ground_of[index]])?;
        for change in &asked.scenario.changes {
            apply(&mut sketch, change)?;
        }
        let outcome = sketch.outcome(before, self.replica_batch)?;
        Ok((outcome, sketch.notes))
    }
}

/// Puts scenarios and the worth of their changes together.
fn gather(found: &[(&Asked, (Outcome, Vec<String>))], before: Nanos) -> Vec<ScenarioAnswer> {
    let mut answers: Vec<ScenarioAnswer> = Vec::new();
    for (asked, (outcome, notes)) in found {
        let saving = before - outcome.step_time.value;
        match (asked.part, answers.last_mut()) {
            (Part::Only(_), Some(whole)) => whole.shares.push(Share {
                change: asked.scenario.to_string(),
                alone: saving,
                last: Nanos::ZERO,
            }),
            (Part::Without(i), Some(whole)) => {
                let last = whole.saving - saving;
                if let Some(share) = whole.shares.get_mut(i) {
                    share.last = last;
                }
            }
            _ => answers.push(ScenarioAnswer {
                label: asked.scenario.label(),
                changes: asked.scenario.changes.iter().map(ToString::to_string).collect(),
                notes: notes.clone(),
                outcome: outcome.clone(),
                saving,
                shares: Vec::new(),
            }),
        }
    }
    answers
}
