//! How tasks that run on one device at the same time slow each other down.

use std::fmt::Debug;

use foretrain_graph::{NodeId, NodeKind, QueueId};

/// A task that is running, as an interference model sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskView {
    /// Index of the rank class.
    pub class: usize,
    /// The node.
    pub node: NodeId,
    /// Its kind.
    pub kind: NodeKind,
    /// Its queue.
    pub queue: QueueId,
    /// Its device (0 where the queue does not say).
    pub device: u32,
    /// Whether it occupies its queue but still waits for other members of its collective.
    pub waiting: bool,
}

impl TaskView {
    /// Whether it moves data between ranks.
    pub fn is_communication(&self) -> bool {
        self.kind.communicates()
    }
}

/// A model of slow-down between tasks that run on one device at the same time.
///
/// The engine asks whenever a task starts or ends on a stream or link queue of the device while
/// others run there, and never about host threads. What runs alone runs at full rate.
pub trait Interference: Debug + Send + Sync {
    /// Writes the rate of each running task: 1 is full rate, 0.5 takes twice as long. `rates`
    /// has the length of `running` and holds 1 everywhere. Rates of waiting tasks are ignored;
    /// rates that are not positive numbers are raised to [`MIN_RATE`], those above 1 are kept.
    ///
    /// The answer must depend on nothing but `running`, in any order.
    fn rates(&self, running: &[TaskView], rates: &mut [f64]);
}

/// The slowest a task can get: a thousandth of a millionth of full rate. It keeps a broken model
/// from stopping a run for ever.
pub const MIN_RATE: f64 = 1e-9;

/// One factor for computation and one for communication while they overlap.
///
/// With lengths `a` (computation) and `b` (communication), both started at 0, the pair ends at
/// `a f_c + (b - a f_c / f_m)` if `a f_c <= b f_m`, else at `b f_m + (a - b f_m / f_c)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FixedFactors {
    /// How many times longer computation takes while communication runs beside it.
    pub compute: f64,
    /// How many times longer communication takes while computation runs beside it.
    pub communication: f64,
    /// Whether a collective slows computation down while it still waits for its members.
    pub while_waiting: bool,
}

impl Default for FixedFactors {
    /// 1.3 on both sides, the default of Galvatron, and none while waiting.
    fn default() -> Self {
        Self { compute: 1.3, communication: 1.3, while_waiting: false }
    }
}

impl Interference for FixedFactors {
    fn rates(&self, running: &[TaskView], rates: &mut [f64]) {
        let computes = running.iter().any(|task| !task.is_communication());
        let communicates = running
            .iter()
            .any(|task| task.is_communication() && (self.while_waiting || !task.waiting));
        for (task, rate) in running.iter().zip(rates) {
            if task.is_communication() && computes {
                *rate = 1.0 / self.communication;
            } else if !task.is_communication() && communicates {
                *rate = 1.0 / self.compute;
            }
        }
    }
}
