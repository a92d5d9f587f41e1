//! Computation and communication that slow each other down: what a step's nodes are to the models
//! of [`foretrain_cost::interference`], samples of it in recordings, and fitting models to them.

pub mod accuracy;
mod adapter;
pub mod alone;
pub mod calibrate;
mod loads;
pub mod pairs;
mod samples;
pub mod table;
mod take_out;
#[cfg(test)]
mod tests;

pub(crate) use adapter::DeviceSharing;
pub(crate) use loads::{Loads, device_limits};
pub use samples::{Sample, Samples, samples};

pub(crate) use take_out::{Span, spans, take_out};
