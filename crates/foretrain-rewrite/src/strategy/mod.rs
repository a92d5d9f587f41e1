//! The pipeline builder: composes a step and a way to synchronise gradients out of passes.
//!
//! A [`Strategy`] is a list of [passes](Pass), each one mechanism: fusing gradients into buckets,
//! sharding states, splitting, shrinking, a topology, a schedule. It is applied to a step graph that
//! has no gradient synchronisation; what operations cost is asked of [`SyncCosts`].
//!
//! ```text
//!  step graph --find--> Draft { gradients, one all-reduce each }
//!     --fuse--> buckets --shard--> reduce-scatter + all-gather --partition--> parts
//!     --compress--> encoded --topology--> ring, servers, ... --schedule--> priorities
//!     --lower--> nodes and edges in the graph, each with its time
//! ```
//!
//! Others add a pass by a [`PassKind`] in the [`Registry`]; the engine never hears of it. What is
//! [installed](Registry::install) is known wherever strategies are written in this process.
//!
//! ```
//! use foretrain_rewrite::strategy::Registry;
//!
//! let registry = Registry::builtin();
//! assert!(registry.parse("fuse(25MiB, first=1MiB) | compress(half) | ring").is_ok());
//! assert!(registry.parse("byteps").is_ok());
//! let error = registry.parse("ring | byteps").err().unwrap();
//! assert!(error.message().contains("two topologies"));
//! ```

mod costs;
mod draft;
mod find;
mod lower;
mod parameters;
mod pass;
pub mod passes;
mod presets;
mod registry;
mod strip;
#[cfg(test)]
mod tests;

use foretrain_core::Result;
use foretrain_graph::{NodeId, QueueId, StepGraph};

pub use costs::{Call, Cost, Scope, SyncCosts};
pub use draft::{Anchor, Draft, Exchange, Gradient, ServerPlan, Way};
pub use find::{Optimiser, backward_passes};
pub use lower::Placed;
pub use parameters::{Kind, Parameter, Values};
pub use pass::{Build, Pass, PassKind, Stage};
pub use presets::Preset;
pub use registry::{Registry, Scalar, Written, WrittenPass};
pub use strip::strip;

/// How gradients are synchronised: passes in order.
pub struct Strategy {
    /// Each with its kind's position in the registry.
    passes: Vec<(usize, Box<dyn Pass>)>,
    /// As it was written.
    text: String,
}

/// What a strategy did to a step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Applied {
    /// Nodes of synchronisation in order of issue, with their times.
    pub placed: Vec<Placed>,
    /// Queues on which the highest priority runs first
    /// (`Discipline::Priority` of the engine).
    pub priority_queues: Vec<QueueId>,
    /// Communication that was repeated with the part of the step around it: the first of each and
    /// its copy.
    pub repeated: Vec<(NodeId, NodeId)>,
    /// Training steps that the graph holds now.
    pub steps: u32,
    /// Micro-batches per step for each that was recorded.
    pub batches: u32,
    /// How many steps on an exchange may still run.
    pub overhang: u32,
    /// Gradients of one micro-batch.
    pub gradients: usize,
    /// What a reader should know.
    pub notes: Vec<String>,
}

impl Strategy {
    /// As it was written: `fuse(25MiB) | ring`.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Rewrites a step that has no gradient synchronisation. Where the ranks of a model replica are
    /// simulated side by side, `part` tells their groups apart ("of rank 3"); else it is empty.
    ///
    /// # Errors
    /// If the step shows no gradients, or a pass cannot be applied to it. The graph may be changed
    /// in part then.
    pub fn apply(
        &self,
        graph: &mut StepGraph,
        costs: &dyn SyncCosts,
        part: &str,
    ) -> Result<Applied> {
        let mut draft = Draft::new(graph, costs)?;
        for (_, pass) in &self.passes {
            pass.apply(&mut draft)?;
        }
        let lowered = lower::lower(&mut draft, part);
        let gradients = draft.last_gradients().len();
        Ok(Applied {
            placed: lowered.placed,
            priority_queues: lowered.priority_queues,
            repeated: draft.repeated,
            steps: draft.steps,
            batches: draft.batches,
            overhang: lowered.overhang,
            gradients,
            notes: draft.notes,
        })
    }
}

impl std::fmt::Debug for Strategy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Strategy").field(&self.text).finish()
    }
}
