//! Models by architecture, where no trace is at hand.
//!
//! [`load`] is the one door: a name of the [`library`], a `config.json` of Hugging Face, a description
//! in TOML, an ONNX file. The answer is a [`Model`]: layers of operations by shape that know how parallelism may
//! divide them. A [`Profile`] is its list of tensors with the work that makes their gradients;
//! [`step_graph`] turns that, scaled to a measured step time, into the graph of a step: what passes
//! over graphs need of a trace.
//!
//! ```
//! let model = foretrain_workload::load("llama-3-8b")?;
//! assert_eq!(model.parameters(), 8_030_261_248);
//! assert_eq!(model.body_layers(), 32);
//! # Ok::<(), foretrain_core::InputError>(())
//! ```
//!
//! *Architecture invariant:* sizes are exact by architecture; times are never made up here, only
//! shared out in proportion to work.

pub mod architecture;
mod chain;
mod graph;
pub mod hugging_face;
mod library;
mod limits;
pub mod line;
mod load;
pub mod model;
pub mod onnx;
mod profile;
pub mod spec;

pub use chain::Chain;
pub use graph::{StepTimes, step_graph};
pub use library::{Known, known, library, named};
pub use load::load;
pub use model::Model;
pub use profile::{Layer, Profile, Tensor};
