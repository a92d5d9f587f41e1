//! The order in which each stage takes its tasks.

use std::sync::OnceLock;

use foretrain_core::{InputError, Result};

use super::interleaved::interleaved;
use super::listed;
use super::split::{self, split};
use super::task::Task;
use super::there_and_back::there_and_back;
use super::two_way::two_way;
use crate::layout::Schedule;
use crate::memory::{HeldBatches, fullest_moments};

/// Orders of all stages, and how micro-batches travel through them.
#[derive(Clone, Debug)]
pub struct Orders {
    /// Each stage's tasks in the order in which it takes them.
    pub stages: Vec<Vec<Task>>,
    /// Chunks of layers per stage.
    pub chunks: u32,
    /// Micro-batches.
    pub micro_batches: u32,
    pub(super) path: Path,
    fullest: OnceLock<Vec<Vec<HeldBatches>>>,
}

/// Where chunks sit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Path {
    /// Round and round: chunk 0 of all stages, then chunk 1 of all.
    Rounds,
    /// There and back: chunk 0 downwards, chunk 1 upwards.
    There,
    /// Two directions: chunk 0 downwards for half of the micro-batches, chunk 1 upwards for the
    /// others.
    Both,
}

/// A stage's chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The stage.
    pub stage: u32,
    /// Which of its chunks.
    pub chunk: u32,
}

impl Orders {
    /// The fullest moments of `stage`, found once for all stages.
    pub(crate) fn fullest(&self, stage: u32) -> &[HeldBatches] {
        let found = self
            .fullest
            .get_or_init(|| (0..self.depth()).map(|stage| fullest_moments(self, stage)).collect());
        &found[stage as usize]
    }

    /// Stages.
    pub fn depth(&self) -> u32 {
        u32::try_from(self.stages.len()).unwrap_or(u32::MAX)
    }

    /// Where a micro-batch comes from on its way forward; `None` where it enters.
    pub fn before(&self, at: Place) -> Option<Place> {
        let Place { stage, chunk } = at;
        let last = self.depth() - 1;
        match (self.path, chunk) {
            (Path::Rounds, 0) | (Path::There | Path::Both, 0) if stage == 0 => None,
            (Path::Rounds, _) if stage == 0 => Some(Place { stage: last, chunk: chunk - 1 }),
            (Path::Rounds, _) | (_, 0) => Some(Place { stage: stage - 1, chunk }),
            (Path::There, _) if stage == last => Some(Place { stage: last, chunk: 0 }),
            (Path::Both, _) if stage == last => None,
            (Path::There | Path::Both, _) => Some(Place { stage: stage + 1, chunk }),
        }
    }

    /// Where it goes next; `None` where the loss is.
    pub fn after(&self, at: Place) -> Option<Place> {
        let Place { stage, chunk } = at;
        let last = self.depth() - 1;
        match (self.path, chunk) {
            (Path::Rounds, _) if stage < last => Some(Place { stage: stage + 1, chunk }),
            (Path::Rounds, _) if chunk + 1 < self.chunks => {
                Some(Place { stage: 0, chunk: chunk + 1 })
            }
            (Path::Rounds, _) => None,
            (_, 0) if stage < last => Some(Place { stage: stage + 1, chunk }),
            (Path::There, 0) => Some(Place { stage: last, chunk: 1 }),
            (Path::Both, 0) => None,
            (Path::There | Path::Both, _) => (stage > 0).then(|| Place { stage: stage - 1, chunk }),
        }
    }

    /// How many chunks a micro-batch has passed when it reaches `at`: which part of the model the
    /// chunk holds.
    pub fn position(&self, at: Place) -> u32 {
        match (self.path, at.chunk) {
            (Path::Rounds, chunk) => chunk * self.depth() + at.stage,
            (_, 0) => at.stage,
            (Path::There, _) => 2 * self.depth() - 1 - at.stage,
            (Path::Both, _) => self.depth() - 1 - at.stage,
        }
    }
}

/// Most tasks of one schedule: beyond it memory, not time, would be the limit.
const MOST_TASKS: u64 = 1 << 27;

/// The orders of `schedule` on `depth` stages of `chunks` chunks.
///
/// # Errors
/// If the schedule has no such form: too few micro-batches, an odd number for two directions, or
/// one that interleaving cannot deal out.
pub fn orders(schedule: Schedule, depth: u32, chunks: u32, micro_batches: u32) -> Result<Orders> {
    if depth == 0 || chunks == 0 || micro_batches == 0 {
        return Err(InputError::new("a pipeline needs at least one stage and one micro-batch"));
    }
    let tasks = 3 * u64::from(depth) * u64::from(chunks) * u64::from(micro_batches);
    if tasks > MOST_TASKS {
        return Err(InputError::new(format!(
            "{micro_batches} micro-batches on {depth} stages are {tasks} tasks, more than the \
             {MOST_TASKS} that a schedule may have"
        )));
    }
    let fixed = match schedule {
        Schedule::ZbV | Schedule::DualPipe => 2,
        Schedule::ZbH1 | Schedule::ZbH2 | Schedule::Varuna => 1,
        Schedule::GPipe | Schedule::OneFOneB => chunks,
    };
    if chunks != fixed {
        return Err(InputError::new(format!(
            "schedule {} has {fixed} chunk(s) per stage, found {chunks}",
            schedule.as_str()
        )));
    }
    let (stages, path) = match schedule {
        Schedule::GPipe => (gpipe(depth, chunks, micro_batches), Path::Rounds),
        Schedule::OneFOneB => (interleaved(depth, chunks, micro_batches)?, Path::Rounds),
        Schedule::ZbH1 => (split(depth, micro_batches, &split::Same), Path::Rounds),
        Schedule::ZbH2 => (split(depth, micro_batches, &split::Twice), Path::Rounds),
        Schedule::ZbV => (there_and_back(depth, micro_batches)?, Path::There),
        Schedule::DualPipe => (two_way(depth, micro_batches)?, Path::Both),
        Schedule::Varuna => (listed::varuna(depth, micro_batches), Path::Rounds),
    };
    Ok(Orders { stages, chunks, micro_batches, path, fullest: OnceLock::new() })
}

/// All forward, chunk by chunk, then all backward.
fn gpipe(depth: u32, chunks: u32, micro_batches: u32) -> Vec<Vec<Task>> {
    let forward = (0..chunks).flat_map(|chunk| {
        (0..micro_batches).map(move |micro_batch| Task::forward(micro_batch, chunk))
    });
    let backward = (0..chunks).rev().flat_map(|chunk| {
        (0..micro_batches).map(move |micro_batch| Task::backward(micro_batch, chunk))
    });
    let stage: Vec<Task> = forward.chain(backward).collect();
    vec![stage; depth as usize]
}
