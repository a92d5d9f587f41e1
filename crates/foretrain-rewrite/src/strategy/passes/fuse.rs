//! PyTorch DDP's gradient buckets.

use foretrain_core::{Bytes, Result};

use super::fused;
use crate::buckets::{BucketCaps, assign_buckets};
use crate::strategy::draft::Draft;
use crate::strategy::parameters::{Kind, Parameter};
use crate::strategy::pass::{Pass, PassKind, Stage};

pub(super) const KIND: PassKind = PassKind {
    name: "fuse",
    stage: Stage::Fuse,
    about: "Fills buckets with gradients in the order in which they become ready. A bucket closes once it has reached its cap.",
    source: "PyTorch DDP: compute_bucket_assignment_by_size and the rebuilt buckets of the second step",
    parameters: &[
        Parameter::new("cap", Kind::Size, "25MiB", "A bucket of at least this size closes."),
        Parameter::optional("first", Kind::Size, "The cap of the first bucket, where it differs."),
    ],
    build: &|values| {
        let other = values.size("cap").unwrap_or(Bytes::from_mib(25));
        let first = values.size("first").unwrap_or(other);
        Ok(Box::new(Fuse { caps: BucketCaps { first, other } }))
    },
};

struct Fuse {
    caps: BucketCaps,
}

impl Pass for Fuse {
    fn apply(&self, draft: &mut Draft<'_>) -> Result<()> {
        let mut fusions = Vec::new();
        // Every backward pass fills buckets of its own.
        for exchanges in draft.exchanges.chunk_by(|a, b| a.micro_step == b.micro_step) {
            let sizes: Vec<Bytes> = exchanges.iter().map(|one| one.bytes).collect();
            let buckets = assign_buckets(&sizes, self.caps);
            fusions.extend(buckets.into_iter().filter_map(|range| fused(&exchanges[range])));
        }
        draft.exchanges = fusions;
        Ok(())
    }
}
