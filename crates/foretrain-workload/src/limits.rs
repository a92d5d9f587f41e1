//! Limits that keep all sizes within 64 bits, whatever a file says.

use std::fmt::Display;

use foretrain_core::{InputError, Result};

/// A width: of the residual stream, inside a perceptron, of all heads together.
pub(crate) const WIDTH: u64 = 1 << 20;
/// Rows of a table.
pub(crate) const ROWS: u64 = 1 << 34;
/// Layers of a model.
pub(crate) const LAYERS: u64 = 1 << 13;
/// Heads, experts, groups, channels per head.
pub(crate) const PARTS: u64 = 1 << 14;
/// Positions of a sequence.
pub(crate) const POSITIONS: u64 = 1 << 28;
/// Trainable numbers of a model.
pub(crate) const PARAMETERS: u64 = 1 << 52;

/// The size if it is in range.
pub(crate) fn within(name: &str, value: u64, least: u64, most: u64) -> Result<u64> {
    if (least..=most).contains(&value) {
        return Ok(value);
    }
    Err(InputError::new(format!(
        "{name} is {value}; expected a whole number from {least} to {most}"
    ))
    .at(name))
}

/// The quotient if there is no rest.
pub(crate) fn divided(name: &str, value: u64, by: impl Display, divisor: u64) -> Result<u64> {
    if divisor > 0 && value.is_multiple_of(divisor) {
        return Ok(value / divisor);
    }
    Err(InputError::new(format!("{name} ({value}) does not divide by {by} ({divisor})")).at(name))
}
