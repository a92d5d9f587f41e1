//! The answers of `fleet` as tables.

mod edge;
mod share;

pub use edge::fleet_edge;
pub use share::fleet_share;
