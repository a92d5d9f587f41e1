//! Random variation of single tasks and messages.
//!
//! Every draw has its own generator, seeded from the run's seed and from what is drawn. So a
//! draw depends neither on the order of events nor on the number of threads, and two schedules that
//! are compared meet the same luck.

use foretrain_core::stats::normal_quantile;
use foretrain_core::{InputError, Nanos, Result};
use rand::Rng;
use rand_pcg::Pcg64Mcg;

use crate::varuna::schedule::Task;

/// Truncated normal variation: a task takes its time and an offset that never makes it negative,
/// a message its time and an offset that is never negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jitter {
    compute: Nanos,
    network: Nanos,
    seed: u64,
}

impl Jitter {
    /// Standard deviation of a task's offset before truncation, in Varuna's simulator.
    pub const VARUNA_COMPUTE: Nanos = Nanos::from_millis(2);
    /// Standard deviation of a message's offset before truncation, in Varuna's simulator.
    pub const VARUNA_NETWORK: Nanos = Nanos::from_millis(10);

    /// Variation with these standard deviations before truncation.
    ///
    /// # Errors
    /// If one is negative.
    pub fn new(compute: Nanos, network: Nanos, seed: u64) -> Result<Self> {
        if compute < Nanos::ZERO || network < Nanos::ZERO {
            return Err(InputError::new("a negative standard deviation, expected 0 or more"));
        }
        Ok(Self { compute, network, seed })
    }

    /// Standard deviation of a task's offset before truncation.
    pub fn compute(&self) -> Nanos {
        self.compute
    }
    /// Standard deviation of a message's offset before truncation.
    pub fn network(&self) -> Nanos {
        self.network
    }
    /// The seed of all draws.
    pub fn seed(&self) -> u64 {
        self.seed
    }
}

/// The draws of one run.
#[derive(Clone, Copy)]
pub(super) struct Luck {
    jitter: Jitter,
    run: u64,
}

impl Luck {
    pub(super) fn new(jitter: Jitter, run: u64) -> Self {
        Self { jitter, run }
    }

    /// How long a task takes whose usual time is `base`.
    pub(super) fn task(&self, base: Nanos, stage: usize, task: Task) -> Nanos {
        let mut generator = self.generator(task.work as u64, stage, task.micro_batch);
        base + above(-base, self.jitter.compute, &mut generator)
    }

    /// How long a message takes that leaves `stage` after `task`.
    pub(super) fn message(&self, base: Nanos, stage: usize, task: Task) -> Nanos {
        let mut generator = self.generator(8 + task.work as u64, stage, task.micro_batch);
        base + above(Nanos::ZERO, self.jitter.network, &mut generator)
    }

    fn generator(&self, what: u64, stage: usize, micro_batch: u32) -> Pcg64Mcg {
        let run = mix(self.jitter.seed ^ mix(self.run));
        let low = mix(run ^ mix(((stage as u64) << 32) | u64::from(micro_batch)));
        let high = mix(low ^ what);
        Pcg64Mcg::new((u128::from(high) << 64) | u128::from(mix(high ^ low)))
    }
}

/// A normal offset, drawn again until it is at least `least`, which is not above zero: on average
/// at most twice.
fn above(least: Nanos, sigma: Nanos, generator: &mut Pcg64Mcg) -> Nanos {
    if sigma == Nanos::ZERO {
        return Nanos::ZERO;
    }
    loop {
        let uniform = ((generator.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        let offset = sigma.scale(normal_quantile(uniform));
        if offset >= least {
            return offset;
        }
    }
}

/// The finaliser of SplitMix64: every input bit moves every output bit.
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::varuna::schedule::Work;

    /// A half-normal offset has the mean sigma x sqrt(2 / pi); an offset that is hardly cut off, zero.
    #[test]
    fn offsets_have_the_moments_of_truncated_normals() {
        let ms = Nanos::from_millis;
        let luck = Luck::new(Jitter::new(ms(2), ms(10), 7).unwrap(), 0);
        let tasks = (0..20_000).map(|micro_batch| Task { work: Work::Forward, micro_batch });
        let (mut compute, mut network) = (Vec::new(), Vec::new());
        for task in tasks {
            compute.push(luck.task(ms(20), 3, task).millis_f64());
            network.push(luck.message(ms(1), 3, task).millis_f64());
        }
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        assert!((mean(&compute) - 20.0).abs() < 0.05, "{}", mean(&compute));
        let half_normal = 1.0 + 10.0 * (2.0 / std::f64::consts::PI).sqrt();
        assert!((mean(&network) - half_normal).abs() < 0.2, "{}", mean(&network));
        assert!(network.iter().all(|time| *time >= 1.0));
        let short = (0..1000).map(|micro_batch| Task { work: Work::Forward, micro_batch });
        assert!(short.map(|task| luck.task(ms(0), 0, task)).all(|time| time >= ms(0)));
    }
}
