//! Kernels that the memory's rate bounds.

use serde::Deserialize;

use super::curve::Limits;
use super::operation::{Memory, MemoryKind};

/// How much of the memory's rate kernels of one kind reach.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MemoryCurve {
    /// Shortest kernel.
    floor_us: f64,
    /// Share of the memory's rate of large ones.
    plateau: f64,
    /// The same of what fits the cache.
    resident: f64,
}

/// Kinds that have curves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum CurveKind {
    Elementwise,
    Norm,
    NormBackward,
    Softmax,
    Gather,
    Optimiser,
}

impl CurveKind {
    pub(super) const ALL: [Self; 6] = [
        Self::Elementwise,
        Self::Norm,
        Self::NormBackward,
        Self::Softmax,
        Self::Gather,
        Self::Optimiser,
    ];

    /// The curve of a kernel, and whether it is of this very kind.
    pub(super) fn of(memory: &Memory) -> (Self, bool) {
        match memory.kind {
            MemoryKind::Elementwise => (Self::Elementwise, true),
            // Backward a norm reads its input beside the gradient.
            MemoryKind::Norm if memory.read.as_f64() > 1.4 * memory.written.as_f64() => {
                (Self::NormBackward, true)
            }
            MemoryKind::Norm => (Self::Norm, true),
            MemoryKind::Softmax => (Self::Softmax, true),
            MemoryKind::Gather => (Self::Gather, true),
            MemoryKind::Optimiser => (Self::Optimiser, true),
            MemoryKind::Copy | MemoryKind::Reduction | MemoryKind::Pool => {
                (Self::Elementwise, false)
            }
        }
    }
}

impl MemoryCurve {
    pub(super) fn seconds(&self, bytes: f64, limits: &Limits) -> f64 {
        self.floor_us * 1e-6 + limits.moving(bytes, self.plateau, self.resident, 4)
    }
}
