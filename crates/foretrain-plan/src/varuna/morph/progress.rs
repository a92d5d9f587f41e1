//! Steps and checkpoints of a job that runs undisturbed.

use foretrain_core::Nanos;

/// Steps of one length with a checkpoint after every so many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pace {
    step: i64,
    checkpoint: i64,
    steps_per_checkpoint: i64,
}

/// What was done in some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// Whole steps.
    pub(super) done: i64,
    /// Of these, steps that a checkpoint holds.
    pub(super) saved: i64,
    /// Whole checkpoints.
    pub(super) checkpoints: i64,
}

impl Pace {
    pub(super) fn new(step: Nanos, every: Nanos, checkpoint: Nanos) -> Self {
        let step = step.nanos().max(1);
        let steps_per_checkpoint = (every.nanos() / step).max(1);
        Self { step, checkpoint: checkpoint.nanos(), steps_per_checkpoint }
    }

    fn cycle(&self) -> i64 {
        self.step.saturating_mul(self.steps_per_checkpoint).saturating_add(self.checkpoint)
    }

    /// Steps and checkpoints that end within a time.
    pub(super) fn within(&self, time: Nanos) -> Progress {
        let time = time.nanos().max(0);
        let checkpoints = time / self.cycle();
        let begun = (time % self.cycle() / self.step).min(self.steps_per_checkpoint);
        let saved = checkpoints * self.steps_per_checkpoint;
        Progress { done: saved + begun, saved, checkpoints }
    }

    /// From when on, at or after a time, no step and no checkpoint is half done.
    pub(super) fn boundary(&self, time: Nanos) -> Nanos {
        let time = time.nanos().max(0);
        let (cycles, rest) = (time / self.cycle(), time % self.cycle());
        let start = cycles * self.cycle();
        let steps = rest.div_euclid(self.step) + i64::from(rest % self.step > 0);
        let within =
            if steps > self.steps_per_checkpoint { self.cycle() } else { steps * self.step };
        Nanos::from_nanos(start.saturating_add(within))
    }

    /// Share of the time that steps take.
    pub(super) fn efficiency(&self) -> f64 {
        1.0 - self.checkpoint as f64 / self.cycle() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_and_checkpoints_take_turns() {
        let ns = Nanos::from_nanos;
        // Three steps of 10, then a checkpoint of 4: a cycle of 34.
        let pace = Pace::new(ns(10), ns(35), ns(4));
        let at = |time| {
            let Progress { done, saved, checkpoints } = pace.within(ns(time));
            (done, saved, checkpoints)
        };
        assert_eq!([at(0), at(9), at(10), at(29)], [(0, 0, 0), (0, 0, 0), (1, 0, 0), (2, 0, 0)]);
        assert_eq!([at(30), at(33), at(34), at(44)], [(3, 0, 0), (3, 0, 0), (3, 3, 1), (4, 3, 1)]);
        let boundary = |time| pace.boundary(ns(time)).nanos();
        assert_eq!([0, 1, 10, 11, 30, 31, 34, 35].map(boundary), [0, 10, 10, 20, 30, 34, 34, 44]);
        assert_eq!(pace.efficiency(), 1.0 - 4.0 / 34.0);
        // A step longer than the interval is checkpointed by itself.
        let long = Pace::new(ns(100), ns(35), ns(4));
        assert_eq!(long.within(ns(104)), Progress { done: 1, saved: 1, checkpoints: 1 });
    }
}
