//! How long a collective takes.
//!
//! A time is launch + propagation + transfer + exposed reduction, by algorithm and protocol, and the
//! least over those that the library could pick. See `docs/collectives.md` for the formulas, and
//! [`crate::nccl_tuner`] for what NCCL itself believes.

mod adapter;
mod bound;
mod candidate;
mod choice;
mod conventions;
mod fabric;
mod field;
mod host;
mod host_time;
mod knowledge;
mod nccl;
mod processors;
pub mod propagation;
mod rescale;
mod servers;
#[cfg(test)]
mod tests;
mod time;
mod volume;

pub use adapter::GroupPlacement;
pub use bound::lower_bound;
pub(crate) use candidate::Candidate;
pub use candidate::Limit;
pub use conventions::{algorithm_bandwidth, bus_factor};
pub use fabric::{Fabric, InterLink, IntraLink, LateLinks, Library, SwitchLevel};
pub use host_time::host_time;
pub use knowledge::Calibrated;
pub(crate) use knowledge::{Known, Pick};
pub use rescale::{Rescaled, rescale};
pub use servers::{Servers, push_pull_time};
pub use time::{CollectiveCall, CollectiveTime, Method, Terms, collective_time};
pub(crate) use time::{best as best_of, candidates as candidates_of};
pub use volume::{Synchronisation, SynchronisedStep, Volume};
