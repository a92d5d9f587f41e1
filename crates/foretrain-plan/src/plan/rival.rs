//! The winner beside one other layout.

use foretrain_core::{Nanos, Result};
use serde::Serialize;

use super::Question;
use super::explain::{Asked, Comparison, Crossover, compare, crossovers, lcm, round};
use crate::estimate::Answer;
use crate::layout::Layout;
use crate::step::Job;

/// A layout that was not chosen, and why.
#[derive(Clone, Debug, Serialize)]
pub struct Rival {
    /// Everything about it.
    pub answer: Answer,
    /// What it spends more than the winner, part by part.
    pub comparison: Comparison,
    /// Where the order flips.
    pub crossovers: Vec<Crossover>,
    /// Step times of both at other batches.
    pub by_batch: Vec<AtBatch>,
}

/// Step times of two layouts at one batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct AtBatch {
    /// Samples of a step.
    pub global_batch: u64,
    /// The winner's.
    pub winner: Nanos,
    /// The other's.
    pub rival: Nanos,
}

impl Rival {
    /// Puts `layout` beside the winner.
    ///
    /// # Errors
    /// If it does not go with the model, the batch or the cluster.
    pub(super) fn of(
        question: &Question<'_>,
        job: &Job<'_>,
        winner: &Answer,
        layout: &Layout,
    ) -> Result<Self> {
        let answer = question.ask(job, layout)?;
        Ok(Self {
            comparison: compare(&winner.step, &answer.step),
            crossovers: crossovers(job, &winner.layout, layout)?,
            by_batch: by_batch(job, &winner.layout, layout),
            answer,
        })
    }
}

/// Batches are shown from this part of the one asked for to this multiple of it.
const WIDEST: u64 = 16;

/// Both at batches that both can deal out, by doubling.
fn by_batch(job: &Job<'_>, winner: &Layout, rival: &Layout) -> Vec<AtBatch> {
    let now = job.training.global_batch;
    let step = lcm(round(winner), round(rival)).max(1);
    let mut batches: Vec<u64> = std::iter::successors(Some(WIDEST), |n| Some(n / 2))
        .take_while(|&n| n > 1)
        .filter(|n| now.is_multiple_of(*n))
        .map(|n| now / n)
        .collect();
    let larger = std::iter::successors(Some(1), |n| Some(n * 2)).take_while(|&n| n <= WIDEST);
    batches.extend(larger.map(|n| now.saturating_mul(n)));
    batches.retain(|batch| batch.is_multiple_of(step));
    let at = |global_batch: u64| {
        let training = crate::Training { global_batch, ..job.training.clone() };
        let asked = Asked::of(job).training(&training);
        let (winner, rival) = (asked.time(winner).ok()?, asked.time(rival).ok()?);
        Some(AtBatch { global_batch, winner, rival })
    };
    batches.into_iter().filter_map(at).collect()
}
