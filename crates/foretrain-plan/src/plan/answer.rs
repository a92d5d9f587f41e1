//! The whole plan: every place, the best of them, and why.

use std::sync::atomic::{AtomicBool, Ordering};

use foretrain_core::{InputError, Nanos, Result};
use serde::Serialize;

use super::front::pareto;
use super::place::Place;
use super::reasons::{Explained, Needs, Reasons};
use super::search::{Progress, Question, search};
use crate::horizon::InTime;
use crate::layout::Wish;

/// What is to be finished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Goal {
    /// Tokens (or samples) to finish.
    pub tokens: Option<f64>,
    /// Seconds in which to finish them.
    pub within: Option<f64>,
}

/// How the best place was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Choice {
    /// There is one.
    Only,
    /// Most tokens per second.
    Fastest,
    /// Fewest dollars per token.
    Cheapest,
    /// Fewest dollars of those that finish in time.
    CheapestInTime,
    /// Most tokens per second, since none finishes in time.
    NoneInTime,
}

/// A cluster and size that could not be planned for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// The cluster.
    pub cluster: String,
    /// Devices.
    pub devices: u32,
    /// Why, and what to do.
    pub reason: String,
}

/// A layout that none beats in time, cost and memory at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct OnFront {
    /// Position of the place.
    pub place: usize,
    /// Position in its ranking.
    pub rank: usize,
}

/// A plan.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// In the order asked.
    pub places: Vec<Place>,
    /// What could not be planned for.
    pub left_out: Vec<LeftOut>,
    /// What is to be finished.
    pub goal: Goal,
    /// Position of the best place; `None` where nothing fits anywhere.
    pub best: Option<usize>,
    /// How it was chosen.
    pub choice: Choice,
    /// Layouts that none beats in time per token, cost per token and memory at once, the fastest
    /// first.
    pub front: Vec<OnFront>,
    /// Why the winner wins.
    pub reasons: Option<Reasons>,
    /// What is missing, where nothing fits anywhere; of the first place.
    pub needs: Option<Needs>,
    /// The layout that was asked about.
    pub explained: Option<Explained>,
    /// Whether every layout was looked at.
    pub complete: bool,
}

/// Plans for every question: one for each cluster and size, alike in everything else. `asked` is a
/// layout to explain, as written and as read. `progress` is told which question it is about.
///
/// # Errors
/// If nothing can be planned for at all: the first reason.
pub fn plan(
    questions: &[Question<'_>],
    goal: Goal,
    asked: Option<(&str, &Wish)>,
    stop: &AtomicBool,
    progress: &(dyn Fn(usize, Progress) + Sync),
) -> Result<Plan> {
    let mut places: Vec<(&Question<'_>, Place)> = Vec::new();
    let mut left_out = Vec::new();
    let mut first_error = None;
    for (at, question) in questions.iter().enumerate() {
        let found = question
            .cluster
            .nodes_for(u64::from(question.devices))
            .and_then(|_| search(question, stop, &|so_far| progress(at, so_far)))
            .and_then(|found| Place::of(question, found, goal.tokens));
        match found {
            Ok(place) => places.push((question, place)),
            Err(error) => {
                left_out.push(LeftOut {
                    cluster: question.cluster.name.clone(),
                    devices: question.devices,
                    reason: error.to_string(),
                });
                first_error.get_or_insert(error);
            }
        }
    }
    if places.is_empty() {
        return Err(first_error.unwrap_or_else(|| {
            InputError::new("no cluster to plan for").hint("name one with --on")
        }));
    }
    let (best, choice) = choose(&places, goal);
    let subject = best.unwrap_or(0);
    let (question, place) = &places[subject];
    let reasons = best.map(|_| Reasons::of(question, place)).transpose()?.flatten();
    let stopped = stop.load(Ordering::Relaxed);
    let needs = (best.is_none() && !stopped).then(|| Needs::of(question, place, stop)).flatten();
    let explained = asked.map(|(text, wish)| Explained::of(question, place, text, wish));
    let complete = places.iter().all(|(_, place)| place.found.looked_at == place.found.all);
    let places: Vec<Place> = places.into_iter().map(|(_, place)| place).collect();
    Ok(Plan {
        front: front(&places),
        places,
        left_out,
        goal,
        best,
        choice,
        reasons,
        needs,
        explained,
        complete,
    })
}

fn choose(places: &[(&Question<'_>, Place)], goal: Goal) -> (Option<usize>, Choice) {
    let rated: Vec<(usize, f64, Option<f64>, InTime)> = places
        .iter()
        .enumerate()
        .filter_map(|(at, (_, place))| {
            let time = place.winner.as_ref()?.time.value;
            let in_time = match (&place.horizon, goal.within) {
                (Some(horizon), Some(within)) => horizon.within(within),
                _ => InTime::Yes,
            };
            let rates = &place.rates;
            Some((at, rates.tokens_per_second(time), rates.dollars_per_million(time), in_time))
        })
        .collect();
    let fastest = || rated.iter().max_by(|a, b| a.1.total_cmp(&b.1)).map(|one| one.0);
    // Those whose whole interval is in time before those that are only likely to be.
    let cheapest = || {
        let priced = rated.iter().filter(|one| one.3 != InTime::No && one.2.is_some());
        let order = |one: &&(usize, f64, Option<f64>, InTime)| (one.3, one.2);
        priced
            .min_by(|a, b| {
                let ((a_time, a), (b_time, b)) = (order(a), order(b));
                a_time.cmp(&b_time).then(a.unwrap_or(0.0).total_cmp(&b.unwrap_or(0.0)))
            })
            .map(|one| one.0)
    };
    match (rated.len(), goal.tokens.and(goal.within)) {
        (0 | 1, _) => (fastest(), Choice::Only),
        (_, Some(_)) if rated.iter().all(|one| one.3 == InTime::No) => {
            (fastest(), Choice::NoneInTime)
        }
        (_, Some(_)) => match cheapest() {
            Some(at) => (Some(at), Choice::CheapestInTime),
            None => (fastest(), Choice::Fastest),
        },
        (_, None) if goal.tokens.is_some() => match cheapest() {
            Some(at) => (Some(at), Choice::Cheapest),
            None => (fastest(), Choice::Fastest),
        },
        _ => (fastest(), Choice::Fastest),
    }
}

/// Of each place only its own front can be on the common one: cost follows time there.
fn front(places: &[Place]) -> Vec<OnFront> {
    let mut items = Vec::new();
    for (at, place) in places.iter().enumerate() {
        items.extend(place.front().into_iter().map(|rank| OnFront { place: at, rank }));
    }
    let time = |item: &OnFront| places[item.place].found.ranked[item.rank].time.value;
    let per_token =
        |item: &OnFront, time: Nanos| time.secs_f64() / places[item.place].rates.tokens.max(1.0);
    let ends: Vec<[f64; 3]> = items
        .iter()
        .map(|item| {
            let (place, time) = (&places[item.place], time(item));
            let memory = place.found.ranked[item.rank].memory.as_f64();
            let dollars = place.rates.dollars_per_million(time).unwrap_or(f64::INFINITY);
            [per_token(item, time), dollars, memory]
        })
        .collect();
    let mut front: Vec<OnFront> = pareto(&ends).into_iter().map(|at| items[at]).collect();
    front.sort_by(|a, b| per_token(a, time(a)).total_cmp(&per_token(b, time(b))));
    front
}
