//! What a parallel layout of a described model costs, and which one to run.
//!
//! *Architecture invariant:* no recording is needed; a figure without measurement says so.

pub mod varuna;
