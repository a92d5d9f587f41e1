//! Models by architecture, where no trace is at hand.
//!
//! A [`Profile`] lists a model's layers in forward order with their parameter tensors and the work
//! of their forward pass. [`step_graph`] turns it, scaled to a measured step time, into the graph of
//! a step: what passes over graphs need of a trace.
//!
//! ```
//! use foretrain_workload::{ResNet, Transformer};
//!
//! assert_eq!(ResNet::resnet50().profile().parameters(), 25_557_032);
//! assert_eq!(Transformer::bert_large(64).profile().parameters(), 335_141_888);
//! ```
//!
//! *Architecture invariant:* sizes are exact by architecture; times are never made up here, only
//! shared out in proportion to work.

pub mod architecture;
mod convolution;
mod graph;
pub mod hugging_face;
mod library;
mod limits;
mod load;
pub mod model;
mod profile;
mod resnet;
pub mod spec;
mod transformer;
mod vgg;

pub use graph::{StepTimes, step_graph};
pub use library::{Known, library};
pub use load::load;
pub use profile::{Layer, Profile, Tensor};
pub use resnet::ResNet;
pub use transformer::{FeedForward, Norm, Transformer};
pub use vgg::Vgg;
