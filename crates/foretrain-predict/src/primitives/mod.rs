//! The primitives of a machine: calibration from measured times, and the file they are kept in.

mod advice;
mod file;

use foretrain_core::Result;
use foretrain_cost::primitives::{FittedPrimitives, Measured};

pub use advice::advice;
pub use file::{parse, read, text};

/// A calibration of primitives.
#[derive(Clone, Debug, PartialEq)]
pub struct PrimitivesAnswer {
    /// The primitives and the lines they are.
    pub fitted: FittedPrimitives,
    /// What the figures are good for, in sentences.
    pub advice: Vec<String>,
}

/// The primitives that measured times amount to. `source` says where the times come from.
///
/// # Errors
/// If no primitive was measured at two sizes.
pub fn calibrate_primitives(measured: &Measured, source: &str) -> Result<PrimitivesAnswer> {
    let fitted = measured.fit(source).map_err(|error| error.at(source))?;
    let advice = advice(&fitted);
    Ok(PrimitivesAnswer { fitted, advice })
}
