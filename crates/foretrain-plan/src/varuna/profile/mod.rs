//! Micro-benchmarks of a model cut into pieces: what each piece, message and all-reduce takes.
//!
//! Entries are never made up. What a plan needs and the profile lacks is an error that names the
//! entry, unless [`Gaps`] says how to fill it; what was filled is told with the answer.

mod file;
mod gaps;
mod layers;
mod lookup;
mod quantity;

use std::collections::BTreeMap;
use std::sync::Arc;

use foretrain_core::{Bandwidth, Bytes, InputError, Nanos, Result};

pub use file::{VERSION, parse};
pub use gaps::{Filled, Gaps};
pub use layers::{LayerChoice, parse_layers};

/// Cut-points that a model may have.
pub const MOST_CUT_POINTS: usize = 10_000;

/// A model's micro-benchmarks on one kind of GPU.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    /// The model, if it is named.
    pub model: Option<String>,
    /// The kind of GPU, if it is named.
    pub gpu: Option<String>,
    /// GPUs that share the work of each cut-point (tensor parallelism), at least 1.
    pub tensor_parallel: u32,
    /// Pieces of the model, first to last: where it may be cut into stages.
    pub cut_points: Vec<Arc<CutPoint>>,
    /// Message times by size: within a machine, between machines.
    pub messages: [BTreeMap<Bytes, Nanos>; 2],
    /// All-reduce times by number of stages and ring size.
    pub all_reduce: BTreeMap<u32, BTreeMap<u32, Nanos>>,
    /// What stands for messages and all-reduces that were not measured.
    pub network: Network,
}

/// A piece of the model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CutPoint {
    /// Its name.
    pub name: String,
    /// By micro-batch size.
    pub costs: BTreeMap<u32, Costs>,
    /// The optimizer's update of its parameters, once per step.
    pub update: Option<Nanos>,
}

/// What a piece of the model costs for one micro-batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// The forward pass.
    pub forward: Nanos,
    /// The backward pass.
    pub backward: Nanos,
    /// Copying its input to the host's memory.
    pub copy: Option<Nanos>,
    /// Memory at the most, with its output.
    pub max_memory: Option<Bytes>,
    /// Its output, which is sent where the model is cut after it.
    pub activation: Option<Bytes>,
    /// What is kept for the backward pass where nothing is recomputed.
    pub saved: Option<Bytes>,
}

/// Whether a message leaves its machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// Within a machine: `send`.
    Near,
    /// Between machines: `long_send`.
    Far,
}

impl Reach {
    /// The word in profiles.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Near => "send",
            Self::Far => "long_send",
        }
    }
}

/// A line through what was measured: latency, then a rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// Time of an empty message.
    pub latency: Nanos,
    /// Bytes per second beyond it.
    pub bandwidth: Bandwidth,
}

/// Lines for what tables do not hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Network {
    /// Messages, near and far.
    pub messages: [Option<Line>; 2],
    /// One hop of a ring all-reduce: latency of a hop, rate of a GPU.
    pub ring: Option<Line>,
    /// Bytes of gradients of the whole model.
    pub gradients: Option<Bytes>,
}

impl Profile {
    /// Takes in another file's part of the profile.
    ///
    /// # Errors
    /// If both have cut-points, or an entry stands in both.
    pub fn merge(&mut self, other: Self) -> Result<()> {
        if !self.cut_points.is_empty() && !other.cut_points.is_empty() {
            return Err(InputError::new("cut-points in two files").hint("give them in one"));
        }
        if self.cut_points.is_empty() {
            self.cut_points = other.cut_points;
            self.tensor_parallel = other.tensor_parallel;
        }
        self.model = self.model.take().or(other.model);
        self.gpu = self.gpu.take().or(other.gpu);
        for (into, from) in self.messages.iter_mut().zip(other.messages) {
            for (bytes, time) in from {
                if into.insert(bytes, time).is_some() {
                    return Err(InputError::new(format!("a message of {bytes} in two files")));
                }
            }
        }
        for (stages, rings) in other.all_reduce {
            let into = self.all_reduce.entry(stages).or_default();
            for (ring, time) in rings {
                if into.insert(ring, time).is_some() {
                    return Err(InputError::new(format!(
                        "an all-reduce of {stages} stages in rings of {ring} in two files"
                    )));
                }
            }
        }
        let (into, from) = (&mut self.network, other.network);
        for (line, new) in into.messages.iter_mut().zip(from.messages) {
            *line = line.or(new);
        }
        into.ring = into.ring.or(from.ring);
        into.gradients = into.gradients.or(from.gradients);
        Ok(())
    }

    /// Micro-batch sizes that every cut-point was measured with.
    pub fn micro_batches(&self) -> Vec<u32> {
        let Some(first) = self.cut_points.first() else { return Vec::new() };
        let all = |size: &u32| self.cut_points.iter().all(|cut| cut.costs.contains_key(size));
        first.costs.keys().copied().filter(all).collect()
    }

    /// Whether the profile describes a model at all.
    ///
    /// # Errors
    /// If it has no cut-points, or no micro-batch size that all were measured with.
    pub fn check(&self) -> Result<()> {
        if self.cut_points.is_empty() {
            return Err(InputError::new("a profile without cut-points")
                .hint("give cut_point entries, or a table of layers beside it"));
        }
        if self.micro_batches().is_empty() {
            return Err(InputError::new("no micro-batch size was measured at all cut-points")
                .hint("measure every cut-point with the same sizes"));
        }
        Ok(())
    }
}
