//! How busy a training job will keep a GPU, and how much of its memory it takes, from its graph
//! alone (after Horus, 10.1109/TPDS.2021.3079202).
//!
//! Boosted trees learn from jobs that were measured; nothing here knows a device. A prediction is
//! worth what the measured jobs have in common with the new one, so every model keeps the ranges
//! that it was trained on, and [`Predictor::predict`] names what lies outside of them.

mod evaluate;
mod features;
mod file;
mod predictor;
mod table;

pub use evaluate::{HeldOut, Scores, held_out, scores};
pub use features::{COUNT, Features, NAMES};
pub use file::PredictorFile;
pub use predictor::{Interval, Prediction, Predictor, TrainedOn};
pub use table::{Load, read_table};

use foretrain_core::Bytes;

/// A job that was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredJob {
    /// What kind of job it is: jobs of one family are alike, so one family is never both learnt
    /// from and scored.
    pub family: String,
    /// What its graph is like.
    pub features: Features,
    /// Part of the time in which the GPU ran anything, percent.
    pub utilisation: f64,
    /// The most memory that it took, if that was measured.
    pub memory: Option<Bytes>,
}

#[cfg(test)]
mod tests;
