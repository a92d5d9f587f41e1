//! Steps replayed unchanged.

use super::ValidationSet;
use super::corpus::Corpus;
use super::report::{Row, SetOutcome, Skipped};

/// Every step of every trace, rebuilt as a graph and simulated without a change.
pub(super) struct Replay;

impl ValidationSet for Replay {
    fn name(&self) -> &'static str {
        "replay"
    }

    fn about(&self) -> &'static str {
        "Each recorded step is rebuilt as a graph of durations and dependencies and simulated \
         unchanged; the result is compared with the step's measured time. This checks that the \
         graphs are consistent (no lost work, no wait that was not there); it is no forecast, for \
         durations and tight delays come from the same step."
    }

    fn unit(&self) -> &'static str {
        "ms"
    }

    fn score(&self, corpus: &Corpus<'_>) -> SetOutcome {
        let mut outcome =
            SetOutcome { skipped: corpus.skipped().to_vec(), ..SetOutcome::default() };
        for file in corpus.files() {
            if let Err(why) = &file.replay {
                let what = file.candidate.name.clone();
                outcome.skipped.push(Skipped { what, why: why.clone() });
            }
        }
        corpus.score_steps(&mut outcome, |step| {
            let predicted = step.unusable.clone().map_or_else(|| step.replayed.clone(), Err)?;
            Ok(Row { predicted, ..Row::default() })
        });
        outcome
    }
}
