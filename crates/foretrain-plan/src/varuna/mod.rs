//! Varuna: pipelines on preemptible machines, planned by simulation from micro-benchmarks.
//!
//! A [`profile`] holds what pieces of a model, messages and all-reduces take. [`plan`](plan::plan)
//! simulates every number of stages and ranks them; [`morph`](morph::morph) follows a trace of how many
//! GPUs there are. `docs/varuna.md` explains the files and the rules, and what is assumed.

pub mod availability;
pub mod compare;
pub mod layout;
pub mod morph;
pub mod partition;
pub mod plan;
pub mod profile;
pub mod read;
pub mod schedule;
pub mod simulate;
mod table;
