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
//! | to | use |
//! |---|---|
//! | select nodes | [`Query`], [`StepGraph::select`] |
//! | change a graph | [`StepGraph::scale_work`], [`StepGraph::remove_nodes`], [`edit`] |
//! | check it | [`StepGraph::validate`], [`Job::validate`] |
//! | bound its time | [`StepGraph::longest_path`], [`StepGraph::serial_sum`] |
//! | keep it | [`StepGraph::save`], [`StepGraph::load`], [`mod@file`] |
//!
//! ```
//! use foretrain_core::Nanos;
//! use foretrain_graph::{
//!     Edge, EdgeKind, Node, NodeKind, Query, QueueKind, Removal, StepGraph,
//! };
//!
//! // A thread launches two kernels, which run in turn.
//! let mut graph = StepGraph::new();
//! let thread = graph.add_queue("thread 1 (python)", QueueKind::Thread);
//! let stream = graph.add_queue("stream 7", QueueKind::Stream);
//! let host = graph.names.intern("forward");
//! let gemm = graph.names.intern("ampere_bf16_gemm_128x64");
//! let relu = graph.names.intern("relu");
//! let us = Nanos::from_micros;
//! let launch = graph.add_node(Node::new(NodeKind::HostSegment, host, thread, us(20)));
//! let first = graph.add_node(Node::new(NodeKind::Kernel, gemm, stream, us(300)));
//! let second = graph.add_node(Node::new(NodeKind::Kernel, relu, stream, us(50)));
//! graph.add_edge(Edge::new(launch, first, EdgeKind::Launch).with_lag(us(4)));
//! graph.add_edge(Edge::new(first, second, EdgeKind::StreamOrder));
//! graph.node_attributes.set_i64("tokens", first.index(), 4096);
//!
//! graph.validate()?;
//! assert_eq!(graph.longest_path()?.length, us(20 + 4 + 300 + 50));
//!
//! // What if the matrix products were twice as fast and the activation were fused away?
//! let products = graph.select(&Query::parse(r#"kernel("*gemm*") & attr:tokens>=1024"#)?);
//! graph.scale_work(&products, 0.5)?;
//! let fused = graph.select(&Query::parse("kernel(relu)")?);
//! graph.remove_nodes(&fused, Removal::Bridge);
//! assert_eq!(graph.longest_path()?.length, us(20 + 4 + 150));
//!
//! // One file, which pandas and polars open too.
//! let directory = tempfile::tempdir()?;
//! let path = directory.path().join("step.parquet");
//! graph.save(&path)?;
//! assert_eq!(StepGraph::load(&path)?, graph);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! *Architecture invariant:* this crate knows nothing of traces, costs or simulation, and its
//! tables never depend on hash order.

pub mod attributes;
pub mod csr;
pub mod edit;
mod equality;
pub mod file;
pub mod glob;
pub mod job;
pub mod kinds;
mod memory;
pub mod node_set;
pub mod query;
pub mod step_graph;
pub mod validate;

pub use attributes::{Attributes, Column};
pub use csr::Csr;
pub use edit::{Remap, Removal, Removed, Replaced};
pub use file::{FORMAT_VERSION, Limits, check_footer, check_table};
pub use glob::Glob;
pub use job::{Job, RankClass};
pub use kinds::{CollectiveKind, EdgeKind, EdgeOrigin, NodeKind, Phase, QueueKind};
pub use node_set::NodeSet;
pub use query::{Compare, Field, Query, Value};
pub use step_graph::{
    Edge, EdgeId, Group, GroupId, Node, NodeId, Queue, QueueId, StepGraph, StepMeta,
};
pub use validate::CriticalPath;
