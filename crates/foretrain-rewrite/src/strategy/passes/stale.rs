//! Asynchronous updates with bounded staleness.

use foretrain_core::{InputError, Result};

use crate::strategy::draft::Draft;
use crate::strategy::parameters::{Kind, Parameter};
use crate::strategy::pass::{Pass, PassKind, Stage};

pub(super) const KIND: PassKind = PassKind {
    name: "stale",
    stage: Stage::Schedule,
    about: "Nothing waits for a step's own exchanges, only for those of so many steps before: asynchronous training with bounded staleness, seen by one worker.",
    source: "stale synchronous parallel training (NIPS '13)",
    parameters: &[Parameter::new("steps", Kind::Count, "1", "How stale parameters may be.")],
    build: &|values| {
        let steps = values.count("steps").unwrap_or(1);
        match u16::try_from(steps) {
            Ok(steps) if steps <= 1_000 => Ok(Box::new(Stale { steps })),
            _ => Err(InputError::new(format!("steps = {steps}: expected at most 1000"))),
        }
    },
};

struct Stale {
    steps: u16,
}

impl Pass for Stale {
    fn apply(&self, draft: &mut Draft<'_>) -> Result<()> {
        for exchange in &mut draft.exchanges {
            for anchor in &mut exchange.before {
                *anchor = anchor.later(self.steps);
            }
        }
        Ok(())
    }
}
