//! When everything happened.

use foretrain_core::Nanos;
use foretrain_graph::NodeId;

/// The result of a run. Times count from the start of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// One entry per rank class, in the order of the job.
    pub classes: Vec<ClassTimeline>,
    /// How many iterations were run.
    pub iterations: usize,
}

/// Times of the tasks of one class. Row `iteration * nodes + node` of each column is one task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassTimeline {
    /// Nodes per iteration.
    pub nodes: usize,
    /// When the task began to occupy its queue; for a collective, when this member arrived.
    pub start: Vec<Nanos>,
    /// When it ended.
    pub end: Vec<Nanos>,
    /// How long of that a collective waited for its last member.
    pub wait: Vec<Nanos>,
    /// The latest end of each iteration.
    pub iteration_end: Vec<Nanos>,
}

impl ClassTimeline {
    /// The row of a task.
    pub fn row(&self, iteration: usize, node: NodeId) -> usize {
        iteration * self.nodes + node.index()
    }
}

/// The distance between the last iterations, and whether it has settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SteadyStep {
    /// From the end of the last but one iteration to the end of the last.
    pub step: Nanos,
    /// The same, one iteration earlier; `None` with fewer than three iterations (the first
    /// difference is from the start of the run, which is no steady state).
    pub before: Option<Nanos>,
}

impl SteadyStep {
    /// From the ends of all iterations.
    pub(crate) fn of(finish: &[Nanos]) -> Self {
        match *finish {
            [] => Self { step: Nanos::ZERO, before: None },
            [only] => Self { step: only, before: None },
            [first, last] => Self { step: last - first, before: None },
            [.., earlier, before, last] => {
                Self { step: last - before, before: Some(before - earlier) }
            }
        }
    }

    /// Whether the last two differ by at most this fraction of the step.
    pub fn converged(&self, tolerance: f64) -> bool {
        let step = self.step.nanos() as f64;
        self.before.is_some_and(|b| (step - b.nanos() as f64).abs() <= tolerance * step.abs())
    }
}

impl Timeline {
    /// When the last task of an iteration ended, over all classes.
    pub fn iteration_finish(&self, iteration: usize) -> Nanos {
        let ends = self.classes.iter().filter_map(|class| class.iteration_end.get(iteration));
        ends.copied().max().unwrap_or(Nanos::ZERO)
    }

    /// When the last task ended.
    pub fn makespan(&self) -> Nanos {
        let last = (0..self.iterations).map(|iteration| self.iteration_finish(iteration)).max();
        last.unwrap_or(Nanos::ZERO)
    }

    /// The time per step once the run has settled: the last difference between iteration ends.
    /// With one iteration, its end.
    pub fn steady_step_time(&self) -> SteadyStep {
        let finish: Vec<Nanos> =
            (0..self.iterations).map(|iteration| self.iteration_finish(iteration)).collect();
        SteadyStep::of(&finish)
    }

    /// When a node ended, once per iteration: for a mark, the times it was passed. Empty if there
    /// is no such class or node.
    pub fn mark_times(&self, class: usize, node: NodeId) -> Vec<Nanos> {
        let Some(class) = self.classes.get(class).filter(|class| node.index() < class.nodes) else {
            return Vec::new();
        };
        class.end.iter().skip(node.index()).step_by(class.nodes).copied().collect()
    }
}
