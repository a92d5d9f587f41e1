//! How long a collective takes.
//!
//! A time is launch + propagation + transfer + exposed reduction, by algorithm and protocol, and the
//! least over those that the library could pick. See `docs/collectives.md` for the formulas, and
//! [`crate::nccl_tuner`] for what NCCL itself believes.

mod adapter;
mod bound;
mod conventions;
mod fabric;
mod host;
mod nccl;
mod priors;
pub mod propagation;
mod rescale;
#[cfg(test)]
mod tests;
mod time;

pub use adapter::GroupPlacement;
pub use bound::lower_bound;
pub use conventions::{algorithm_bandwidth, bus_factor};
pub use fabric::{Fabric, InterLink, IntraLink, Library, SwitchLevel};
pub use rescale::{Rescaled, rescale};
pub use time::{CollectiveCall, CollectiveTime, Method, Terms, collective_time};
