//! The engine: a deterministic fluid discrete-event simulation of step graphs.
//!
//! # The life of a run
//!
//! 1. [`Program::compile`] lays the classes of a [`Job`] out in flat arrays and finds which nodes
//!    meet in which collective. A group with a missing member is refused here.
//! 2. [`Program::run`] unrolls the periodic graph over [`SimOptions::iterations`] steps: task
//!    (i, node) waits for one edge less where the edge would come from before step 0.
//! 3. A task is *ready* when all its edges are satisfied: `end of source + lag`, the latest counts.
//!    A negative lag lets it start before its source ends, but not before its source starts.
//! 4. It *starts* when its queue takes it ([`Discipline`]) and occupies the queue from then on.
//! 5. A collective occupies its queue from its own start, and its transfer begins when the last
//!    member has arrived. The transfer takes the longest work of any member; all end together.
//! 6. A running task progresses at a rate: 1, or less where an [`Interference`] model or a short
//!    [`Resource`] slows it. Rates change only when something starts or ends beside it.
//! 7. Its end satisfies edges and frees its queue. The [`Timeline`] holds every start, end and wait.
//!
//! ```text
//!  class 0  thread  |launch|launch|
//!           stream         |-- kernel --|= wait =|## all-reduce ##|
//!                                       ^ arrival ^ last arrival
//!  class 1  stream         |------ kernel -------|## all-reduce ##|
//! ```
//!
//! # Example
//!
//! ```
//! use foretrain_core::{NameId, Nanos};
//! use foretrain_graph::{Edge, EdgeKind, Job, Node, NodeKind, QueueKind, StepGraph};
//! use foretrain_sim::{SimOptions, simulate};
//!
//! let mut step = StepGraph::new();
//! let thread = step.add_queue("thread", QueueKind::Thread);
//! let stream = step.add_queue("stream 7", QueueKind::Stream);
//! let us = Nanos::from_micros;
//! let call = step.add_node(Node::new(NodeKind::HostSegment, NameId::EMPTY, thread, us(10)));
//! let kernel = step.add_node(Node::new(NodeKind::Kernel, NameId::EMPTY, stream, us(100)));
//! step.add_edge(Edge::new(call, kernel, EdgeKind::Launch).with_lag(us(5)));
//! // Both queues go on with the next step where this one ends.
//! step.add_edge(Edge::new(call, call, EdgeKind::ThreadOrder).with_distance(1));
//! step.add_edge(Edge::new(kernel, kernel, EdgeKind::StreamOrder).with_distance(1));
//!
//! let timeline = simulate(&Job::uniform(step, 64), &SimOptions::iterations(4))?;
//! let steady = timeline.steady_step_time();
//! assert_eq!(steady.step, us(100));
//! assert!(steady.converged(0.001));
//! assert_eq!(timeline.makespan(), us(10 + 5 + 4 * 100));
//! # Ok::<(), foretrain_sim::SimError>(())
//! ```
//!
//! # Limits
//!
//! - Ties: tasks that become ready in the same nanosecond go by iteration, then priority, then
//!   class and node id. So the numbering of nodes can matter where priorities are equal and the
//!   graph leaves the order of a queue open.
//! - First-ready-first-run queues have scheduling anomalies: less work in one place may make the
//!   whole slower. Where edges fix the order of every queue, less work never delays anything.
//! - A class stands for equal ranks. Noise makes them differ until they next meet; the latest of
//!   them is drawn where they do. After a meeting they count as level even if only some of them
//!   took part, and the end of an iteration is that of a typical rank unless it ends in a meeting.
//! - A collective without noise in front of it waits for nobody within its own class.
//! - If rates drop after a task was let go by a negative lag, it stays let go.
//!
//! *Architecture invariant:* this crate performs no IO, reads no clock, iterates over no hash
//! table and draws random numbers only from the seed in its options. Equal input gives equal
//! bytes on any machine and any number of threads.

pub mod contended;
mod critical;
mod deadlock;
mod earliest;
pub mod error;
mod fast;
mod fluid;
mod general;
pub mod interference;
pub mod jitter;
mod meeting;
mod noise;
pub mod options;
mod ordered;
pub mod program;
mod run;
mod sharers;
mod state;
pub mod timeline;

use foretrain_graph::Job;

pub use critical::{CriticalTask, StartReason};
pub use error::SimError;
pub use interference::{FixedFactors, Interference, TaskView};
pub use jitter::{Jitter, Stragglers};
pub use options::{
    Demand, Discipline, InitialBusy, Path, QueueDiscipline, Resource, Sharing, SimOptions,
};
pub use program::{MAX_TASKS, Program};
pub use state::Workspace;
pub use timeline::{ClassTimeline, SteadyStep, Timeline};

/// Lays a job out and simulates it once.
///
/// # Errors
/// As [`Program::compile`] and [`Program::run`].
pub fn simulate(job: &Job, options: &SimOptions) -> Result<Timeline, SimError> {
    Program::compile(job)?.run(options)
}
