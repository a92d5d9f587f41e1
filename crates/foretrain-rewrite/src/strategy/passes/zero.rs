//! ZeRO: sharded optimiser states, gradients and parameters.

use foretrain_core::{InputError, Result};

use super::accumulate::each_micro_step;
use super::fsdp::{Sharding, shard, shard_optimiser};
use crate::strategy::draft::{Draft, Exchange};
use crate::strategy::parameters::{Kind, Parameter};
use crate::strategy::pass::{Pass, PassKind, Stage};
use foretrain_core::Nanos;
use foretrain_graph::CollectiveKind;

pub(super) const KIND: PassKind = PassKind {
    name: "zero",
    stage: Stage::Shard,
    about: "Stage 1 shards optimiser states: gradients are reduce-scattered once per step and updated parameters gathered. Stage 2 shards gradients too, so every micro-batch reduces them. Stage 3 shards parameters: gathered before each use, forward and backward, in every micro-batch.",
    source: "ZeRO (arXiv 1910.02054)",
    parameters: &[
        Parameter::new("stage", Kind::Count, "1", "1, 2 or 3."),
        Parameter::new("prefetch", Kind::Count, "1", "Units gathered ahead (stage 3)."),
    ],
    build: &|values| {
        let prefetch = values.count("prefetch").unwrap_or(1) as usize;
        match values.count("stage") {
            Some(stage @ 1..=3) => Ok(Box::new(Zero { stage: stage as u8, prefetch })),
            stage => {
                Err(InputError::new(format!("stage = {}: expected 1, 2 or 3", stage.unwrap_or(0))))
            }
        }
    },
};

struct Zero {
    stage: u8,
    prefetch: usize,
}

impl Pass for Zero {
    fn apply(&self, draft: &mut Draft<'_>) -> Result<()> {
        if self.stage == 3 {
            let everyone = draft.costs.everyone();
            return shard(
                draft,
                &Sharding { shards: everyone.size, prefetch: self.prefetch, reshard: true },
            );
        }
        if self.stage == 2 {
            each_micro_step(draft);
        }
        for exchange in &mut draft.exchanges {
            exchange.kind = CollectiveKind::ReduceScatter;
        }
        shard_optimiser(draft, draft.costs.replicas());
        gather_after_update(draft);
        Ok(())
    }
}

/// Every replica gets the parameters that the others updated, bucket by bucket.
fn gather_after_update(draft: &mut Draft<'_>) {
    let last = draft.micro_steps() - 1;
    let after: Vec<_> = draft.optimiser.last.into_iter().collect();
    let before: Vec<_> = draft.first_work().into_iter().map(|anchor| anchor.later(1)).collect();
    let gathers: Vec<Exchange> = draft
        .exchanges
        .iter()
        .filter(|one| one.micro_step == last)
        .map(|one| Exchange {
            kind: CollectiveKind::AllGather,
            after: after.clone(),
            before: before.clone(),
            delay: Nanos::ZERO,
            label: "updated parameters".into(),
            ..one.clone()
        })
        .collect();
    draft.exchanges.extend(gathers);
}
