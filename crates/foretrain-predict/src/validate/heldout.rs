//! Steps predicted from the other steps of their recording.

use super::ValidationSet;
use super::corpus::{Corpus, FileReplay};
use super::report::{Row, SetOutcome, Skipped};

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
         where steps differ by noise, no prediction can beat it by much. Steps that do other work \
         than the rest (by the size of their graphs, more than a tenth) are left out: nothing in \
         the recording tells of them."
    }

    fn unit(&self) -> &'static str {
        "ms"
    }

    fn score(&self, corpus: &Corpus<'_>) -> SetOutcome {
        let mut outcome = SetOutcome {
            reference: Some("median of the other steps".into()),
            ..SetOutcome::default()
        };
        for file in corpus.files() {
            if let Ok(replay) = &file.replay {
                score_file(&file.candidate.name, replay, &mut outcome);
            }
        }
        outcome
    }
}

fn score_file(name: &str, replay: &FileReplay, outcome: &mut SetOutcome) {
    for step in &replay.steps {
        let result = match (step.unusable.as_ref().or(step.differs.as_ref()), &step.held_out) {
            (Some(why), _) => Err(why.clone()),
            (None, Some(result)) => result.clone(),
            (None, None) => Err("the only step of its recording".into()),
        };
        match result {
            Ok(predicted) => outcome.rows.push(Row {
                group: name.to_owned(),
                what: step.name.clone(),
                predicted,
                measured: step.measured,
                reference: step.others,
                ..Row::default()
            }),
            Err(why) => {
                outcome.skipped.push(Skipped { what: format!("{name}: {}", step.name), why });
            }
        }
    }
}
