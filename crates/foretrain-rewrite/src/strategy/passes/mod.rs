//! Foretrain's own passes, one mechanism each.

mod accumulate;
mod after_backward;

mod buffers;
mod collectives;
mod compress;
mod copies;
mod fsdp;
mod fuse;
mod horovod;
mod local_sgd;
mod merge;
mod partition;
mod priority;
mod push_pull;
mod servers;
mod stale;
mod zero;

pub use partition::equal_parts;

use super::draft::Exchange;
use super::pass::PassKind;

/// All of them, in the order of their stages.
pub(super) fn all() -> Vec<PassKind> {
    vec![
        accumulate::KIND,
        local_sgd::KIND,
        copies::KIND,
        fuse::KIND,
        horovod::KIND,
        merge::KIND,
        zero::KIND,
        fsdp::KIND,
        partition::KIND,
        compress::KIND,
        collectives::LIBRARY,
        collectives::RING,
        collectives::TREE,
        collectives::HIERARCHICAL,
        servers::KIND,
        push_pull::KIND,
        priority::KIND,
        after_backward::KIND,
        stale::KIND,
        buffers::KIND,
    ]
}

/// One exchange instead of several of a micro-batch, in the order in which their gradients are ready: it
/// starts when the last of them could, and everything that waited for one of them waits for it. `None` of none.
pub fn fused(exchanges: &[Exchange]) -> Option<Exchange> {
    let last = exchanges.last()?;
    let mut fused = last.clone();
    fused.bytes = exchanges.iter().map(|one| one.bytes).sum();
    fused.gradients.start = exchanges[0].gradients.start;
    fused.before = exchanges.iter().flat_map(|one| one.before.iter().copied()).collect();
    fused.before.sort_unstable();
    fused.before.dedup();
    fused.priority = exchanges.iter().map(|one| one.priority).max().unwrap_or(0);
    Some(fused)
}
