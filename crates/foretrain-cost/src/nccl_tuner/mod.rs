//! NCCL's own cost model (`src/graph/tuning.cc`), reproduced: what NCCL *thinks* a collective
//! costs, and hence which algorithm and protocol it picks.
//!
//! These times are for choosing and explaining. On a real cluster they are 30-50 % too short
//! and they do not react to the number of channels that a small message uses, so Foretrain never
//! reports one as a prediction; see [`collective_time`](crate::collective_time) for that.
//!
//! Times here are `f64` microseconds and rates decimal GB/s, as in NCCL's source and logs.

mod channels;
mod constants;
mod enable;
mod model;
#[cfg(test)]
mod tests;

pub use channels::{Launch, launch_shape, max_threads};
pub use constants::{Algorithm, Generation, Protocol, TunerTable, Version};
pub(crate) use model::tree_correction;
pub use model::{Candidate, Cost, Graph, PathType, Tuner, TunerCall, TunerCpu};
