//! Layers that several models can hold in common (GEMEL, arXiv 2201.07705).
//!
//! Models that look at one scene are often built of equal layers. If they are trained to agree on
//! the weights of such a layer, a device keeps it once. What could be saved follows from the
//! layers' shapes alone: [`Workload::pairs`] and [`Workload::groups`]. What can be kept at the
//! wanted accuracy only training tells: [`plan()`] goes through the groups, the largest saving first,
//! and asks an [`AccuracyOracle`]. What a smaller working set is worth on a device that swaps models
//! is simulated by [`edge`].

pub mod edge;
mod group;
mod layers;
pub mod oracle;
mod plan;
mod safetensors;
mod savings;
mod signature;

pub use group::{Group, Instance};
pub use layers::{ModelLayer, ModelLayers};
pub use oracle::AccuracyOracle;
pub use plan::{Confirmed, Plan, PlanOptions, Spread, Step, plan, spread};
pub use safetensors::{is_weights, parse_weights, read_weights};
pub use savings::{Pair, Workload};
pub use signature::{Geometry, Kind, Rule, Signature};

#[cfg(test)]
mod tests;
