//! Steps replayed unchanged.

use super::ValidationSet;
use super::corpus::{Corpus, FileReplay};
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
            match &file.replay {
                Ok(replay) => score_file(&file.candidate.name, replay, &mut outcome),
                Err(why) => {
                    let what = file.candidate.name.clone();
                    outcome.skipped.push(Skipped { what, why: why.clone() });
                }
            }
        }
        outcome
    }
}

fn score_file(name: &str, replay: &FileReplay, outcome: &mut SetOutcome) {
    for step in &replay.steps {
        let result = match &step.unusable {
            Some(why) => Err(why.clone()),
            None => step.replayed.clone(),
        };
        match result {
            Ok(predicted) => outcome.rows.push(Row {
                group: name.to_owned(),
                what: step.name.clone(),
                predicted,
                measured: step.measured,
                ..Row::default()
            }),
            Err(why) => {
                outcome.skipped.push(Skipped { what: format!("{name}: {}", step.name), why });
            }
        }
    }
}
