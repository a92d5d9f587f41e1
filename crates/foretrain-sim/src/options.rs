//! What a run may be told.

use std::sync::Arc;

use foretrain_core::Nanos;
use foretrain_graph::{NodeId, QueueId};

use crate::error::SimError;
use crate::interference::Interference;
use crate::jitter::Jitter;

/// In which order a queue runs the tasks that are ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Discipline {
    /// First ready, first run. Tasks that become ready in the same nanosecond go by iteration,
    /// then higher priority, then class and node id.
    #[default]
    Fifo,
    /// Earlier iteration first, then higher priority, then class and node id, whenever they
    /// became ready. Edges normally leave only one task ready at a time, as on a device stream.
    InOrder,
    /// Higher priority first, then first ready. A running task is never interrupted.
    Priority,
}

/// The discipline of one queue where it differs from [`SimOptions::discipline`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueDiscipline {
    /// Index of the rank class.
    pub class: usize,
    /// The queue within the graph of the class.
    pub queue: QueueId,
    /// Its discipline.
    pub discipline: Discipline,
}

/// Something that several running tasks share: a link, memory bandwidth, multiprocessors.
///
/// Resources are not tied to a class. Where each device has its own, give each class one.
#[derive(Clone, Debug, PartialEq)]
pub struct Resource {
    /// For people.
    pub name: String,
    /// How much there is, in the unit of the demands.
    pub capacity: f64,
}

/// What a task takes of a resource while it runs at full rate.
///
/// A class stands for all its ranks: if its ranks share the resource with each other, the amount
/// is that of all of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand {
    /// Index of the rank class.
    pub class: usize,
    /// The node.
    pub node: NodeId,
    /// Index into [`SimOptions::resources`].
    pub resource: usize,
    /// Amount at full rate, in the unit of the capacity.
    pub amount: f64,
}

/// What is shared fairly when a resource is short.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// Max-min fair usage, like flows on links: each task takes the same amount (counted by its
    /// largest demand), or all it can use if that is less.
    #[default]
    Usage,
    /// Max-min fair rates: tasks slow down by the same factor.
    Rate,
}

/// A queue that is busy when the run begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitialBusy {
    /// Index of the rank class.
    pub class: usize,
    /// The queue within the graph of the class.
    pub queue: QueueId,
    /// When it becomes free, counted from the start of the run.
    pub until: Nanos,
}

/// Which implementation runs the job. All give the same times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Path {
    /// The fastest that is able to: where edges fix the order of every queue, a pass in that order,
    /// or by the clock only what shares devices and resources.
    #[default]
    Auto,
    /// The one that orders tasks as they become ready, where nothing slows a task down.
    Fast,
    /// The general one.
    General,
}

/// All that a run may be told. The default runs four iterations without noise or sharing.
#[derive(Clone, Debug)]
pub struct SimOptions {
    /// How many steps to run one after the other, at least 1.
    pub iterations: u32,
    /// Discipline of all queues that [`queue_disciplines`](Self::queue_disciplines) does not name.
    pub discipline: Discipline,
    /// Disciplines of single queues.
    pub queue_disciplines: Vec<QueueDiscipline>,
    /// Shared resources.
    pub resources: Vec<Resource>,
    /// Demands on them.
    pub demands: Vec<Demand>,
    /// How a short resource is shared.
    pub sharing: Sharing,
    /// How tasks on one device slow each other down.
    pub interference: Option<Arc<dyn Interference>>,
    /// Noise and stragglers.
    pub jitter: Jitter,
    /// Queues that are busy at first.
    pub initial_busy: Vec<InitialBusy>,
    /// Which implementation to use.
    pub path: Path,
    /// If set, the run may end as soon as an iteration repeats the one before it, shifted, but not
    /// before so many iterations. Its timeline then holds fewer of them.
    pub until_repeats: Option<u32>,
}

impl Default for SimOptions {
    fn default() -> Self {
        Self {
            iterations: 4,
            discipline: Discipline::Fifo,
            queue_disciplines: Vec::new(),
            resources: Vec::new(),
            demands: Vec::new(),
            sharing: Sharing::Usage,
            interference: None,
            jitter: Jitter::default(),
            initial_busy: Vec::new(),
            path: Path::Auto,
            until_repeats: None,
        }
    }
}

impl SimOptions {
    /// The default with this many iterations.
    pub fn iterations(iterations: u32) -> Self {
        Self { iterations, ..Self::default() }
    }

    /// Checks what needs no job to check.
    pub(crate) fn check(&self) -> Result<(), SimError> {
        if self.iterations == 0 {
            return Err(option("iterations", 0, "at least 1"));
        }
        for resource in &self.resources {
            if !(resource.capacity.is_finite() && resource.capacity > 0.0) {
                let name = format!("capacity of resource \"{}\"", resource.name);
                return Err(option(&name, resource.capacity, "a finite number above 0"));
            }
        }
        for demand in &self.demands {
            if !(demand.amount.is_finite() && demand.amount >= 0.0) {
                return Err(option("a demand", demand.amount, "a finite number of 0 or more"));
            }
            if demand.resource >= self.resources.len() {
                return Err(SimError::Dangling {
                    what: format!("demand of node {}", demand.node.get()),
                    class: demand.class,
                    target: format!("resource {}", demand.resource),
                });
            }
        }
        self.jitter.check()
    }
}

pub(crate) fn option(
    name: &str,
    value: impl std::fmt::Display,
    expected: &'static str,
) -> SimError {
    SimError::Option { option: name.to_owned(), value: value.to_string(), expected }
}
