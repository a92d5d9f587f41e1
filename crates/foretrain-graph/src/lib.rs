//! The attributed graph of one training step.
//!
//! A [`StepGraph`] is a table of nodes (host segments, kernels, copies, collectives, ...), a
//! table of edges, and small tables of queues, communicator groups and names. Every node has a
//! duration (its *work*) and runs on one exclusive queue; every edge delays its target until
//! `lag` after its source has finished. Anyone may add an attribute by name; it survives saving
//! and loading.
//!
//! The graph is *periodic*: an edge with `distance` d leads from a node to the node d steps
//! later, so one graph describes a whole steady run, and the engine unrolls it.
//!
//! *Architecture invariant:* this crate knows nothing of traces, costs or simulation, and its
//! tables never depend on hash order.

pub mod attributes;
pub mod csr;
pub mod edit;
mod equality;
pub mod glob;
pub mod job;
pub mod kinds;
pub mod node_set;
pub mod query;
pub mod step_graph;
pub mod validate;

pub use attributes::{Attributes, Column};
pub use csr::Csr;
pub use edit::{Remap, Removal, Removed, Replaced};
pub use glob::Glob;
pub use job::{Job, RankClass};
pub use kinds::{CollectiveKind, EdgeKind, EdgeOrigin, NodeKind, Phase, QueueKind};
pub use node_set::NodeSet;
pub use query::{Compare, Field, Query, Value};
pub use step_graph::{
    Edge, EdgeId, Group, GroupId, Node, NodeId, Queue, QueueId, StepGraph, StepMeta,
};
pub use validate::CriticalPath;
