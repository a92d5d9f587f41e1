//! Machines that fail and come back.

use foretrain_core::Nanos;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// How often machines fail.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Failures {
    /// Mean time between failures of one node.
    pub every: Nanos,
    /// Mean time until a node is back.
    pub repair: Nanos,
    /// How often jobs save what they did; zero for never.
    pub checkpoint_every: Nanos,
}

/// Exponentially distributed times, drawn for each node by itself: what one node does never depends
/// on how many there are.
pub(super) struct NodeEvents {
    failures: Option<Failures>,
    random: Vec<Pcg64>,
}

impl NodeEvents {
    pub(super) fn new(failures: Option<Failures>, nodes: usize, seed: u64) -> Self {
        let count = if failures.is_some() { nodes } else { 0 };
        let stream = |node: usize| {
            Pcg64::seed_from_u64(seed ^ (node as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
        };
        Self { failures, random: (0..count).map(stream).collect() }
    }

    /// The first failure of each node.
    pub(super) fn first(&mut self, from: Nanos) -> Vec<(u32, Nanos)> {
        (0..self.random.len() as u32).map(|node| (node, self.next(node, true, from))).collect()
    }

    /// When a node that went up or down at `now` next changes.
    pub(super) fn next(&mut self, node: u32, up: bool, now: Nanos) -> Nanos {
        let Some((failures, random)) =
            self.failures.as_ref().zip(self.random.get_mut(node as usize))
        else {
            return Nanos::MAX;
        };
        let mean = if up { failures.every } else { failures.repair };
        let chance: f64 = random.random();
        now.saturating_add(mean.scale(-(1.0 - chance).ln()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exponential_and_the_nodes_own() {
        let hour = Nanos::from_millis(3_600_000);
        let failures = Failures { every: hour, repair: hour, checkpoint_every: hour };
        let mut few = NodeEvents::new(Some(failures), 2, 7);
        let mut many = NodeEvents::new(Some(failures), 2_000, 7);
        let first = many.first(Nanos::ZERO);
        assert_eq!(few.first(Nanos::ZERO), first[..2]);
        let mean = first.iter().map(|(_, time)| time.secs_f64()).sum::<f64>() / 2_000.0;
        assert!((mean / hour.secs_f64() - 1.0).abs() < 0.1, "{mean}");
    }
}
