//! The engine: a deterministic fluid discrete-event simulation of step graphs.
//!
//! *Architecture invariant:* this crate performs no IO, reads no clock, iterates over no hash
//! table and draws random numbers only from the seed in its options. Equal input gives equal
//! bytes on any machine and any number of threads.

mod deadlock;
pub mod error;
mod fast;
mod fluid;
mod general;
pub mod interference;
pub mod jitter;
mod meeting;
mod noise;
pub mod options;
pub mod program;
mod run;
mod state;
pub mod timeline;

use foretrain_graph::Job;

pub use error::SimError;
pub use interference::{FixedFactors, Interference, TaskView};
pub use jitter::{Jitter, Stragglers};
pub use options::{
    Demand, Discipline, InitialBusy, Path, QueueDiscipline, Resource, Sharing, SimOptions,
};
pub use program::{MAX_TASKS, Program};
pub use timeline::{ClassTimeline, SteadyStep, Timeline};

/// Lays a job out and simulates it once.
///
/// # Errors
/// As [`Program::compile`] and [`Program::run`].
pub fn simulate(job: &Job, options: &SimOptions) -> Result<Timeline, SimError> {
    Program::compile(job)?.run(options)
}
