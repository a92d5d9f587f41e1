//! What a parallel layout of a described model costs, and which one to run.
//!
//! *Architecture invariant:* no recording is needed; a figure without measurement says so.

pub mod advice;
pub mod calibrate;
pub mod check;
pub mod cut;
pub mod detailed;
pub mod estimate;
pub mod graph;
pub mod horizon;
pub mod layout;
pub mod lower;
pub mod memory;
pub mod pipeline;
pub mod plan;
pub mod rhythm;
pub mod scenario;
pub mod software;
pub mod step;
pub mod times;
pub mod training;
pub mod varuna;

pub use estimate::Answer;
pub use layout::{Layout, Recompute, Schedule, Sharding, Wish};
pub use software::Software;
pub use step::{Job, Step};
pub use training::{Optimiser, Precision, Training};
