//! Processor time of a thread.

use std::io;

use cpu_time::ThreadTime;
use foretrain_core::stats::median;
use foretrain_core::{InputError, Result};

/// A clock that runs while its thread does.
pub(crate) struct Clock {
    /// What looking at it twice takes, in ns.
    empty_ns: f64,
}

impl Clock {
    /// A clock that knows what it costs itself.
    ///
    /// # Errors
    /// If the system does not tell a thread its processor time.
    pub(crate) fn new() -> Result<Self> {
        const LOOKS: usize = 101;
        let mut clock = Self { empty_ns: 0.0 };
        let looks: Result<Vec<f64>> = (0..LOOKS).map(|_| Ok(clock.time(|| {})?.1)).collect();
        clock.empty_ns = median(&looks?).unwrap_or(0.0);
        Ok(clock)
    }

    /// The result of some work and what it took in ns, not below zero.
    ///
    /// # Errors
    /// As [`Clock::new`].
    pub(crate) fn time<T>(&self, work: impl FnOnce() -> T) -> Result<(T, f64)> {
        let start = now()?;
        let result = work();
        let took = now()?.duration_since(start).as_nanos() as f64;
        Ok((result, (took - self.empty_ns).max(0.0)))
    }
}

fn now() -> Result<ThreadTime> {
    ThreadTime::try_now().map_err(|error: io::Error| {
        InputError::new(format!("this system does not tell a thread its processor time: {error}"))
    })
}
