//! What jobs of a fleet spend their steps on, where they would run faster, and what other hardware
//! would buy: the analytical model of "Characterizing Deep Learning Training Workloads on
//! Alibaba-PAI" (IISWC 2019).
//!
//! A step takes `T = T_d + T_flop + T_mem + T_w`: input over PCIe, compute-bound work over the peak
//! rate, memory-bound work over the memory's bandwidth, and weight traffic over each medium of the
//! job's [`Class`](crate::jobs::Class) in turn. Every rate is multiplied by an efficiency. Nothing
//! overlaps, since the aim is what a step consists of; the ideal overlap, `max(T_d, T_c, T_w)`, is
//! given beside it. Constants that were recalled and could not be read in the paper are labelled so.

pub mod characterise;
pub mod distribution;
mod hardware;
mod histogram;
mod presets;
pub mod project;
mod step;
pub mod sweep;
pub mod synthetic;
mod work;

pub use hardware::{Efficiency, Hardware, Resource};
pub use presets::{CASES, Case};
pub use step::{Overlap, Step};
pub use work::{Refusal, Work};
