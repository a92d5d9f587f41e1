//! Training on preemptible machines: what a trace of their availability leaves of the speed.
//!
//! At each change the job is planned anew for the GPUs there are, with the same batch. Losing GPUs
//! costs a wait, a restart and, where the notice is too short for a checkpoint, the steps since the
//! last one. More GPUs are used if the new plan is faster; that costs a checkpoint and a restart.

mod account;
pub mod machines;
mod progress;
mod run;

use foretrain_core::{InputError, Nanos, Result};

pub use account::{Account, Cause, Cost, Morph, Morphing};
pub use run::morph;

use super::plan::PlanOptions;

/// How a job is kept running.
#[derive(Clone, Debug, PartialEq)]
pub struct MorphOptions {
    /// What to plan for each number of GPUs; its own number is not used.
    pub plan: PlanOptions,
    /// Training time between checkpoints.
    pub checkpoint_every: Nanos,
    /// How long training stands still for a checkpoint.
    pub checkpoint: Nanos,
    /// From a loss of GPUs until the job is planned anew.
    pub preempted_wait: Nanos,
    /// From a loss until the restart, where as many GPUs are there again by then.
    pub transient_wait: Nanos,
    /// Starting processes and loading a checkpoint.
    pub restart: Nanos,
    /// How long before it happens a loss is known.
    pub notice: Nanos,
    /// After a change, how long further GPUs are left aside.
    pub quiet: Nanos,
    /// GPUs to compare with that are always there; the most of the trace unless given.
    pub dedicated_gpus: Option<u32>,
    /// Prices of a GPU for an hour.
    pub prices: Prices,
}

/// Prices of a GPU for an hour, in any currency.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Prices {
    /// That may be taken away.
    pub preemptible: Option<f64>,
    /// That is always there.
    pub dedicated: Option<f64>,
}

impl MorphOptions {
    /// From a loss until the job is planned anew, in Varuna's manager.
    pub const VARUNA_PREEMPTED_WAIT: Nanos = Nanos::from_millis(120_000);
    /// From a transient failure until the restart, in Varuna's manager.
    pub const VARUNA_TRANSIENT_WAIT: Nanos = Nanos::from_millis(60_000);
    /// Notice of a loss that Varuna's manager acts upon.
    pub const VARUNA_NOTICE: Nanos = Nanos::from_millis(30_000);
    /// Time in which Varuna's manager ignores a further change.
    pub const VARUNA_QUIET: Nanos = Nanos::from_millis(100_000);
    /// By how much of its stage's median a forward pass may be longer, in Varuna.
    pub const VARUNA_SLOW: f64 = 0.15;
    /// Training time between checkpoints: assumed.
    pub const ASSUMED_CHECKPOINT_EVERY: Nanos = Nanos::from_millis(600_000);
    /// Standstill for a checkpoint that is copied in the background: assumed.
    pub const ASSUMED_CHECKPOINT: Nanos = Nanos::from_millis(5_000);
    /// Starting processes and loading a checkpoint: assumed.
    pub const ASSUMED_RESTART: Nanos = Nanos::from_millis(60_000);

    fn check(&self) -> Result<()> {
        for (what, time) in [
            ("checkpoint interval", self.checkpoint_every),
            ("checkpoint", self.checkpoint),
            ("wait after a loss", self.preempted_wait),
            ("wait after a transient loss", self.transient_wait),
            ("restart", self.restart),
            ("notice", self.notice),
            ("quiet time", self.quiet),
        ] {
            if time < Nanos::ZERO {
                return Err(InputError::new(format!("a {what} of {time}, expected 0 or more")));
            }
        }
        if self.dedicated_gpus == Some(0) {
            return Err(InputError::new("0 dedicated GPUs, expected 1 or more"));
        }
        for price in [self.prices.preemptible, self.prices.dedicated].into_iter().flatten() {
            if !(price.is_finite() && price >= 0.0) {
                return Err(InputError::new(format!("a price of {price}, expected 0 or more")));
            }
        }
        Ok(())
    }
}
