//! Kernel time from shapes: what a device needs for an operation nobody has recorded.

mod model;
mod operation;

pub use model::{Basis, KernelModel, KernelTime};
pub use operation::{Attention, Convolution, Gemm, Memory, MemoryKind, Operation, Pass};
