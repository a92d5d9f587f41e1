//! From the records of a PyTorch execution trace to a step graph.
//!
//! Operators nest; only the innermost ones become nodes, so that no time is counted twice (and those
//! whose arithmetic would get lost with them). Host
//! operators run on the queue of their thread in the order of their ids, which PyTorch hands out
//! as operators start. The nested records of one communication operation become one node.

use foretrain_core::diagnostics::Severity;
use foretrain_core::{Ledger, Nanos};
use foretrain_graph::attributes::well_known;
use foretrain_graph::{
    CollectiveKind, Edge, EdgeKind, NodeId, NodeKind, QueueId, QueueKind, StepGraph,
};
use rustc_hash::FxHashMap;

use super::communication;
use super::draft::{CommFacts, Draft};
use super::groups::Groups;
use super::hierarchy::{self, Hierarchy};
use super::parameters::Parameters;
use super::record::Record;
use super::shape::{Shape, is_metadata};
use super::threads::{HostNode, ThreadOrder};
use super::{adopt, flops, tensors};
use crate::graph_file::StatedRank;

/// Builds the graph. `records` are sorted by id, without repetitions.
pub(super) fn lower(
    records: &[Record<'_>],
    path: &str,
    ledger: &mut Ledger,
) -> (StepGraph, StatedRank) {
    let mut hierarchy = Hierarchy::new(records, ledger);
    adopt::adopt(records, &mut hierarchy, ledger);
    let shape = Shape::new(records, &hierarchy);
    let mut lowering = Lowering {
        records,
        hierarchy: &hierarchy,
        shape: &shape,
        draft: Draft::default(),
        groups: Groups::default(),
        threads: ThreadOrder::default(),
        node_of: vec![None; records.len()],
        last_writer: FxHashMap::default(),
        operations: FxHashMap::default(),
        pending_waits: FxHashMap::default(),
        stream_ends: Vec::new(),
        tally: Tally::default(),
    };
    lowering.groups.declare(records, &mut lowering.draft);
    for index in 0..records.len() {
        lowering.emit(index, ledger);
    }
    lowering.finish(path, ledger)
}

/// What went in and came out.
#[derive(Default)]
struct Tally {
    framing: u64,
    enclosing: u64,
    timed: u64,
    emitted: u64,
    operations: u64,
    sized: u64,
    unmatched_waits: u64,
    first_start: Option<Nanos>,
    last_end: Option<Nanos>,
}

struct Lowering<'r, 'a> {
    records: &'r [Record<'a>],
    hierarchy: &'r Hierarchy,
    shape: &'r Shape,
    draft: Draft,
    groups: Groups,
    threads: ThreadOrder,
    node_of: Vec<Option<NodeId>>,
    last_writer: FxHashMap<i64, NodeId>,
    /// Communication operations by the number that waits use.
    operations: FxHashMap<i64, NodeId>,
    /// Operations that the next device work launched from a thread has to wait for.
    pending_waits: FxHashMap<i64, Vec<NodeId>>,
    /// Device nodes with their recorded start.
    stream_ends: Vec<(QueueId, Option<Nanos>, NodeId)>,
    tally: Tally,
}

impl Lowering<'_, '_> {
    fn emit(&mut self, index: usize, ledger: &mut Ledger) {
        let record = &self.records[index];
        if is_metadata(&record.name) {
            self.tally.framing += 1;
        } else if self.shape.carrier[index] {
            self.emit_operation(index, ledger);
        } else if self.shape.device[index] {
            self.emit_device(index);
        } else if !self.shape.has_host_child[index] || self.shape.works[index] {
            self.emit_host(index, NodeKind::HostSegment);
        } else {
            self.tally.enclosing += 1;
        }
    }

    fn emit_host(&mut self, index: usize, kind: NodeKind) -> NodeId {
        let record = &self.records[index];
        let thread = record.thread.unwrap_or(0);
        let queue = self.draft.queue(&format!("thread {thread}"), QueueKind::Thread);
        let node = self.draft.node(kind, &record.name, queue, work(record));
        self.note(index, node, has_time(record));
        let (start, end) = interval(record);
        self.threads.push(HostNode { node, thread, start, end });
        if !self.shape.device_times {
            self.depend_on_tensors(index, node, queue);
        } else {
            self.describe(index, node);
        }
        node
    }

    fn emit_device(&mut self, index: usize) {
        let record = &self.records[index];
        let is_copy = record.category.as_deref().is_some_and(|c| c.starts_with("gpu_mem"));
        let queue = self.stream(record);
        let kind = if is_copy { NodeKind::Copy } else { NodeKind::Kernel };
        let node = self.draft.node(kind, &record.name, queue, work(record));
        if is_copy && let Some(bytes) = record.bytes {
            let mut row = self.draft.graph.node(node);
            row.bytes = Some(foretrain_core::Bytes::new(bytes));
            self.draft.graph.set_node(node, row);
        }
        self.note(index, node, has_time(record));
        self.launch(index, node);
        self.wait_for_operations(index, node);
        self.stream_ends.push((queue, interval(record).0, node));
        self.depend_on_tensors(index, node, queue);
    }

    fn emit_operation(&mut self, index: usize, ledger: &mut Ledger) {
        let members = self.members(index);
        let records: Vec<&Record<'_>> = members.iter().map(|&i| &self.records[i]).collect();
        let found = Parameters::of(&records);
        if found.wait {
            self.emit_wait(index, &found);
            return;
        }
        let group = self.groups.resolve(&found, &mut self.draft, ledger);
        let record = &self.records[index];
        let on_device = self.shape.device[index];
        // A launch lasts as long as the launch, not as long as the operation.
        let timed = has_time(record) && (on_device || communication::runs_on_host(&record.name));
        let time = if timed { work(record) } else { Nanos::ZERO };
        let queue = if on_device { self.stream(record) } else { self.channel(record, &found) };
        let facts = CommFacts {
            kind: found.kind,
            group: Some(group),
            bytes: found.bytes,
            dtype: found.dtype,
            peer: found.peer,
            tag: None,
        };
        let node = self.draft.comm(&record.name, queue, time, &facts);
        self.tally.operations += 1;
        self.tally.sized += u64::from(found.bytes.is_some());
        if found.kind.is_none() {
            let name = record.name.to_string();
            ledger.record_at(
                Severity::Warning,
                "unknown-collective",
                "a communication operation of unknown kind",
                || format!("\"{name}\""),
            );
        }
        self.note(index, node, timed);
        self.launch(index, node);
        for storage in &found.storages {
            self.touch(*storage, node, queue, true);
        }
        if let Some(sequence) = found.sequence {
            self.operations.insert(sequence, node);
        }
        if on_device {
            self.stream_ends.push((queue, interval(record).0, node));
        }
    }

    /// A wait blocks the issuing thread where host operators stand for the work itself, and the
    /// stream it launches to next where device work is recorded.
    fn emit_wait(&mut self, index: usize, found: &Parameters) {
        let operation = found.sequence.and_then(|sequence| self.operations.get(&sequence).copied());
        self.tally.unmatched_waits += u64::from(operation.is_none());
        let node = self.emit_host(index, NodeKind::Sync);
        let Some(operation) = operation else { return };
        if self.shape.device_times {
            let thread = self.records[index].thread.unwrap_or(0);
            self.pending_waits.entry(thread).or_default().push(operation);
        } else {
            self.draft.edge(Edge::new(operation, node, EdgeKind::HostSync));
        }
    }

    fn wait_for_operations(&mut self, index: usize, node: NodeId) {
        let thread = self.host_thread(index);
        for operation in self.pending_waits.remove(&thread).unwrap_or_default() {
            self.draft.edge(Edge::new(operation, node, EdgeKind::EventWait).inferred());
        }
    }

    /// The records of the operation that `carrier` carries, outermost first.
    fn members(&self, carrier: usize) -> Vec<usize> {
        let mut members = vec![carrier];
        let mut at = carrier;
        while let Some(parent) = self.hierarchy.parent[at].map(|p| p as usize)
            && self.shape.level[parent].is_some()
            && self.shape.level[parent] < self.shape.level[at]
        {
            members.push(parent);
            at = parent;
        }
        members.reverse();
        members
    }

    fn stream(&mut self, record: &Record<'_>) -> QueueId {
        // Merged Kineto events keep the stream in the thread field too.
        let number = record.stream.or(record.category.as_ref().and(record.thread));
        let name = number.map_or_else(|| "stream default".to_owned(), |n| format!("stream {n}"));
        self.draft.queue(&name, QueueKind::Stream)
    }

    /// The queue of an operation whose stream is not recorded: one per group, and one per
    /// direction for messages, which must not block each other.
    fn channel(&mut self, record: &Record<'_>, found: &Parameters) -> QueueId {
        let direction = match found.kind {
            Some(CollectiveKind::Send) => " send",
            Some(CollectiveKind::Recv) => " recv",
            _ => "",
        };
        let group = self.groups.name(found);
        let name = format!("communication {group}{direction}");
        let on_host = communication::runs_on_host(&record.name);
        self.draft.queue(&name, if on_host { QueueKind::Other } else { QueueKind::Stream })
    }

    fn host_thread(&self, index: usize) -> i64 {
        let mut at = index;
        while self.shape.device[at] && self.records[at].category.is_some() {
            match self.hierarchy.parent[at] {
                Some(parent) => at = parent as usize,
                None => return 0,
            }
        }
        self.records[at].thread.unwrap_or(0)
    }

    /// From the enclosing host operator if it became a node, else from the thread's latest.
    fn launch(&mut self, index: usize, node: NodeId) {
        let parent = self.hierarchy.parent[index].and_then(|parent| self.node_of[parent as usize]);
        if let Some(parent) = parent {
            self.draft.edge(Edge::new(parent, node, EdgeKind::Launch));
        } else if let Some(last) = self.threads.latest(self.host_thread(index)) {
            self.draft.edge(Edge::new(last, node, EdgeKind::Launch).inferred());
        }
    }

    fn note(&mut self, index: usize, node: NodeId, timed: bool) {
        let record = &self.records[index];
        self.node_of[index] = Some(node);
        self.tally.emitted += 1;
        self.tally.timed += u64::from(timed);
        let mut row = self.draft.graph.node(node);
        row.phase = self.shape.phase[index];
        self.draft.graph.set_node(node, row);
        let attributes = &mut self.draft.graph.node_attributes;
        let at = node.index();
        if timed {
            attributes.set_i64(well_known::RECORDED_DURATION, at, work(record).nanos());
        } else {
            attributes.set_str(well_known::PROVENANCE, at, well_known::NO_DURATION.into());
        }
        if let (Some(start), Some(end)) = interval(record) {
            self.tally.first_start =
                Some(self.tally.first_start.map_or(start, |first| first.min(start)));
            self.tally.last_end = self.tally.last_end.max(Some(end));
            attributes.set_i64(well_known::RECORDED_START, at, start.nanos());
        }
        for (name, value) in [(well_known::GRID, &record.grid), (well_known::BLOCK, &record.block)]
        {
            if let Some(value) = value {
                attributes.set_str(name, at, value.as_str().into());
            }
        }
        if let Some(shapes) = record.inputs.shapes.and_then(|s| tensors::compact_shapes(s.get())) {
            attributes.set_str(well_known::SHAPES, at, shapes);
        }
    }

    /// Dependencies on other queues through the tensors' storages, and what the operator does.
    fn depend_on_tensors(&mut self, index: usize, node: NodeId, queue: QueueId) {
        let (inputs, outputs) = self.describe(index, node);
        let mut storages = Vec::new();
        for (arguments, writes) in [(&inputs, false), (&outputs, true)] {
            for argument in arguments {
                argument.tensors(&mut |tensor| storages.push((tensor.storage, writes)));
            }
        }
        for (storage, writes) in storages {
            self.touch(storage, node, queue, writes);
        }
    }

    fn describe(
        &mut self,
        index: usize,
        node: NodeId,
    ) -> (Vec<tensors::Argument>, Vec<tensors::Argument>) {
        let record = &self.records[index];
        let inputs = tensors::parse(record.inputs.values);
        let outputs = tensors::parse(record.outputs.values);
        if let Some(dtype) = tensors::dtype(&record.inputs) {
            let mut row = self.draft.graph.node(node);
            row.dtype = Some(dtype);
            self.draft.graph.set_node(node, row);
        }
        let attributes = &mut self.draft.graph.node_attributes;
        if let Some(bytes) = flops::bytes_moved(record, &inputs, &outputs) {
            let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
            attributes.set_i64(well_known::BYTES_MOVED, node.index(), bytes);
        }
        if let Some(flops) = flops::flops(record).filter(|flops| flops.is_finite()) {
            attributes.set_f64(well_known::FLOPS, node.index(), flops);
        }
        (inputs, outputs)
    }

    fn touch(&mut self, storage: i64, node: NodeId, queue: QueueId, writes: bool) {
        if let Some(&writer) = self.last_writer.get(&storage)
            && writer != node
            && self.draft.graph.queue(writer) != queue
        {
            self.draft.edge(Edge::new(writer, node, EdgeKind::Data).inferred());
        }
        if writes {
            self.last_writer.insert(storage, node);
        }
    }

    fn finish(mut self, path: &str, ledger: &mut Ledger) -> (StepGraph, StatedRank) {
        self.recorded_dependencies(ledger);
        self.threads.link(&mut self.draft, ledger);
        self.link_streams();
        self.draft.break_cycles(ledger);
        self.report(ledger);
        let origin = self.tally.first_start;
        let recorded = origin.zip(self.tally.last_end).map(|(start, end)| end - start);
        self.groups.report(ledger);
        let ((rank, stated), world) = (self.groups.rank(), self.groups.world_size(&self.draft));
        let mut graph = self.draft.finish();
        rebase_starts(&mut graph, origin);
        graph.meta.rank = rank;
        graph.meta.world_size = world;
        graph.meta.step = "execution trace".into();
        graph.meta.recorded_step = recorded;
        graph.meta.source = path.to_owned();
        (graph, stated)
    }

    /// Dependencies beside the nesting: further control, data and synchronisation ones.
    fn recorded_dependencies(&mut self, ledger: &mut Ledger) {
        for (index, record) in self.records.iter().enumerate() {
            let Some(node) = self.node_of[index] else { continue };
            let beyond = record.control.iter().skip(1).map(|id| (id, EdgeKind::ThreadOrder));
            let data = record.data.iter().map(|id| (id, EdgeKind::Data));
            let sync = record.sync.iter().map(|id| (id, EdgeKind::HostSync));
            for (&id, kind) in beyond.chain(data).chain(sync) {
                match hierarchy::position(self.records, id) {
                    None => hierarchy::dangling(ledger, record, id),
                    Some(at) => {
                        // A dependency on an enclosing operator says no more than the nesting.
                        if let Some(source) = self.node_of[at as usize] {
                            self.draft.edge(Edge::new(source, node, kind));
                        }
                    }
                }
            }
        }
    }

    fn link_streams(&mut self) {
        let mut last: FxHashMap<QueueId, NodeId> = FxHashMap::default();
        let all_timed = self.stream_ends.iter().all(|(_, start, _)| start.is_some());
        if all_timed {
            self.stream_ends.sort_by_key(|(_, start, node)| (*start, *node));
        }
        for &(queue, _, node) in &self.stream_ends {
            if let Some(previous) = last.insert(queue, node) {
                self.draft.edge(Edge::new(previous, node, EdgeKind::StreamOrder).inferred());
            }
        }
    }

    fn report(&self, ledger: &mut Ledger) {
        let tally = &self.tally;
        ledger.cover("times in the file", tally.timed, tally.emitted);
        ledger.cover("sizes of communication operations", tally.sized, tally.operations);
        let carriers = self.shape.carrier.iter().filter(|&&carrier| carrier).count();
        let waits =
            self.draft.graph.node_ids().filter(|&id| self.draft.graph.kind(id) == NodeKind::Sync);
        // Operations in the file = operations in the graph + waits; anything else is a loss.
        let expected = (carriers - waits.count()) as u64;
        ledger.cover("communication operations", tally.operations, expected);
        let accounted = tally.framing + tally.enclosing + tally.emitted;
        ledger.cover("records accounted for", accounted, self.records.len() as u64);
        if tally.timed < tally.emitted {
            ledger.record_many(
                Severity::Warning,
                "no-duration",
                "times not in file: the node has zero duration",
                tally.emitted - tally.timed,
                Some(format!("{} of {} nodes", tally.emitted - tally.timed, tally.emitted)),
            );
        }
        ledger.record_many(
            Severity::Note,
            "enclosing-operator",
            "an operator that only encloses others is represented by them",
            tally.enclosing,
            None,
        );
        ledger.record_many(
            Severity::Note,
            "unmatched-wait",
            "a wait for an operation that was issued before the trace began",
            tally.unmatched_waits,
            None,
        );
    }
}

/// Counts the recorded starts from `origin` on.
pub(crate) fn rebase_starts(graph: &mut StepGraph, origin: Option<Nanos>) {
    let Some(origin) = origin else { return };
    for at in 0..graph.node_count() {
        if let Some(start) = graph.node_attributes.get_i64(well_known::RECORDED_START, at) {
            let start = start.saturating_sub(origin.nanos());
            graph.node_attributes.set_i64(well_known::RECORDED_START, at, start);
        }
    }
}

pub(super) fn has_time(record: &Record<'_>) -> bool {
    record.duration.is_some_and(|duration| duration >= 0.0)
}

fn work(record: &Record<'_>) -> Nanos {
    Nanos::from_micros_f64(record.duration.unwrap_or(0.0)).clamp_positive()
}

fn interval(record: &Record<'_>) -> (Option<Nanos>, Option<Nanos>) {
    let start = record.start;
    let end = start.filter(|_| has_time(record)).map(|start| start + work(record));
    (start, end)
}
