//! Profiler traces of simulated training jobs, together with the truth about them.
//!
//! A [`JobSpec`] describes a data-parallel job; [`generate`] simulates it and returns what PyTorch's
//! profiler would have written on every rank, in one of its [`Dialect`]s, and the [`Truth`]: step
//! times, who owns them, collective arrivals, clock offsets. Importers, step finders, graph builders
//! and predictors are tested against that truth.
//!
//! ```
//! use foretrain_testkit::{JobSpec, generate};
//!
//! let job = generate(&JobSpec::tiny_ddp())?;
//! let step = &job.truth.ranks[0].steps[1];
//! assert_eq!(step.owners.total_ns(), step.period_ns);
//! # Ok::<(), foretrain_core::InputError>(())
//! ```
//!
//! Small files by hand: [`events`] for profiler traces, [`execution_trace`], [`chakra`].
//!
//! *Architecture invariant:* the scheduler here is its own. It uses nothing of Foretrain's engine,
//! cost models or graphs, so that agreement with them means something.

mod buckets;
pub mod chakra;
pub mod damage;
mod dialect;
pub mod events;
pub mod execution_trace;
mod generate;
mod intervals;
mod kineto;
mod model;
mod program;
mod schedule;
mod spec;
mod truth;

pub use buckets::{Bucket, assign as assign_buckets};
pub use dialect::{Dialect, NcclNaming};
pub use generate::{Generated, Streamed, big_trace, generate, stream, stream_dir, write_dir};
pub use spec::{
    ClockSpec, DdpSpec, DeviceSpec, HostSpec, JobSpec, Model, NetworkSpec, SlowRank, Sync,
};
pub use truth::{CollectiveTruth, Owners, RankTruth, StepTruth, Truth};
