//! Merging gradients where that hides more than it delays.

use foretrain_core::{Bytes, Nanos, Result};
use foretrain_graph::CollectiveKind;

use super::fused;
use crate::strategy::costs::Call;
use crate::strategy::draft::{Draft, Exchange};
use crate::strategy::pass::{Pass, PassKind, Stage};

pub(super) const KIND: PassKind = PassKind {
    name: "merge",
    stage: Stage::Fuse,
    about: "Merges a gradient with those before it if their exchange would still be running when the merged one could end as early: MG-WFBP's trade of start-up costs against waiting.",
    source: "MG-WFBP (arXiv 1811.11141); the test is that of dPRO's tensor fusion",
    parameters: &[],
    build: &|_| Ok(Box::new(Merge)),
};

struct Merge;

impl Pass for Merge {
    fn apply(&self, draft: &mut Draft<'_>) -> Result<()> {
        let time = |bytes: Bytes| {
            let scope = draft.costs.everyone();
            let call = Call { kind: CollectiveKind::AllReduce, bytes, scope, method: None };
            draft.costs.collective(&call).whole.value
        };
        let ready = |one: &Exchange| {
            let last = one.gradients.end.saturating_sub(1);
            let gradients = &draft.gradients[one.micro_step];
            gradients.get(last).map_or(Nanos::ZERO, |gradient| gradient.at)
        };
        let mut merged = Vec::new();
        // The link is free from here on; the group under way could end at `end`.
        let (mut free, mut from) = (Nanos::ZERO, 0);
        for to in 1..=draft.exchanges.len() {
            let group = &draft.exchanges[from..to];
            let bytes: Bytes = group.iter().map(|one| one.bytes).sum();
            let start = free.max(group.last().map_or(Nanos::ZERO, ready));
            let end = start + time(bytes);
            let joins = draft.exchanges.get(to).is_some_and(|next| {
                next.micro_step == draft.exchanges[from].micro_step
                    && end > ready(next) + time(bytes + next.bytes) - time(next.bytes)
            });
            if !joins {
                merged.extend(fused(group));
                (free, from) = (end, to);
            }
        }
        draft.exchanges = merged;
        Ok(())
    }
}
