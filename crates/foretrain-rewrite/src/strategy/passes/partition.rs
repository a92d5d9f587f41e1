//! Splitting exchanges.

use foretrain_core::{Bytes, InputError, Result};

use crate::strategy::draft::{Draft, Exchange};
use crate::strategy::parameters::{Kind, Parameter};
use crate::strategy::pass::{Pass, PassKind, Stage};

/// More parts of one exchange than this mean a size in the wrong unit.
const MOST_PARTS: u64 = 100_000;

pub(super) const KIND: PassKind = PassKind {
    name: "partition",
    stage: Stage::Partition,
    about: "Splits exchanges into parts of at most a size, as equal as can be, so that links of both directions work at once and urgent parts can go first.",
    source: "P3 (arXiv 1905.03960), ByteScheduler (SOSP '19), BytePS (4,096,000 B by default)",
    parameters: &[Parameter::new("size", Kind::Size, "4MiB", "The largest part.")],
    build: &|values| {
        Ok(Box::new(Partition { size: values.size("size").unwrap_or(Bytes::from_mib(4)) }))
    },
};

struct Partition {
    size: Bytes,
}

impl Pass for Partition {
    fn apply(&self, draft: &mut Draft<'_>) -> Result<()> {
        let mut parts: Vec<Exchange> = Vec::new();
        // Where the parts of each exchange are, for those that follow it.
        let mut places: Vec<std::ops::Range<usize>> = Vec::new();
        for exchange in &draft.exchanges {
            let count = exchange.bytes.get().div_ceil(self.size.get().max(1)).max(1);
            if count > MOST_PARTS {
                return Err(InputError::new(format!(
                    "an exchange of {} in parts of {} would have {count} parts",
                    exchange.bytes, self.size
                ))
                .hint("write the size with its unit, as in partition(4MiB)"));
            }
            let begin = parts.len();
            for part in 0..count {
                let mut one = exchange.clone();
                let share = |i: u64| {
                    (u128::from(exchange.bytes.get()) * u128::from(i) / u128::from(count)) as u64
                };
                one.bytes = Bytes::new(share(part + 1) - share(part));
                one.follows = exchange
                    .follows
                    .iter()
                    .filter_map(|&i| places.get(i).cloned())
                    .flatten()
                    .collect();
                if count > 1 {
                    one.label = format!("part {} of {count}", part + 1);
                }
                parts.push(one);
            }
            places.push(begin..parts.len());
        }
        draft.exchanges = parts;
        Ok(())
    }
}
