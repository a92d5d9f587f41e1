//! Whether models keep their accuracy when they share: only training tells, so the answer is given
//! from outside.

mod known;
mod table;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use foretrain_core::{InputError, Result};

use super::signature::Signature;
pub use table::Table;

/// What is asked: a model is to share layers with others, on top of what it shares already.
#[derive(Clone, Copy, Debug)]
pub struct Trial<'a> {
    /// The layers' signature.
    pub signature: &'a Signature,
    /// How many of them.
    pub layers: usize,
    /// Name of the model.
    pub model: &'a str,
}

/// Tells how retraining would end.
pub trait AccuracyOracle {
    /// Epochs after which the model has its wanted accuracy; `None` if it does not reach it.
    fn retrain(&mut self, trial: &Trial<'_>) -> Option<u32>;
}

/// Every model always reaches its accuracy: the most that could be saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Always {
    /// After so many epochs.
    pub epochs: u32,
}

impl AccuracyOracle for Always {
    fn retrain(&mut self, _: &Trial<'_>) -> Option<u32> {
        Some(self.epochs)
    }
}

/// No model ever does: what looking costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Never;

impl AccuracyOracle for Never {
    fn retrain(&mut self, _: &Trial<'_>) -> Option<u32> {
        None
    }
}

/// Each model does with the same probability. An answer depends on the question and the seed, not on
/// what was asked before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chance {
    probability: f64,
    epochs: u32,
    seed: u64,
}

impl Chance {
    /// A probability from 0 to 1, epochs of a success, and a seed.
    ///
    /// # Errors
    /// If it is no probability.
    pub fn new(probability: f64, epochs: u32, seed: u64) -> Result<Self> {
        let probability = checked(probability)?;
        Ok(Self { probability, epochs, seed })
    }

    /// The same with other luck.
    pub fn with_seed(&self, seed: u64) -> Self {
        Self { seed, ..*self }
    }
}

impl AccuracyOracle for Chance {
    fn retrain(&mut self, trial: &Trial<'_>) -> Option<u32> {
        (draw(trial, self.seed) < self.probability).then_some(self.epochs)
    }
}

fn checked(probability: f64) -> Result<f64> {
    if (0.0..=1.0).contains(&probability) {
        return Ok(probability);
    }
    Err(InputError::new(format!("{probability} is no probability; expected a number from 0 to 1")))
}

/// A number from 0 to 1 that a question and a seed always give.
fn draw(trial: &Trial<'_>, seed: u64) -> f64 {
    // FNV-1a: equal on every machine, which the standard library's hashes do not promise.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64 ^ seed;
    let question = format!("{}\n{}\n{}", trial.signature, trial.layers, trial.model);
    for byte in question.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    Pcg64Mcg::seed_from_u64(hash).random()
}
