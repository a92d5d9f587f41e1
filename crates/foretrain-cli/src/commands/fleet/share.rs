//! `foretrain fleet share`.

use std::path::{Path, PathBuf};

use foretrain::core::{DType, InputError, Nanos, Result as Read, suggest};
use foretrain::fleet::sharing::oracle::{Always, Chance, Never, Table};
use foretrain::fleet::sharing::{
    ModelLayers, Plan, PlanOptions, Rule, Spread, Workload, is_weights, plan, read_weights, spread,
};
use foretrain::report::json::{self, FleetShareReport, SharePlan};
use foretrain::report::text;

use crate::commands::{Answer, models};
use crate::failure::Result;
use crate::output::Output;

/// What is compared, and how retraining ends.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) models: Vec<String>,
    pub(crate) classes: Option<u64>,
    pub(crate) dtype: DType,
    pub(crate) rule: Rule,
    pub(crate) accuracy: Option<Accuracy>,
    pub(crate) epochs: u32,
    /// Of the model named, or of all.
    pub(crate) epoch_times: Vec<(Option<String>, Nanos)>,
    pub(crate) draws: u32,
    pub(crate) seed: u64,
}

/// How retraining ends.
#[derive(Clone, Debug)]
pub(crate) enum Accuracy {
    Always,
    Never,
    Chance(f64),
    Table(PathBuf),
}

pub(crate) fn run(options: &Options, output: &Output<'_>) -> Result<Answer> {
    let mut models: Vec<ModelLayers> =
        options.models.iter().map(|wanted| load(wanted, options)).collect::<Read<_>>()?;
    number_namesakes(&mut models);
    let workload = Workload::new(models, options.rule)?;
    let planned = match &options.accuracy {
        Some(accuracy) => Some(make(&workload, accuracy, options)?),
        None => None,
    };
    let shown = planned.as_ref().map(|planned| SharePlan {
        plan: &planned.plan,
        accuracy: &planned.accuracy,
        notes: &planned.notes,
        timed: !options.epoch_times.is_empty(),
        spread: planned.spread,
    });
    let report = FleetShareReport::new(&workload, shown.as_ref());
    output.give(|| json::to_text(&report), |style| text::fleet_share(&report, style))?;
    Ok(Answer::Yes)
}

fn load(wanted: &str, options: &Options) -> Read<ModelLayers> {
    let path = Path::new(wanted);
    if is_weights(path) {
        return read_weights(path);
    }
    let model = match options.classes {
        Some(classes) if !path.exists() => {
            foretrain::workload::known(wanted)?.for_classes(classes)?
        }
        _ => models::load(wanted)?,
    };
    Ok(ModelLayers::of(&model, options.dtype))
}

/// Instances of one model are told apart: `resnet-50`, `resnet-50 #2`.
fn number_namesakes(models: &mut [ModelLayers]) {
    for at in 1..models.len() {
        let (before, rest) = models.split_at_mut(at);
        let base = rest[0].name.clone();
        let mut number = 2;
        while before.iter().any(|other| other.name == rest[0].name) {
            rest[0].name = format!("{base} #{number}");
            number += 1;
        }
    }
}

struct Planned {
    plan: Plan,
    accuracy: String,
    notes: Vec<String>,
    spread: Option<Spread>,
}

fn make(workload: &Workload, accuracy: &Accuracy, options: &Options) -> Read<Planned> {
    let asked =
        PlanOptions { epochs: options.epochs, epoch_times: epoch_times(workload, options)? };
    let (epochs, seed) = (options.epochs, options.seed);
    let other = |draw: u32| seed.wrapping_add(u64::from(draw));
    Ok(match accuracy {
        Accuracy::Always => Planned {
            plan: plan(workload, &asked, &mut Always { epochs }),
            accuracy: "always kept (assumed): the most that could be saved".into(),
            notes: Vec::new(),
            spread: None,
        },
        Accuracy::Never => Planned {
            plan: plan(workload, &asked, &mut Never),
            accuracy: "never kept (assumed): the most that could be spent".into(),
            notes: Vec::new(),
            spread: None,
        },
        Accuracy::Chance(probability) => {
            let chance = Chance::new(*probability, epochs, seed)?;
            Planned {
                plan: plan(workload, &asked, &mut chance.clone()),
                accuracy: format!("kept by each model with probability {probability} (assumed)"),
                notes: Vec::new(),
                spread: spread(workload, &asked, options.draws, |draw| {
                    chance.with_seed(other(draw))
                }),
            }
        }
        Accuracy::Table(path) => {
            let text = foretrain::hardware::read_text(path).map_err(|error| {
                error.hint("or give always, never, or a probability such as 0.8")
            })?;
            let table = Table::parse(&text, epochs, seed).map_err(|error| error.in_file(path))?;
            let notes = table.check(workload).map_err(|error| error.in_file(path))?;
            let drawn = if table.is_random() { options.draws } else { 0 };
            Planned {
                plan: plan(workload, &asked, &mut table.clone()),
                accuracy: format!("from {}; what no row fits fails", path.display()),
                notes,
                spread: spread(workload, &asked, drawn, |draw| table.with_seed(other(draw))),
            }
        }
    })
}

/// An epoch's time of each model; nothing if none was given.
fn epoch_times(workload: &Workload, options: &Options) -> Read<Vec<Nanos>> {
    let names = || workload.models().iter().map(|model| model.name.as_str());
    let mut times = vec![None; workload.models().len()];
    for (model, time) in &options.epoch_times {
        match model {
            None => times
                .iter_mut()
                .filter(|given| given.is_none())
                .for_each(|given| *given = Some(*time)),
            Some(model) => match names().position(|name| name == model) {
                Some(at) => times[at] = Some(*time),
                None => {
                    let error = InputError::new(format!("no model is called {model:?}"));
                    let near = suggest::nearest(model, names());
                    let hint = near.map_or(String::new(), |near| format!("did you mean `{near}`?"));
                    return Err(error.at("--epoch-time").hint(hint));
                }
            },
        }
    }
    let missing = names().zip(&times).find(|(_, time)| time.is_none());
    if let (Some((name, _)), false) = (missing, options.epoch_times.is_empty()) {
        return Err(InputError::new(format!("no epoch's time of {name}"))
            .at("--epoch-time")
            .hint("give one for all models, as in --epoch-time 35s"));
    }
    Ok(times.into_iter().map(|time| time.unwrap_or(Nanos::ZERO)).collect())
}
