//! Kernel time from shapes: what a device needs for an operation nobody has recorded.
//!
//! A [`KernelModel`] holds the curves of one device: how much of its peaks kernels reach, by class
//! and shape. The curves ship in `data/kernels.toml`; a device without its own borrows those of its
//! nearest relative (`relative`). `docs/kernels.md` has the formulas and how well they hold.

mod attention;
mod book;
mod calibration;
mod class;
mod convolution;
mod curve;
mod gemm;
mod memory;
mod model;
mod operation;
mod relative;
mod sustained;
#[cfg(test)]
mod tests;

pub use book::is_held_out;
pub use calibration::{
    Correction, Fitted as FittedKernels, KernelCalibration, KernelSample, Odd as OddKernel,
    fit as fit_kernels,
};
pub use model::{Basis, KernelModel, KernelTime};
pub use operation::{
    Attention, AttentionKernel, Convolution, Gemm, Memory, MemoryKind, Operation, Pass,
};
pub use sustained::{Sustained, Width};
