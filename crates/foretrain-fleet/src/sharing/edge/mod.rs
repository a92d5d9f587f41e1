//! A small device that serves many models by turns, swapping them in and out (after GEMEL's
//! simulation of a Nexus-like scheduler).
//!
//! Streams of frames arrive at a fixed rate, one stream per model. Models take turns; each brings
//! itself into memory, takes the newest frames of its stream up to its batch, and skips older ones
//! and those that could not be ready in time. Loading hides behind the run of the model before if
//! both fit. When memory is short, the model that was used last goes first: in a round, it is the
//! one that is needed last.

mod compare;
mod describe;
mod search;
mod simulate;

use foretrain_core::words::counted;
use foretrain_core::{Bytes, InputError, Nanos, Result};

pub use compare::{Compared, compare};
pub use describe::parse;
pub use search::{Best, search};
pub use simulate::{Outcome, Served, simulate};

/// A model as the device runs it.
#[derive(Clone, Debug, PartialEq)]
pub struct EdgeModel {
    /// Its name.
    pub name: String,
    /// Time to bring it into memory.
    pub load: Nanos,
    /// What it takes when it is in memory and does not run.
    pub resident: Bytes,
    /// What a run takes, by batch; ascending.
    pub runs: Vec<Run>,
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Frames.
    pub batch: u32,
    /// Time.
    pub time: Nanos,
    /// Memory, the model and its activations together.
    pub memory: Bytes,
}

/// What is left to load of a model beside another that shares layers with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shared {
    /// The model to be loaded.
    pub model: usize,
    /// The one that is in memory.
    pub beside: usize,
    /// Time to load the rest.
    pub load: Nanos,
    /// Memory of the rest.
    pub resident: Bytes,
}

/// The device, its models and their streams.
#[derive(Clone, Debug, PartialEq)]
pub struct Edge {
    /// The models, in the order of their turns.
    pub models: Vec<EdgeModel>,
    /// Pairs that share layers.
    pub shared: Vec<Shared>,
    /// What the runtime takes for itself.
    pub runtime: Bytes,
    /// Frames per second of each stream.
    pub rate: f64,
    /// A frame is worth nothing so long after it came.
    pub deadline: Nanos,
    /// Frames of each stream.
    pub frames: u32,
}

/// Between what the largest model needs alone and what keeps all of them in memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Memory {
    /// That part of the way: 0 for the least, as GEMEL's levels 0, 0.5 and 0.75.
    Level(f64),
    /// So much.
    Given(Bytes),
    /// All models are in memory from the start and stay.
    Unlimited,
}

/// Most models of a device.
const MOST_MODELS: usize = 64;
/// Most batches to choose from.
const MOST_RUNS: usize = 16;
/// Most frames of a stream.
const MOST_FRAMES: u32 = 1_000_000;
/// Most frames per second of a stream.
const MOST_RATE: f64 = 1e6;
/// Longest stream, in seconds: a century. With a last round of runs and loads on top, each of a year at
/// most, nanoseconds still count it.
const LONGEST_STREAM: f64 = 3.2e9;

impl Edge {
    /// Refuses what cannot be simulated.
    ///
    /// # Errors
    /// Names the model and what is wrong with it.
    pub fn check(&self) -> Result<()> {
        let count = self.models.len();
        if count == 0 || count > MOST_MODELS {
            return Err(InputError::new(format!("{count} models; expected 1 to {MOST_MODELS}")));
        }
        if !(self.rate > 0.0 && self.rate <= MOST_RATE) {
            let message = format!(
                "{} frames per second; expected more than 0 and at most {MOST_RATE}",
                short(self.rate)
            );
            return Err(InputError::new(message));
        }
        if self.frames == 0 || self.frames > MOST_FRAMES {
            let message = format!("{} frames; expected 1 to {MOST_FRAMES}", self.frames);
            return Err(InputError::new(message));
        }
        if f64::from(self.frames) / self.rate > LONGEST_STREAM {
            return Err(InputError::new(format!(
                "{} frames at {:e} per second; a stream lasts a century at most",
                self.frames, self.rate
            )));
        }
        if self.deadline <= Nanos::ZERO {
            return Err(InputError::new("a deadline must be longer than nothing"));
        }
        let mut names: Vec<&str> = self.models.iter().map(|model| model.name.as_str()).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            let message = format!("two models are called {:?}", twice[0]);
            return Err(InputError::new(message).hint("number the instances: cam-1, cam-2"));
        }
        self.models.iter().try_for_each(EdgeModel::check)?;
        let within = |shared: &Shared| {
            shared.model < count && shared.beside < count && shared.load >= Nanos::ZERO
        };
        if !self.shared.iter().all(within) {
            return Err(InputError::new(
                "a pair that shares layers names a model that there is not",
            ));
        }
        self.shared.iter().try_for_each(|shared| self.check_pair(shared))
    }

    /// What is left to load beside a model that shares layers is a part of the whole.
    fn check_pair(&self, shared: &Shared) -> Result<()> {
        let (model, beside) = (&self.models[shared.model], &self.models[shared.beside]);
        let place = format!("shared {:?} beside {:?}", model.name, beside.name);
        let error = |found: String, whole: String| {
            let message = format!("{found} to load beside the other, of {whole} in all");
            Err(InputError::new(message)
                .at(&place)
                .hint("load_gb and load_ms of a pair are what is not shared"))
        };
        if shared.resident > model.resident {
            return error(shared.resident.to_string(), model.resident.to_string());
        }
        if shared.load > model.load {
            return error(shared.load.to_string(), model.load.to_string());
        }
        Ok(())
    }

    /// The least memory in which every model can run with one of its batches.
    pub fn least_memory(&self) -> Bytes {
        let least = |model: &EdgeModel| model.runs.iter().map(|run| run.memory).min();
        let most = self.models.iter().filter_map(least).max().unwrap_or(Bytes::ZERO);
        most + self.runtime
    }

    /// Memory of the device at a level.
    pub fn memory(&self, wanted: Memory) -> Option<Bytes> {
        let level = match wanted {
            Memory::Given(bytes) => return Some(bytes),
            Memory::Unlimited => return None,
            Memory::Level(level) => level.clamp(0.0, 1.0),
        };
        let first = |model: &EdgeModel| model.runs.first().map_or(Bytes::ZERO, |run| run.memory);
        let most = self.models.iter().map(first).max().unwrap_or(Bytes::ZERO);
        // Of several that need most, the first, as the published code has it.
        let largest = self.models.iter().find(|model| first(model) == most);
        let largest = largest.map_or(Bytes::ZERO, |model| model.resident);
        let least = rounded_up(most + self.runtime);
        let all: Bytes = self.models.iter().map(|model| model.resident).sum();
        let all = all.as_f64() + (most + self.runtime).as_f64() - largest.as_f64();
        let between = level * (all - least.as_f64()).max(0.0);
        Some(least + Bytes::from_f64(between))
    }
}

/// A number as people write it, in a few digits however large it is.
pub(super) fn short(number: f64) -> String {
    match number.abs() {
        1e-3..1e9 => number.to_string(),
        0.0 => "0".into(),
        _ => format!("{number:e}"),
    }
}

/// The least memory is rounded up to hundredths of a gigabyte, as published.
fn rounded_up(bytes: Bytes) -> Bytes {
    const STEP: u64 = 10_000_000;
    Bytes::new(bytes.get().div_ceil(STEP).saturating_mul(STEP))
}

impl EdgeModel {
    fn check(&self) -> Result<()> {
        let error = |message: String| Err(InputError::new(message).at(&self.name));
        if self.runs.is_empty() || self.runs.len() > MOST_RUNS {
            return error(format!("{} batches; expected 1 to {MOST_RUNS}", self.runs.len()));
        }
        if self.load < Nanos::ZERO {
            return error("a load time below zero".into());
        }
        if !self.runs.windows(2).all(|pair| pair[0].batch < pair[1].batch) {
            return error("batches must ascend".into());
        }
        if let Some(run) = self.runs.iter().find(|run| run.memory < self.resident) {
            let frames = counted(run.batch, "frame");
            return Err(InputError::new(format!(
                "a run of {frames} in {}, with a model of {} in it",
                run.memory, self.resident
            ))
            .at(&self.name)
            .hint("gb of a run is its memory with the model in it; load_gb is the model alone"));
        }
        match self.runs.iter().find(|run| run.batch == 0 || run.time <= Nanos::ZERO) {
            None => Ok(()),
            Some(run) => error(format!("a run of {} in {}", counted(run.batch, "frame"), run.time)),
        }
    }

    pub(super) fn run(&self, batch: u32) -> Option<&Run> {
        self.runs.iter().find(|run| run.batch == batch)
    }
}

#[cfg(test)]
mod tests;
