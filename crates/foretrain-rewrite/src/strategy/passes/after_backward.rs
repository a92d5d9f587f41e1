//! No overlap with the backward pass.

use foretrain_core::Result;

use crate::strategy::draft::Draft;
use crate::strategy::pass::{Pass, PassKind, Stage};

pub(super) const KIND: PassKind = PassKind {
    name: "after-backward",
    stage: Stage::Schedule,
    about: "Exchanges start only when the backward pass has ended: bulk-synchronous training without overlap.",
    source: "the usual baseline of scheduling papers",
    parameters: &[],
    build: &|_| Ok(Box::new(AfterBackward)),
};

struct AfterBackward;

impl Pass for AfterBackward {
    fn apply(&self, draft: &mut Draft<'_>) -> Result<()> {
        for exchange in &mut draft.exchanges {
            if let Some(last) = draft.gradients[exchange.micro_step].last() {
                exchange.after.extend(&last.ready);
                exchange.after.sort_unstable();
                exchange.after.dedup();
            }
        }
        Ok(())
    }
}
