//! How much longer than the curves say things take on one machine.

use serde::{Deserialize, Serialize};

/// Factors on times, each 1 unless a measurement says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct Factors {
    /// On matrix products, attention and convolutions.
    pub products: f64,
    /// On memory-bound kernels.
    pub memory: f64,
    /// On collectives and transfers.
    pub communication: f64,
    /// On the host's pace.
    pub host: f64,
}

impl Default for Factors {
    fn default() -> Self {
        Self { products: 1.0, memory: 1.0, communication: 1.0, host: 1.0 }
    }
}

impl Factors {
    /// All of them, in order.
    pub fn to_array(self) -> [f64; 4] {
        [self.products, self.memory, self.communication, self.host]
    }
    /// From all of them, in order.
    pub fn from_array([products, memory, communication, host]: [f64; 4]) -> Self {
        Self { products, memory, communication, host }
    }
}
