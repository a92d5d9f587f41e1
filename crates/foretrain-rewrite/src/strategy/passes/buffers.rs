//! DDP's broadcast of buffers.

use foretrain_core::{Bytes, InputError, Nanos, Result};
use foretrain_graph::CollectiveKind;

use crate::strategy::draft::{Draft, Exchange, Way};
use crate::strategy::parameters::{Kind, Parameter};
use crate::strategy::pass::{Pass, PassKind, Stage};

pub(super) const KIND: PassKind = PassKind {
    name: "buffers",
    stage: Stage::Schedule,
    about: "Broadcasts the buffers of modules, such as running statistics of batch normalisation, before the forward pass: a point at which every replica waits for the first.",
    source: "PyTorch DDP with broadcast_buffers",
    parameters: &[Parameter::optional("bytes", Kind::Size, "Size of all buffers.")],
    build: &|values| match values.size("bytes") {
        Some(bytes) => Ok(Box::new(Buffers { bytes })),
        None => Err(InputError::new("how large the buffers are is not said")
            .hint("write buffers(40kB), say")),
    },
};

struct Buffers {
    bytes: Bytes,
}

impl Pass for Buffers {
    fn apply(&self, draft: &mut Draft<'_>) -> Result<()> {
        let after = draft.optimiser.last.map(|anchor| anchor.later(1));
        // Issued before all others of the step.
        for one in draft.exchanges.iter_mut().flat_map(|exchange| &mut exchange.follows) {
            *one += 1;
        }
        let broadcast = Exchange {
            kind: CollectiveKind::Broadcast,
            bytes: self.bytes,
            gradients: 0..0,
            micro_step: draft.micro_steps().saturating_sub(1),
            scope: draft.costs.everyone(),
            after: after.into_iter().collect(),
            follows: Vec::new(),
            delay: Nanos::ZERO,
            before: draft.first_work().into_iter().collect(),
            priority: i32::MAX,
            codec: None,
            way: Way::Library,
            copied: false,
            label: "buffers".into(),
        };
        draft.exchanges.insert(0, broadcast);
        Ok(())
    }
}
