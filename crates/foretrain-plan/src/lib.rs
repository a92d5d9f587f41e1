//! What a parallel layout of a described model costs, and which one to run.
//!
//! *Architecture invariant:* no recording is needed; a figure without measurement says so.

pub mod layout;
pub mod lower;
pub mod pipeline;
pub mod software;
pub mod times;
pub mod training;

pub use layout::{Layout, Recompute, Schedule, Sharding, Wish};
pub use software::Software;
pub use training::{Optimiser, Precision, Training};
