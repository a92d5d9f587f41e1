//! What a stage does at a time.

/// Which pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Forward.
    Forward,
    /// Backward: both gradients, or that of the inputs where the schedule splits them.
    Backward,
    /// The gradient of the weights, where it is apart.
    Weights,
}

/// One pass of one micro-batch over one chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Task {
    /// Which pass.
    pub kind: Kind,
    /// Which micro-batch.
    pub micro_batch: u32,
    /// Which of the stage's chunks.
    pub chunk: u32,
}

impl Task {
    pub(super) const fn forward(micro_batch: u32, chunk: u32) -> Self {
        Self { kind: Kind::Forward, micro_batch, chunk }
    }
    pub(super) const fn backward(micro_batch: u32, chunk: u32) -> Self {
        Self { kind: Kind::Backward, micro_batch, chunk }
    }
    pub(super) const fn weights(micro_batch: u32, chunk: u32) -> Self {
        Self { kind: Kind::Weights, micro_batch, chunk }
    }
}
