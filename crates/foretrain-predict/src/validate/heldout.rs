//! Steps predicted from the other steps of their recording.

use super::ValidationSet;
use super::corpus::{Corpus, StepReplay};
use super::report::{Row, SetOutcome};

/// Every step of every trace with two or more, predicted without it.
pub(super) struct HeldOutStep;

impl ValidationSet for HeldOutStep {
    fn name(&self) -> &'static str {
        "replay-heldout-step"
    }

    fn about(&self) -> &'static str {
        "Each step of a recording with two or more is predicted from the others: the steady graph \
         is learned without it and run from the recording's first step up to it. The reference \
         is the median of the other steps' measured times, which knows as much and no structure: \
         where steps differ by noise, no prediction can beat it by much. The 80 % interval comes \
         from how the other steps scatter around their own predictions; a single other step shows \
         no spread, and no interval is stated. Steps that do other work than the rest (by the \
         size of their graphs, more than a tenth) are left out: nothing in the recording tells of \
         them."
    }

    fn unit(&self) -> &'static str {
        "ms"
    }

    fn score(&self, corpus: &Corpus<'_>) -> SetOutcome {
        let mut outcome = SetOutcome {
            reference: Some("median of the other steps".into()),
            ..SetOutcome::default()
        };
        corpus.score_steps(&mut outcome, predict);
        outcome
    }
}

fn predict(step: &StepReplay) -> Result<Row, String> {
    if let Some(why) = step.unusable.as_ref().or(step.differs.as_ref()) {
        return Err(why.clone());
    }
    let Some(held_out) = step.held_out.clone() else {
        return Err("the only step of its recording".into());
    };
    let held_out = held_out?;
    Ok(Row {
        predicted: held_out.time.millis_f64(),
        low: held_out.interval.map(|(low, _)| low.millis_f64()),
        high: held_out.interval.map(|(_, high)| high.millis_f64()),
        reference: step.others,
        ..Row::default()
    })
}
