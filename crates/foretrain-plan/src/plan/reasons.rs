//! Why a layout was chosen, or what is missing where none could be.

use foretrain_core::{Bytes, InputError, Result};
use serde::Serialize;

use super::explain::{Sensitivity, sensitivity};
use super::place::Place;
use super::rival::Rival;
use super::search::{Candidate, Question, search};
use crate::advice::{Advice, advice};
use crate::estimate::Answer;
use crate::layout::{Layout, Wish};

/// Why the winner wins.
#[derive(Clone, Debug, Serialize)]
pub struct Reasons {
    /// The next in the ranking.
    pub runner_up: Option<Rival>,
    /// The best that divides the model otherwise (by `tp`, `pp`, `cp` or `ep`), where the runner-up
    /// does not.
    pub other_split: Option<Rival>,
    /// How the winner answers to the hardware.
    pub sensitivity: Vec<Sensitivity>,
}

/// What is missing where nothing fits.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Needs {
    /// The layout that comes nearest.
    pub layout: Layout,
    /// What its fullest device needs.
    pub memory: Bytes,
    /// Single changes after which it fits, fastest first.
    pub advice: Vec<Advice>,
    /// The first doubling of the devices at which something fits.
    pub more_devices: Option<(u32, Candidate)>,
}

/// A layout that was asked about.
#[derive(Clone, Debug, Serialize)]
pub struct Explained {
    /// As it was asked for.
    pub asked: String,
    /// Why it is no layout of this job, and what to do.
    pub refused: Option<(String, Vec<String>)>,
    /// Everything about it.
    pub answer: Option<Answer>,
    /// Beside the winner, where there is one.
    pub rival: Option<Rival>,
    /// Its position in the ranking, counted from 1.
    pub rank: Option<usize>,
    /// Where it does not fit, single changes after which it does.
    pub advice: Vec<Advice>,
}

fn split(layout: &Layout) -> [u32; 4] {
    [layout.tensor, layout.pipeline, layout.context, layout.expert]
}

impl Reasons {
    /// Of a place with a winner.
    pub(super) fn of(question: &Question<'_>, place: &Place) -> Result<Option<Self>> {
        let (Some(winner), Some(first)) = (&place.winner, place.found.ranked.first()) else {
            return Ok(None);
        };
        let others = &place.found.ranked[1..];
        let other = |one: &&Candidate| split(&one.layout) != split(&first.layout);
        question.with_job(|job| {
            let rival = |one: &Candidate| Rival::of(question, job, winner, &one.layout);
            let next = others.first().filter(|one| !other(one));
            let apart = others.iter().find(other);
            let (runner_up, other_split) = match next {
                Some(next) => (Some(next), apart),
                None => (apart, None),
            };
            Ok(Some(Self {
                runner_up: runner_up.map(rival).transpose()?,
                other_split: other_split.map(rival).transpose()?,
                sensitivity: sensitivity(job, &winner.layout)?,
            }))
        })
    }
}

/// How often devices are doubled in search of a size that fits.
const DOUBLINGS: u32 = 3;

impl Needs {
    /// Of a place where nothing fits; `None` if there is no layout at all.
    pub(super) fn of(
        question: &Question<'_>,
        place: &Place,
        stop: &std::sync::atomic::AtomicBool,
    ) -> Option<Self> {
        let (layout, memory) = place.found.nearest.clone()?;
        let more_devices = (1..=DOUBLINGS).find_map(|doubling| {
            let devices = question.devices.checked_mul(1 << doubling)?;
            let larger = Question { devices, ..*question };
            let found = search(&larger, stop, &|_| {}).ok()?;
            Some((devices, found.ranked.into_iter().next()?))
        });
        let mut advice = question.with_job(|job| advice(question, job, &layout));
        advice.retain(|advice| advice.memory <= place.limit);
        Some(Self { layout, memory, advice, more_devices })
    }
}

impl Explained {
    /// What `asked` would be at this place.
    pub(super) fn of(question: &Question<'_>, place: &Place, asked: &str, wish: &Wish) -> Self {
        let mut explained = Self {
            asked: asked.to_owned(),
            refused: None,
            answer: None,
            rival: None,
            rank: None,
            advice: Vec::new(),
        };
        let refused =
            |error: &InputError| Some((error.message().to_owned(), error.hints().to_vec()));
        let layout = match wish.complete(question.devices) {
            Ok(layout) => layout,
            Err(error) => return Self { refused: refused(&error), ..explained },
        };
        question.with_job(|job| {
            let answer = match question.ask(job, &layout) {
                Ok(answer) => answer,
                Err(error) => return Self { refused: refused(&error), ..explained },
            };
            if answer.peak_memory() > place.limit {
                explained.advice = advice(question, job, &layout);
                explained.advice.retain(|advice| advice.memory <= place.limit);
            }
            let ranked = &place.found.ranked;
            explained.rank = ranked.iter().position(|one| one.layout == layout).map(|at| at + 1);
            // A layout beside itself says nothing, and one that cannot be timed at other batches
            // still has its answer.
            let winner = place.winner.as_ref().filter(|winner| winner.layout != layout);
            explained.rival =
                winner.and_then(|winner| Rival::of(question, job, winner, &layout).ok());
            explained.answer = Some(answer);
            explained
        })
    }
}
