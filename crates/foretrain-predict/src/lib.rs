//! Answers composed of the floors below: what is in a trace, how faithfully it replays, how long its
//! step takes on another cluster at another size, and what measured sizes tell without a trace.

pub mod answer;
pub mod breakdown;
pub mod collectives;
pub mod described;
mod devices;
pub mod inspect;
pub mod inspect_graph;
pub mod interference;
pub mod jobs;
mod joint;
pub mod kernels;
pub mod own;
pub mod plan;
pub mod primitives;
pub mod recording;
pub mod replay;
pub mod roles;
pub mod scale;
pub mod scaling;
mod transfer;
pub mod validate;
pub mod whatif;

pub use answer::{Prediction, SizePrediction};
pub use breakdown::{Breakdown, Owner};
pub use recording::Recording;
pub use scale::{BucketCopies, PredictOptions, predict, predict_graphs};
