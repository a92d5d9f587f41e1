//! Varuna: pipelines on preemptible machines, planned by simulation from micro-benchmarks.

pub mod schedule;
pub mod simulate;
