//! Curves brought in line with a user's own measurements: per class of types a factor and an offset.
//!
//! The shapes stay the shipped curve's. A sweep of a few products cannot tell tiles from waves, but
//! it tells how fast this machine's library and clocks are.

mod file;
mod fit;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use super::class::Class;

pub use fit::{Fitted, KernelSample, Odd, fit};

/// Corrections of one device's kernel times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelCalibration {
    format: String,
    version: u32,
    /// Catalogue name of the device that was measured.
    pub device: String,
    /// What was fitted to, in a few words.
    pub source: String,
    /// One per class that was measured.
    products: Vec<Correction>,
}

/// How matrix products of one class of types differ from the shipped curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Correction {
    of: Class,
    /// Measured over shipped time of long kernels.
    pub factor: f64,
    /// What is added to every kernel, in us; may be below zero.
    pub offset_us: f64,
    /// Error that four of five measured kernels stay below, relative.
    pub spread: f64,
    /// Shapes measured.
    pub rows: u32,
}

impl KernelCalibration {
    fn new(device: &str, source: &str, products: Vec<Correction>) -> Self {
        let (format, version) = (file::FORMAT.into(), file::VERSION);
        Self { format, version, device: device.into(), source: source.into(), products }
    }

    /// The corrections, one per class of types.
    pub fn corrections(&self) -> &[Correction] {
        &self.products
    }

    pub(super) fn of(&self, class: Class) -> Option<Correction> {
        self.products.iter().find(|correction| correction.of == class).copied()
    }
}

impl Correction {
    /// The types it holds for: `f16, bf16`, `f32`.
    pub const fn types(&self) -> &'static str {
        self.of.types()
    }

    /// A shipped time of so many seconds, corrected.
    pub(super) fn apply(&self, seconds: f64) -> f64 {
        // However the offset came out, a kernel keeps a tenth of its time.
        (self.factor * seconds + self.offset_us * 1e-6).max(0.1 * seconds)
    }
}
