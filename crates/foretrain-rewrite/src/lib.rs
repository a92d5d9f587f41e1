//! Passes over step graphs: gradient synchronisation by PyTorch's DDP rules, and re-costing of
//! collectives for another number of ranks.
//!
//! A pass takes a graph and returns a changed one; it never simulates and never looks at a
//! cluster. What a collective costs is asked of the caller, so passes and cost models combine
//! freely.
//!
//! *Architecture invariant:* the engine knows none of these passes.

mod accumulation;
pub mod buckets;
pub mod ddp;
pub mod recost;
pub mod strategy;
mod unroll;

pub use buckets::{BucketCaps, assign_buckets};
pub use ddp::{DdpInserted, backward_passes, insert_ddp};
pub use recost::{CollectiveNode, collectives, recost_collectives};
