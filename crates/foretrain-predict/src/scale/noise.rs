//! Random lateness of ranks.

use foretrain_core::Nanos;
use foretrain_core::stats::expected_normal_max;

/// What makes real steps longer than the steps of typical times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Noise {
    /// Relative standard deviation of a rank's own step.
    pub(crate) sigma: f64,
    /// Time of the recorded step that its ranks' typical steps do not explain: ranks that are
    /// late at random, each step another.
    pub(crate) excess: Nanos,
    /// Ranks in the recorded job.
    pub(crate) ranks: u32,
}

impl Noise {
    /// Waiting for the slowest of `gpus` ranks that are late at random. The slowest of n
    /// independent ones is late by their deviation times e_n, the expected maximum of n standard
    /// normal values. What was recorded grows in this proportion; beyond the recorded size a rank
    /// that computes for `busy` adds at least its own noise.
    pub(crate) fn straggling(&self, gpus: u32, busy: Nanos) -> Nanos {
        let recorded = expected_normal_max(u64::from(self.ranks));
        let asked = expected_normal_max(u64::from(gpus));
        let known = if recorded > 0.0 { self.excess.scale(asked / recorded) } else { Nanos::ZERO };
        let more = busy.scale(self.sigma * (asked - recorded).max(0.0));
        known.max(self.excess.min(known) + more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUSY: Nanos = Nanos::from_nanos(1_000_000);

    /// e_2 = 0.5642, e_8 = 1.4236.
    #[test]
    fn one_rank_s_noise_grows_with_the_expected_maximum() {
        let noise = Noise { sigma: 0.02, excess: Nanos::ZERO, ranks: 1 };
        assert_eq!(noise.straggling(1, BUSY), Nanos::ZERO);
        let grown = noise.straggling(8, BUSY).nanos() as f64;
        assert!((grown - 0.02 * 1.4236 * 1e6).abs() < 20.0, "{grown}");
    }

    #[test]
    fn recorded_lateness_stays_at_its_size_and_follows_the_maximum_elsewhere() {
        let noise = Noise { sigma: 0.0, excess: Nanos::from_nanos(10_000), ranks: 8 };
        assert_eq!(noise.straggling(8, BUSY).nanos(), 10_000);
        assert_eq!(noise.straggling(1, BUSY), Nanos::ZERO);
        let fewer = noise.straggling(2, BUSY).nanos() as f64;
        assert!((fewer - 1e4 * 0.5642 / 1.4236).abs() < 5.0, "{fewer}");
        assert!(noise.straggling(64, BUSY).nanos() > 10_000);
    }

    #[test]
    fn more_ranks_never_straggle_less() {
        for noise in [
            Noise { sigma: 0.03, excess: Nanos::from_nanos(5_000), ranks: 4 },
            Noise { sigma: 0.03, excess: Nanos::ZERO, ranks: 4 },
        ] {
            let times: Vec<Nanos> =
                [1, 2, 4, 8, 64, 4096].map(|gpus| noise.straggling(gpus, BUSY)).to_vec();
            assert!(times.is_sorted(), "{times:?}");
        }
    }
}
