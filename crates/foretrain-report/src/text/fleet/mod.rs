//! The answers of `fleet` as tables.

mod edge;
mod share;
mod utilisation;

pub use edge::fleet_edge;
pub use share::fleet_share;
pub use utilisation::{fleet_utilisation, fleet_utilisation_predict};
