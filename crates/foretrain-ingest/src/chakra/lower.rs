//! From Chakra nodes to a step graph.
//!
//! Chakra durations exclude nested work, so every node keeps its own. Dependencies are recorded;
//! program order is only added where nodes tell their thread or stream.

use foretrain_core::diagnostics::Severity;
use foretrain_core::{Bytes, Ledger, Nanos};
use foretrain_graph::attributes::well_known;
use foretrain_graph::{
    CollectiveKind, Edge, EdgeKind, NodeId, NodeKind, QueueId, QueueKind, StepGraph,
};

use super::message::ChakraNode;
use crate::execution_trace::communication;
use crate::execution_trace::draft::{CommFacts, Draft};
use crate::execution_trace::lower::rebase_starts;
use crate::execution_trace::tensors;

/// Node types of the schema.
mod node_type {
    pub(super) const METADATA: i64 = 1;
    pub(super) const MEM_LOAD: i64 = 2;
    pub(super) const MEM_STORE: i64 = 3;
    pub(super) const COMP: i64 = 4;
    pub(super) const COMM_SEND: i64 = 5;
    pub(super) const COMM_RECV: i64 = 6;
    pub(super) const COMM_COLL: i64 = 7;
}

/// Name of the group when a node tells none.
const WORLD: &str = "world";

/// Builds the graph. `nodes` are sorted by id, without repetitions.
pub(super) fn lower(nodes: &[ChakraNode<'_>], path: &str, ledger: &mut Ledger) -> StepGraph {
    let mut lowering =
        Lowering { nodes, draft: Draft::default(), ordered: Vec::new(), tally: Tally::default() };
    for node in nodes {
        lowering.emit(node, ledger);
    }
    lowering.dependencies(ledger);
    lowering.draft.break_cycles(ledger);
    let keys = lowering.start_keys();
    lowering.ordered.sort_unstable();
    lowering.ordered.dedup();
    lowering.draft.order_queues(&lowering.ordered, &keys);
    lowering.report(ledger);
    let (origin, end) = recorded_span(nodes);
    let mut graph = lowering.draft.finish();
    rebase_starts(&mut graph, origin);
    graph.meta.recorded_step = origin.zip(end).map(|(start, end)| end - start);
    graph.meta.world_size = graph.groups.iter().map(|group| group.size).max().unwrap_or(0).max(1);
    graph.meta.step = "Chakra trace".into();
    graph.meta.source = path.to_owned();
    graph
}

#[derive(Default)]
struct Tally {
    timed: u64,
    operations: u64,
    host_halves: u64,
    sized: u64,
}

struct Lowering<'r, 'a> {
    nodes: &'r [ChakraNode<'a>],
    draft: Draft,
    /// Queues whose nodes tell their thread or stream.
    ordered: Vec<QueueId>,
    tally: Tally,
}

impl Lowering<'_, '_> {
    fn emit(&mut self, node: &ChakraNode<'_>, ledger: &mut Ledger) {
        use node_type as T;
        let id = match node.kind {
            T::COMM_SEND | T::COMM_RECV => self.emit_operation(node, ledger),
            T::COMM_COLL if self.is_host_half(node) => {
                self.tally.host_halves += 1;
                self.emit_computation(node)
            }
            T::COMM_COLL => self.emit_operation(node, ledger),
            T::MEM_LOAD => self.emit_copy(node, "memory load"),
            T::MEM_STORE => self.emit_copy(node, "memory store"),
            T::COMP => self.emit_computation(node),
            T::METADATA => self.emit_mark(node),
            other => {
                ledger.record_at(
                    Severity::Warning,
                    "unknown-node-type",
                    "a node of unknown type was taken for a computation",
                    || format!("node {} of type {other}", node.id),
                );
                self.emit_computation(node)
            }
        };
        self.note(node, id);
    }

    /// The host side of a collective whose device side is a node of its own: only that has the
    /// collective's type.
    fn is_host_half(&self, node: &ChakraNode<'_>) -> bool {
        node.on_cpu == Some(true) && node.comm_type.is_none()
    }

    fn emit_computation(&mut self, node: &ChakraNode<'_>) -> NodeId {
        let queue = self.place(node);
        let kind = match node.on_cpu {
            Some(true) => NodeKind::HostSegment,
            _ if node.name.starts_with("Memcpy") || node.name.starts_with("Memset") => {
                NodeKind::Copy
            }
            _ => NodeKind::Kernel,
        };
        let id = self.draft.node(kind, &node.name, queue, work(node));
        if kind == NodeKind::Copy {
            self.set_bytes(id, node.bytes);
        }
        id
    }

    fn emit_copy(&mut self, node: &ChakraNode<'_>, queue: &str) -> NodeId {
        let queue = self.draft.queue(queue, QueueKind::Stream);
        let id = self.draft.node(NodeKind::Copy, &node.name, queue, work(node));
        self.set_bytes(id, node.bytes);
        id
    }

    fn emit_mark(&mut self, node: &ChakraNode<'_>) -> NodeId {
        let queue = self.draft.queue("metadata", QueueKind::Other);
        self.draft.node(NodeKind::Mark, &node.name, queue, work(node))
    }

    fn emit_operation(&mut self, node: &ChakraNode<'_>, ledger: &mut Ledger) -> NodeId {
        let kind = operation_kind(node);
        if kind.is_none() {
            ledger.record_at(
                Severity::Warning,
                "unknown-collective",
                "a communication operation of unknown kind",
                || format!("\"{}\" (comm_type {:?})", node.name, node.comm_type),
            );
        }
        let group = self.group(node);
        let queue = self.channel(node, kind);
        self.tally.operations += 1;
        self.tally.sized += u64::from(node.bytes.is_some());
        let facts = CommFacts {
            kind,
            group: Some(group),
            bytes: node.bytes,
            dtype: node.types.as_deref().and_then(tensors::dtype_in),
            peer: node.peer,
            tag: node.tag,
        };
        self.draft.comm(&node.name, queue, work(node), &facts)
    }

    fn group(&mut self, node: &ChakraNode<'_>) -> foretrain_graph::GroupId {
        let named = node.communication.as_ref().and_then(|facts| facts.group.as_deref());
        let name = named.map_or_else(|| dimension_group(node.dimensions.as_deref()), str::to_owned);
        let id = self.draft.group(&name);
        let group = &mut self.draft.graph.groups[id.index()];
        if let Some(facts) = &node.communication {
            if let Some(role) = &facts.description {
                group.role = role.to_string();
            }
            if let Some(size) = facts.size.and_then(|size| u32::try_from(size).ok()) {
                group.size = size;
            }
        }
        id
    }

    /// The queue of a computation; its nodes are put in order if the file tells which it is.
    fn place(&mut self, node: &ChakraNode<'_>) -> QueueId {
        let (name, kind) = match (node.on_cpu, node.stream, node.thread) {
            (Some(true), _, Some(thread)) => (format!("thread {thread}"), QueueKind::Thread),
            (Some(true), _, None) => ("thread".to_owned(), QueueKind::Thread),
            // Older files keep the stream of device nodes in `tid`.
            (_, Some(stream), _) | (Some(false), None, Some(stream)) => {
                (format!("stream {stream}"), QueueKind::Stream)
            }
            (Some(false), None, None) => ("stream".to_owned(), QueueKind::Stream),
            // Synthetic workloads: one computation engine.
            _ => ("compute".to_owned(), QueueKind::Stream),
        };
        let queue = self.draft.queue(&name, kind);
        if node.on_cpu.is_some() || node.stream.is_some() {
            self.ordered.push(queue);
        }
        queue
    }

    fn channel(&mut self, node: &ChakraNode<'_>, kind: Option<CollectiveKind>) -> QueueId {
        let recorded =
            node.stream.is_some() || (node.on_cpu == Some(false) && node.thread.is_some());
        if recorded && node.on_cpu != Some(true) {
            return self.place(node);
        }
        // Sends and receives must not block each other.
        let name = match kind {
            Some(CollectiveKind::Send) => "communication send",
            Some(CollectiveKind::Recv) => "communication recv",
            _ => "communication",
        };
        self.draft.queue(name, QueueKind::Stream)
    }

    fn set_bytes(&mut self, id: NodeId, bytes: Option<u64>) {
        let mut row = self.draft.graph.node(id);
        row.bytes = bytes.map(Bytes::new);
        self.draft.graph.set_node(id, row);
    }

    fn note(&mut self, node: &ChakraNode<'_>, id: NodeId) {
        let at = id.index();
        if let Some(dtype) = node.types.as_deref().and_then(tensors::dtype_in) {
            let mut row = self.draft.graph.node(id);
            row.dtype = Some(dtype);
            self.draft.graph.set_node(id, row);
        }
        let attributes = &mut self.draft.graph.node_attributes;
        if has_time(node) {
            self.tally.timed += 1;
            attributes.set_i64(well_known::RECORDED_DURATION, at, work(node).nanos());
        } else {
            attributes.set_str(well_known::PROVENANCE, at, well_known::NO_DURATION.into());
        }
        if let Some(start) = node.start {
            attributes.set_i64(well_known::RECORDED_START, at, start.nanos());
        }
        if let Some(operations) = node.operations {
            attributes.set_f64(well_known::FLOPS, at, operations as f64);
        }
        if let (node_type::COMP, Some(bytes)) = (node.kind, node.bytes) {
            let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
            attributes.set_i64(well_known::BYTES_MOVED, at, bytes);
        }
        if let Some(shapes) = &node.shapes {
            attributes.set_str(well_known::SHAPES, at, shapes.clone());
        }
    }

    fn dependencies(&mut self, ledger: &mut Ledger) {
        let (mut kept, mut total) = (0, 0);
        for (at, node) in self.nodes.iter().enumerate() {
            let dst = NodeId::from_index(at);
            let data = node.data.iter().map(|id| (id, EdgeKind::Data));
            let control = node.control.iter().map(|id| (id, EdgeKind::ThreadOrder));
            for (&id, kind) in data.chain(control) {
                total += 1;
                let Ok(source) = self.nodes.binary_search_by_key(&id, |node| node.id) else {
                    ledger.record_at(
                        Severity::Dropped,
                        "dangling-dependency",
                        "a dependency on a node that is not in the file was left out",
                        || format!("node {} needs {id}", node.id),
                    );
                    continue;
                };
                kept += 1;
                let src = NodeId::from_index(source);
                let edge_kind = if self.is_launch(src, dst) { EdgeKind::Launch } else { kind };
                self.draft.edge(Edge::new(src, dst, edge_kind));
            }
        }
        ledger.cover("dependencies", kept, total);
    }

    fn is_launch(&self, src: NodeId, dst: NodeId) -> bool {
        let kind = |id| self.draft.graph.queues[self.draft.graph.queue(id).index()].kind;
        kind(src) == QueueKind::Thread && kind(dst) == QueueKind::Stream
    }

    /// Recorded starts if every node has one, else nothing: ids alone decide.
    fn start_keys(&self) -> Vec<i64> {
        let keys: Option<Vec<i64>> = self.nodes.iter().map(|n| n.start.map(Nanos::nanos)).collect();
        keys.unwrap_or_default()
    }

    fn report(&self, ledger: &mut Ledger) {
        let (tally, count) = (&self.tally, self.nodes.len() as u64);
        ledger.cover("times in the file", tally.timed, count);
        ledger.cover("sizes of communication operations", tally.sized, tally.operations);
        let is_operation = |n: &&ChakraNode<'_>| (5..=7).contains(&n.kind);
        let seen = self.nodes.iter().filter(is_operation).count() as u64;
        ledger.cover("communication operations", tally.operations + tally.host_halves, seen);
        ledger.cover("records accounted for", self.draft.graph.node_count() as u64, count);
        ledger.record_many(
            Severity::Note,
            "host-half-of-collective",
            "the host side of a collective is a host segment; its device side is the collective",
            tally.host_halves,
            None,
        );
        if tally.timed < count {
            ledger.record_many(
                Severity::Warning,
                "no-duration",
                "times not in file: the node has zero duration",
                count - tally.timed,
                Some(format!("{} of {count} nodes", count - tally.timed)),
            );
        }
    }
}

/// The first start and the last end, where every node has a start.
fn recorded_span(nodes: &[ChakraNode<'_>]) -> (Option<Nanos>, Option<Nanos>) {
    let starts: Option<Vec<Nanos>> = nodes.iter().map(|node| node.start).collect();
    let Some(starts) = starts else { return (None, None) };
    let ends = starts.iter().zip(nodes).map(|(&start, node)| start + work(node));
    (starts.iter().copied().min(), ends.max())
}

/// The operation by its type, else by its name.
fn operation_kind(node: &ChakraNode<'_>) -> Option<CollectiveKind> {
    use CollectiveKind as K;
    // `CollectiveCommType` of the schema, in order of its numbers.
    const KINDS: [CollectiveKind; 10] = [
        K::AllReduce,
        K::Reduce,
        K::AllGather,
        K::Gather,
        K::Scatter,
        K::Broadcast,
        K::AllToAll,
        K::ReduceScatter,
        K::ReduceScatter,
        K::Barrier,
    ];
    match (node.kind, node.comm_type) {
        (node_type::COMM_SEND, _) => Some(K::Send),
        (node_type::COMM_RECV, _) => Some(K::Recv),
        (_, Some(number)) => usize::try_from(number).ok().and_then(|n| KINDS.get(n).copied()),
        _ => communication::kind_of(&node.name),
    }
}

/// A group named by the network dimensions it spans.
fn dimension_group(dimensions: Option<&[u64]>) -> String {
    match dimensions {
        Some(flags) if flags.contains(&0) => {
            let spanned: Vec<String> =
                (0..flags.len()).filter(|&at| flags[at] != 0).map(|at| at.to_string()).collect();
            format!("dimensions {}", spanned.join(","))
        }
        _ => WORLD.to_owned(),
    }
}

fn has_time(node: &ChakraNode<'_>) -> bool {
    node.duration.is_some_and(|duration| duration >= 0.0)
}

fn work(node: &ChakraNode<'_>) -> Nanos {
    Nanos::from_micros_f64(node.duration.unwrap_or(0.0)).clamp_positive()
}
