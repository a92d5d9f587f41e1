//! The batches under which the worst-served stream is served best.

use foretrain_core::{Bytes, InputError, Result};
use rayon::prelude::*;

use super::simulate::{Outcome, Served, play, stamps};
use super::{Edge, EdgeModel, Run};

/// What a search found.
#[derive(Clone, Debug, PartialEq)]
pub struct Best {
    /// The best run.
    pub outcome: Outcome,
    /// Choices of batches that were played.
    pub tried: usize,
    /// Those that did not fit.
    pub too_large: usize,
}

/// Most frames that are played, over all streams and choices: some seconds.
const MOST: usize = 500_000_000;

/// Plays every choice of batches and keeps the one whose worst-served stream has the largest share
/// of frames processed; if that is equal, by the next worst, and so on. Shares count in hundredths,
/// and of equal choices the first is kept, as published. `None` if no choice fits.
///
/// # Errors
/// If the device cannot be simulated, or there are too many choices.
pub fn search(edge: &Edge, memory: Option<Bytes>) -> Result<Option<Best>> {
    edge.check()?;
    let frames = edge.models.len() * edge.frames as usize;
    let choices = edge.models.iter().try_fold(1_usize, |all, model| {
        all.checked_mul(model.runs.len()).filter(|choices| choices.saturating_mul(frames) <= MOST)
    });
    let Some(choices) = choices else {
        let message = format!("choices of batches that play more than {MOST} frames in all");
        return Err(InputError::new(message).hint("describe fewer batches, models or frames"));
    };
    let stamps = stamps(edge);
    let played: Vec<Option<Outcome>> = (0..choices)
        .into_par_iter()
        .map(|number| play(edge, memory, &stamps, &choice(&edge.models, number)))
        .collect();
    let tried = played.len();
    let mut best: Option<(Vec<u32>, Outcome)> = None;
    let mut fitting = 0;
    for outcome in played.into_iter().flatten() {
        fitting += 1;
        let rank = rank(&outcome);
        if best.as_ref().is_none_or(|(before, _)| rank > *before) {
            best = Some((rank, outcome));
        }
    }
    Ok(best.map(|(_, outcome)| Best { outcome, tried, too_large: tried - fitting }))
}

/// The runs of a choice of batches; the last model's change fastest.
fn choice(models: &[EdgeModel], mut number: usize) -> Vec<Run> {
    let mut runs: Vec<Run> = models
        .iter()
        .rev()
        .map(|model| {
            let run = model.runs[number % model.runs.len()];
            number /= model.runs.len();
            run
        })
        .collect();
    runs.reverse();
    runs
}

fn rank(outcome: &Outcome) -> Vec<u32> {
    let mut shares: Vec<u32> = outcome.served.iter().map(Served::hundredths).collect();
    shares.sort_unstable();
    shares
}
