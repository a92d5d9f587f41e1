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

/// Sizes of the parts of an exchange, of at most a size and as equal as can be.
///
/// # Errors
/// If they are too many to be meant.
pub fn equal_parts(bytes: Bytes, most: Bytes) -> Result<impl ExactSizeIterator<Item = Bytes>> {
    let count = bytes.get().div_ceil(most.get().max(1)).max(1);
    if count > MOST_PARTS {
        return Err(InputError::new(format!(
            "an exchange of {bytes} in parts of {most} would have {count} parts"
        ))
        .hint("write the size with its unit, as in partition(4MiB)"));
    }
    let share = move |i: u32| (u128::from(bytes.get()) * u128::from(i) / u128::from(count)) as u64;
    Ok((0..count as u32).map(move |part| Bytes::new(share(part + 1) - share(part))))
}

struct Partition {
    size: Bytes,
}

impl Pass for Partition {
    fn apply(&self, draft: &mut Draft<'_>) -> Result<()> {
        let mut parts: Vec<Exchange> = Vec::new();
        // Where the parts of each exchange are, for those that follow it.
        let mut places: Vec<std::ops::Range<usize>> = Vec::new();
        for exchange in &draft.exchanges {
            let sizes = equal_parts(exchange.bytes, self.size)?;
            let count = sizes.len();
            let begin = parts.len();
            for (part, bytes) in sizes.enumerate() {
                let mut one = exchange.clone();
                one.bytes = bytes;
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
