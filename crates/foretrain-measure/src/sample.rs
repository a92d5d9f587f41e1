//! How often to repeat.

use std::time::{Duration, Instant};

use foretrain_core::Result;

use crate::clock::Clock;

/// Repeats of a size whatever they take.
const FEWEST: usize = 3;
/// More repeats tell nothing more.
const MOST: usize = 200;
/// Work shorter than this is measured several times at once, so that the clock's grain does not
/// matter.
const SHORTEST_NS: f64 = 50_000.0;
const LARGEST_BATCH: u32 = 1 << 16;

/// When to stop repeating.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    until: Instant,
}

impl Patience {
    /// Until the time is over.
    pub(crate) fn of(time: Duration) -> Self {
        Self { until: Instant::now() + time }
    }

    /// Whether to go on after so many repeats.
    pub(crate) fn lasts(&self, repeats: usize) -> bool {
        repeats < FEWEST || (repeats < MOST && Instant::now() < self.until)
    }
}

/// The processor time of a piece of work in ns, again and again. The first time is not
/// counted: pages are new then, and the processor is slow.
pub(crate) fn repeat(
    clock: &Clock,
    patience: Patience,
    mut work: impl FnMut(),
) -> Result<Vec<f64>> {
    work();
    let mut batch = 1;
    loop {
        let took = time(clock, batch, &mut work)?;
        if took >= SHORTEST_NS || batch >= LARGEST_BATCH {
            break;
        }
        batch *= 2;
    }
    let mut times = Vec::new();
    while patience.lasts(times.len()) {
        times.push(time(clock, batch, &mut work)? / f64::from(batch));
    }
    Ok(times)
}

fn time(clock: &Clock, batch: u32, work: &mut impl FnMut()) -> Result<f64> {
    let ((), ns) = clock.time(|| (0..batch).for_each(|_| work()))?;
    Ok(ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_repeats_without_any_time() {
        let clock = Clock::new().unwrap();
        let mut calls = 0_u64;
        let times = repeat(&clock, Patience::of(Duration::ZERO), || calls += 1).unwrap();
        assert_eq!(times.len(), FEWEST);
        assert!(calls > 1_000, "short work is repeated in batches: {calls}");
        assert!(!Patience::of(Duration::from_secs(60)).lasts(MOST));
    }
}
