//! Front layers first.

use foretrain_core::{Bytes, Result};

use crate::strategy::draft::Draft;
use crate::strategy::parameters::{Kind, Parameter};
use crate::strategy::pass::{Pass, PassKind, Stage};

pub(super) const KIND: PassKind = PassKind {
    name: "priority",
    stage: Stage::Schedule,
    about: "Links run the exchange of the front-most layer that is ready, and a layer's next forward pass waits for its own parameters only. A credit is how many bytes may be in flight; more hides latency, less lets urgent parts overtake sooner.",
    source: "P3 (arXiv 1905.03960), ByteScheduler (SOSP '19)",
    parameters: &[Parameter::optional(
        "credit",
        Kind::Size,
        "Bytes in flight; one exchange if unset.",
    )],
    build: &|values| Ok(Box::new(Priority { credit: values.size("credit") })),
};

struct Priority {
    credit: Option<Bytes>,
}

impl Pass for Priority {
    fn apply(&self, draft: &mut Draft<'_>) -> Result<()> {
        draft.by_priority = true;
        draft.in_order = false;
        draft.credit = self.credit;
        for exchange in &mut draft.exchanges {
            // Backward passes run from the last layer to the first: ready last is needed first.
            exchange.priority = i32::try_from(exchange.gradients.end).unwrap_or(i32::MAX);
            let gradients = &draft.gradients[exchange.micro_step];
            let range = exchange.gradients.start..exchange.gradients.end.min(gradients.len());
            let uses = gradients[range].iter().flat_map(|gradient| &gradient.forward);
            let mut uses: Vec<_> = uses.map(|anchor| anchor.later(1)).collect();
            if exchange.micro_step + 1 == draft.gradients.len() && !uses.is_empty() {
                uses.sort_unstable();
                uses.dedup();
                exchange.before = uses;
            }
        }
        Ok(())
    }
}
