//! Playing a pipeline's schedule with real durations.
//!
//! A stage starts its next task when it is idle, the task is next in the schedule's order and
//! its input has arrived. Sends never hold up computation: a stage has up to [`IN_FLIGHT`] of them
//! under way, activations before gradients. Everything that happens at one instant takes effect
//! before anything starts at it, so times do not depend on the order of events.

mod distribution;
mod engine;
mod jitter;

use foretrain_core::{InputError, Nanos, Result};

pub use distribution::{Distribution, draws};
pub use engine::{Run, Slice, simulate, simulate_recorded};
pub use jitter::Jitter;

use super::schedule::Schedule;

/// Sends that a stage has under way at once.
pub const IN_FLIGHT: u32 = 4;

/// Stages times micro-batches that one simulation may have.
pub const MOST_TASKS: u64 = 1 << 25;

/// Durations of one stage for one micro-batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageTime {
    /// The forward pass; recomputing takes as long.
    pub forward: Nanos,
    /// The backward pass.
    pub backward: Nanos,
}

/// A pipeline: durations of its stages, and of messages between neighbours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pipeline {
    stages: Vec<StageTime>,
    /// Between a stage and the next, either way: one less than there are stages.
    messages: Vec<Nanos>,
}

impl Pipeline {
    /// A pipeline of these stages; `messages[i]` is the time of a message between stages `i` and
    /// `i + 1`, either way.
    ///
    /// # Errors
    /// If there is no stage, or not one message less than there are stages, or a time is negative.
    pub fn new(stages: Vec<StageTime>, messages: Vec<Nanos>) -> Result<Self> {
        if stages.is_empty() {
            return Err(InputError::new("a pipeline of 0 stages").hint("give at least one stage"));
        }
        if messages.len() + 1 != stages.len() {
            let (found, wanted) = (messages.len(), stages.len() - 1);
            return Err(InputError::new(format!(
                "{found} message times for {} stages, expected {wanted}",
                stages.len()
            )));
        }
        let times = stages.iter().flat_map(|stage| [stage.forward, stage.backward]);
        if let Some(wrong) = times.chain(messages.iter().copied()).find(|t| *t < Nanos::ZERO) {
            return Err(InputError::new(format!("a duration of {wrong}, expected 0 or more")));
        }
        Ok(Self { stages, messages })
    }

    /// The stages, first to last.
    pub fn stages(&self) -> &[StageTime] {
        &self.stages
    }

    /// Message times between neighbours.
    pub fn messages(&self) -> &[Nanos] {
        &self.messages
    }

    /// The same with messages that take no time.
    #[must_use]
    pub fn without_messages(&self) -> Self {
        let messages = vec![Nanos::ZERO; self.messages.len()];
        Self { stages: self.stages.clone(), messages }
    }
}

/// One step of a pipeline: what runs, in which order, for how many micro-batches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pipeline: Pipeline,
    schedule: Schedule,
    micro_batches: u32,
}

impl Step {
    /// A step.
    ///
    /// # Errors
    /// If there is no micro-batch, or more work than [`MOST_TASKS`].
    pub fn new(pipeline: Pipeline, schedule: Schedule, micro_batches: u32) -> Result<Self> {
        if micro_batches == 0 {
            return Err(InputError::new("a step of 0 micro-batches").hint("give at least one"));
        }
        let stages = pipeline.stages.len() as u64;
        if stages.saturating_mul(micro_batches.into()) > MOST_TASKS {
            return Err(InputError::new(format!(
                "{stages} stages of {micro_batches} micro-batches are too much to simulate, at most {MOST_TASKS} together"
            ))
            .hint("take a larger micro-batch or a smaller batch"));
        }
        Ok(Self { pipeline, schedule, micro_batches })
    }

    /// The pipeline.
    pub fn pipeline(&self) -> &Pipeline {
        &self.pipeline
    }
    /// The order of work.
    pub fn schedule(&self) -> Schedule {
        self.schedule
    }
    /// Micro-batches of the step.
    pub fn micro_batches(&self) -> u32 {
        self.micro_batches
    }

    /// How long a stage computes in the step.
    pub fn work_of(&self, stage: usize) -> Nanos {
        let StageTime { forward, backward } = self.pipeline.stages[stage];
        let recomputes = self.schedule.recomputes(stage + 1 == self.pipeline.stages.len());
        let forwards = if recomputes { 2.0 } else { 1.0 };
        let count = f64::from(self.micro_batches);
        forward.scale(forwards * count) + backward.scale(count)
    }
}
