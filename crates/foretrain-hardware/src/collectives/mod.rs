//! What is known of collectives: constants of the model by kind of interconnect, and what a user
//! has measured on a cluster.
//!
//! The model itself is in `foretrain-cost`; here are only its figures, as data.

mod calibration;
mod constants;
mod file;
mod priors;
mod processors;

pub(crate) use calibration::CalibrationSpec;
pub use calibration::{Calibration, Choice, Sweep};
pub use constants::{Constant, Constants};
pub use file::{Base, ClusterFile};
pub use priors::{Prior, Stack, common_prior, prior};
pub use processors::ProcessorSweep;
