//! The time zero of a table.
//!
//! Some profilers stamp the first kernels of a session in another clock, and stray events sit at
//! zero or years away. Zero is therefore the earliest event of the dense part, never simply the
//! smallest stamp.

use foretrain_core::{InputError, Nanos};
use foretrain_trace::Category;

use super::Watch;
use crate::json::{Damage, Field, RawEvent, Sink, number};
use crate::options::ReadOptions;

/// Events further apart than this belong to different stretches of activity.
const GAP: i64 = 60_000_000_000;

/// Starts looked at to find the dense stretch; its beginning is then exact.
const SAMPLE: usize = 1 << 16;

/// The earliest start of the stretch with the most events; `None` without events.
pub(super) fn zero_of(starts: &[i64]) -> Option<i64> {
    let stride = starts.len().div_ceil(SAMPLE).max(1);
    let mut sample: Vec<i64> = starts.iter().step_by(stride).copied().collect();
    sample.sort_unstable();
    let (first, last) = densest(&sample)?;
    let near = first.saturating_sub(GAP)..=last;
    starts.iter().copied().filter(|start| near.contains(start)).min()
}

/// First and last of the longest run without a gap; the earlier of equals.
fn densest(sorted: &[i64]) -> Option<(i64, i64)> {
    sorted
        .chunk_by(|a, b| b.saturating_sub(*a) <= GAP)
        .rev()
        .max_by_key(|run| run.len())
        .and_then(|run| Some((*run.first()?, *run.last()?)))
}

/// Starts of work, for a first pass.
pub(super) struct Starts<'a> {
    starts: Vec<i64>,
    options: &'a ReadOptions,
    watch: Watch<'a>,
}

impl<'a> Starts<'a> {
    pub(super) fn new(options: &'a ReadOptions, watch: Watch<'a>) -> Self {
        Self { starts: Vec::new(), options, watch }
    }

    pub(super) fn zero(&self) -> Option<Nanos> {
        zero_of(&self.starts).map(Nanos::from_nanos)
    }
}

impl Sink for Starts<'_> {
    type Stop = InputError;

    fn event(&mut self, window: &str, event: &RawEvent) -> Result<(), InputError> {
        let phase = event.field(Field::Phase).raw(window);
        let category = event.field(Field::Category);
        if (phase == "X" || phase == "B") && is_dated(Category::parse(category.raw(window))) {
            self.starts.extend(number::micros_to_nanos(event.field(Field::Time).raw(window)));
        }
        Ok(())
    }

    fn member(&mut self, _: &str, _: &str) -> Result<(), InputError> {
        Ok(())
    }

    // The pass that reads the events reports damage.
    fn damage(&mut self, _: &Damage<'_>) -> Result<(), InputError> {
        Ok(())
    }

    fn progress(&mut self, _: u64) -> Result<(), InputError> {
        self.options.cancel.check()?;
        (self.watch)(0, self.starts.len() as u64 * 8)
    }
}

/// Whether events of this category say when the work happened. The profiler's own spans begin
/// before it.
pub(super) fn is_dated(category: Category) -> bool {
    category != Category::Span
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_tables_are_sampled_and_zero_is_exact() {
        let mut starts: Vec<i64> = (0..300_000).map(|i| 5_000 + i * 10).collect();
        starts[7] = 4_999;
        assert_eq!(zero_of(&starts), Some(4_999));
    }

    #[test]
    fn strays_do_not_move_zero() {
        let second = 1_000_000_000;
        let dense: Vec<i64> = (0..50).map(|i| 1_669_329_643 * second + i * 1000).collect();
        let mut starts = dense.clone();
        starts.extend([0, dense[0] - 100_000 * second, dense[0] + 315_360_000 * second]);
        starts.extend([i64::MAX, i64::MIN]);
        assert_eq!(zero_of(&starts), Some(dense[0]));
        assert_eq!(zero_of(&[]), None);
        assert_eq!(zero_of(&[7]), Some(7));
    }
}
