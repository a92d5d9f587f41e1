//! The whole plan: every place, the best of them, and why.

use std::sync::atomic::{AtomicBool, Ordering};

use foretrain_core::{InputError, Nanos, Result};
use serde::Serialize;

use super::front::pareto;
use super::place::Place;
use super::reasons::{Explained, Needs, Reasons};
use super::search::{Progress, Question};
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
        let found = Place::search(question, stop, &|so_far| progress(at, so_far), goal.tokens);
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

/// What decides between places.
struct Rated {
    at: usize,
    tokens_per_second: f64,
    dollars_per_million: Option<f64>,
    in_time: InTime,
}

impl Rated {
    fn of(at: usize, place: &Place, goal: Goal) -> Option<Self> {
        let time = place.winner.as_ref()?.time.value;
        let in_time = match (&place.horizon, goal.within) {
            (Some(horizon), Some(within)) => horizon.within(within),
            _ => InTime::Yes,
        };
        Some(Self {
            at,
            tokens_per_second: place.rates.tokens_per_second(time),
            dollars_per_million: place.rates.dollars_per_million(time),
            in_time,
        })
    }
}

fn choose(places: &[(&Question<'_>, Place)], goal: Goal) -> (Option<usize>, Choice) {
    let all = places.iter().enumerate();
    let rated: Vec<Rated> = all.filter_map(|(at, (_, place))| Rated::of(at, place, goal)).collect();
    let fastest = rated
        .iter()
        .max_by(|a, b| a.tokens_per_second.total_cmp(&b.tokens_per_second).then(b.at.cmp(&a.at)))
        .map(|one| one.at);
    if rated.len() < 2 || goal.tokens.is_none() {
        return (fastest, if rated.len() < 2 { Choice::Only } else { Choice::Fastest });
    }
    if rated.iter().all(|one| one.in_time == InTime::No) {
        return (fastest, Choice::NoneInTime);
    }
    // Those whose whole interval is in time before those that are only likely to be.
    let priced = rated.iter().filter(|one| one.in_time != InTime::No);
    let cheapest = priced
        .filter_map(|one| Some((one.in_time, one.dollars_per_million?, one.at)))
        .min_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    match cheapest {
        Some((_, _, at)) if goal.within.is_some() => (Some(at), Choice::CheapestInTime),
        Some((_, _, at)) => (Some(at), Choice::Cheapest),
        None => (fastest, Choice::Fastest),
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
