//! Pipelines: which stage does what in which order, and when it gets to it.

mod evaluate;
mod interleaved;
mod listed;
mod orders;
mod split;
mod task;
mod there_and_back;
mod two_way;

pub use evaluate::{Durations, Gate, PipelineTimes, Sync, evaluate};
pub use orders::{Orders, Place, orders};
pub use task::{Kind, Task};
