//! Predicting a recorded step from the others.

use foretrain_core::stats::quantile_sorted;
use foretrain_core::{InputError, Nanos, Result};
use foretrain_graph::attributes::well_known;
use foretrain_graph::{Job, StepGraph};
use foretrain_sim::{InitialBusy, SimOptions};
use rustc_hash::FxHashMap;

use super::{marked_step, no_marks, run};
use crate::recording::Recording;

/// A step predicted without looking at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldOutStep {
    /// Predicted step time.
    pub time: Nanos,
    /// The 80 % interval; `None` with a single other step, which shows no spread.
    pub interval: Option<(Nanos, Nanos)>,
}

/// Predicts a step from the other steps of the recording: the steady graph learned without it is
/// run from the recording's first step up to it, from an idle device or from mid-run as the
/// recording itself began. The interval comes from how far the others are from their own
/// predictions.
///
/// # Errors
/// If there is no other step, or the graph cannot be simulated.
pub fn predict_held_out_step(recording: &Recording, step: usize) -> Result<HeldOutStep> {
    let count = recording.graphs.len();
    let graph = (count >= 2)
        .then(|| recording.steady_without(step))
        .flatten()
        .ok_or_else(|| InputError::new("no other step to learn from"))?;
    // A recording that begins with device work still queued began in the middle of a run.
    let busy = initial_busy(&recording.graphs[0], &graph);
    let warm_up = if busy.is_empty() { 0 } else { WARM_UP };
    let options = SimOptions::iterations((warm_up + count) as u32);
    let timeline = run(&Job::uniform(graph.clone(), 1), &options, &graph.meta.source)?;
    let predicted = |step: usize| {
        marked_step(&timeline, 0, &graph, warm_up + step).ok_or_else(|| no_marks(&graph))
    };
    let time = predicted(step)?;
    let mut ratios = Vec::with_capacity(count);
    for (other, recorded) in recording.steps.steps.iter().enumerate() {
        let predicted = predicted(other)?;
        let usable = other != step && !recorded.incomplete;
        if usable && predicted > Nanos::ZERO && recorded.duration() > Nanos::ZERO {
            ratios.push(recorded.duration().nanos() as f64 / predicted.nanos() as f64);
        }
    }
    let interval = interval80(&mut ratios).map(|(low, high)| (time.scale(low), time.scale(high)));
    Ok(HeldOutStep { time, interval })
}

/// From this many others on, their order alone gives the interval.
const RANKED: usize = 9;

/// The interval in which one more ratio lies with 80 %.
///
/// With enough of them it is cut off at their ranks: a new value falls between any two neighbours
/// of `n` others with probability `1 / (n + 1)`, whatever the distribution. Fewer do not reach far
/// enough; then logarithms are taken as normal around the prediction (Student's prediction
/// interval).
fn interval80(ratios: &mut [f64]) -> Option<(f64, f64)> {
    let n = ratios.len();
    if n < 2 {
        return None;
    }
    ratios.sort_by(f64::total_cmp);
    if n >= RANKED {
        let tail = (0.1 * (n + 1) as f64 - 1.0) / (n - 1) as f64;
        return Some((quantile_sorted(ratios, tail)?, quantile_sorted(ratios, 1.0 - tail)?));
    }
    let squares: f64 = ratios.iter().map(|ratio| ratio.ln().powi(2)).sum();
    let spread = (squares / (n - 1) as f64).sqrt();
    let reach = STUDENT_90[n - 2] * spread * (1.0 + 1.0 / n as f64).sqrt();
    Some(((-reach).exp(), reach.exp()))
}

/// The 0.9 quantile of Student's t for 1, 2, ... degrees of freedom (any table).
const STUDENT_90: [f64; RANKED - 2] = [3.078, 1.886, 1.638, 1.533, 1.476, 1.440, 1.415];

/// Steps simulated before the first recorded one, where the recording begins in mid-run.
const WARM_UP: usize = 3;

/// How long each stream is still busy with earlier work when the first step begins.
fn initial_busy(first: &StepGraph, graph: &StepGraph) -> Vec<InitialBusy> {
    let mut busy: FxHashMap<&str, i64> = FxHashMap::default();
    for id in first.node_ids() {
        let get = |name| first.node_attributes.get_i64(name, id.index()).unwrap_or(0);
        if first.is_carried_in(id) {
            let end = get(well_known::RECORDED_START) + get(well_known::RECORDED_DURATION);
            let until = busy.entry(&first.queues[first.queue(id).index()].name).or_default();
            *until = (*until).max(end);
        }
    }
    graph
        .queues
        .iter()
        .enumerate()
        .filter_map(|(queue, q)| {
            let until = *busy.get(q.name.as_str())?;
            Some(InitialBusy {
                class: 0,
                queue: foretrain_graph::QueueId::from_index(queue),
                until: Nanos::from_nanos(until),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_give_the_interval_of_many() {
        // The first and last of nine leave a tenth of the probability outside on each side.
        let mut ratios = [0.9, 1.3, 0.8, 1.0, 1.1, 2.0, 1.05, 0.95, 1.2];
        assert_eq!(interval80(&mut ratios), Some((0.8, 2.0)));
        let mut ratios: Vec<f64> = (1..=19).map(f64::from).collect();
        assert_eq!(interval80(&mut ratios), Some((2.0, 18.0)));
    }

    #[test]
    fn few_reach_further_than_they_spread() {
        let (low, high) = interval80(&mut [1.1, 1.0 / 1.1]).expect("two");
        assert!(low < 0.8 && high > 1.2, "{low} {high}");
        let (low, high) = interval80(&mut [1.1, 1.0 / 1.1, 1.1, 1.0 / 1.1, 1.1]).expect("five");
        assert!((0.8..0.9).contains(&low) && (1.1..1.2).contains(&high), "{low} {high}");
        assert_eq!(interval80(&mut [1.0]), None);
    }
}
