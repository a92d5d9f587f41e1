//! Passes over step graphs: the pipeline builder of synchronisation strategies, and re-costing of
//! collectives for another number of ranks.
//!
//! A pass takes a graph and changes it; it never simulates and never looks at a cluster. What a
//! collective costs is asked of the caller, so passes and cost models combine freely.
//!
//! *Architecture invariant:* the engine knows none of these passes.

mod accumulation;
pub mod buckets;
pub mod recost;
pub mod strategy;
mod unroll;

pub use buckets::{BucketCaps, assign_buckets};
pub use recost::{CollectiveNode, collectives, recost_collectives};
pub use strategy::backward_passes;
