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
mod stage;
mod standard;
mod watch;

use foretrain_core::{InputError, Nanos, Result};
use foretrain_graph::StepGraph;
use foretrain_hardware::{Catalogue, Cluster};

use crate::devices::recorded_cluster;
use crate::recording::Recording;
use crate::scale::base::Base;
use crate::scale::{PredictOptions, Start};

use answer::Outcome;
pub use answer::{ScenarioAnswer, Share, WhatIf};
pub use language::{Axis, Change, Scenario, ScenarioFile, grid};
use setting::Setting;
pub use setting::check_names;
use stage::{Stage, by_device};
use standard::standard;
pub use watch::Watch;

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
    /// Scenarios that cannot be made are left out with their reason; else the first of them is an
    /// error. The standard list always is.
    pub lenient: bool,
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
    what_if_watched(recordings, catalogue, options, Watch::NOBODY)
}

/// The same under the eyes of somebody, who may end it: scenarios that had not begun are missing.
pub(crate) fn what_if_watched(
    recordings: &[Recording],
    catalogue: &Catalogue,
    options: &WhatIfOptions,
    watch: Watch<'_>,
) -> Result<WhatIf> {
    let start = Start::of_recordings(recordings, &options.predict.roles)?;
    answer(start, catalogue, options, watch)
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
    what_if_graphs_watched(graphs, catalogue, options, Watch::NOBODY)
}

/// As [`what_if_watched`], about step graphs.
pub(crate) fn what_if_graphs_watched(
    graphs: &[StepGraph],
    catalogue: &Catalogue,
    options: &WhatIfOptions,
    watch: Watch<'_>,
) -> Result<WhatIf> {
    answer(Start::of_graphs(graphs, &options.predict.roles)?, catalogue, options, watch)
}

fn answer(
    mut start: Start,
    catalogue: &Catalogue,
    options: &WhatIfOptions,
    watch: Watch<'_>,
) -> Result<WhatIf> {
    let mut catalogue = catalogue.clone();
    let mut predict = start.complete(&options.predict);
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
    let stage = Stage::new(&settings, bases, &predict);
    let (baseline, results) = stage.outcomes(&asked, is_standard || options.lenient, watch)?;
    let before = baseline.step_time.value;
    let mut found = Vec::with_capacity(results.len());
    let mut left_out = Vec::new();
    for (one, result) in asked[1..].iter().zip(results) {
        match result {
            Some(Ok(result)) => found.push((one, result)),
            None => {}
            Some(Err(error)) => left_out.push((one.scenario.label(), error.to_string())),
        }
    }
    let mut scenarios = gather(&found, before);
    if is_standard {
        scenarios.sort_by_key(|scenario| std::cmp::Reverse(scenario.saving));
    }
    let base = stage.base(0);
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
