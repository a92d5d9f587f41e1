//! Nodes and edges of a step graph from thread pieces and device work.

use std::collections::BTreeMap;

use foretrain_core::{Bytes, DType, NameId, Nanos};
use foretrain_graph::attributes::well_known;
use foretrain_graph::{
    CollectiveKind, Edge, EdgeKind, Group, GroupId, Node, NodeId, NodeKind, Phase, Queue, QueueId,
    QueueKind, StepGraph, StepMeta,
};
use rustc_hash::{FxHashMap, FxHashSet};

use super::context::Context;
use super::device::{DeviceWork, Hold, launching_track};
use super::host::{
    Piece, Target, ThreadPieces, Work, innermost_operator, is_accumulate_grad, outermost_operator,
};
use crate::category::Category;
use crate::collectives::CollectiveOp;
use crate::index::{NO_ROW, short};
use crate::steps::{Step, StepSource};
use crate::table::TrackId;

/// Name of the mark at a step's start.
pub const STEP_BEGIN: &str = "step begin";
/// Node attribute: row of the event in its trace, for device work and host-side collectives. Ties a
/// carried-in node to the node of the step that launched it.
pub const TRACE_ROW: &str = "trace_row";
/// Name of the mark at a step's end.
pub const STEP_END: &str = "step end";

struct Assembler<'a> {
    context: &'a Context<'a>,
    step: &'a Step,
    backward: Option<(Nanos, Nanos)>,
    graph: StepGraph,
    /// Node of each piece, per thread.
    piece_nodes: Vec<Vec<NodeId>>,
    thread_of_track: FxHashMap<TrackId, usize>,
    work_nodes: Vec<NodeId>,
    node_of_row: FxHashMap<u32, NodeId>,
    seen_edges: FxHashSet<(NodeId, NodeId, EdgeKind)>,
    group_ids: BTreeMap<usize, GroupId>,
}

pub(super) fn assemble(
    context: &Context<'_>,
    step: &Step,
    threads: &[ThreadPieces],
    work: &[DeviceWork],
) -> StepGraph {
    let mut assembler = Assembler {
        context,
        step,
        backward: context.phases.backward_span(context.trace, context.index, step.start, step.end),
        graph: StepGraph::new(),
        piece_nodes: Vec::new(),
        thread_of_track: threads
            .iter()
            .enumerate()
            .filter(|(_, thread)| !thread.is_messages)
            .map(|(i, thread)| (thread.track, i))
            .collect(),
        work_nodes: Vec::new(),
        node_of_row: FxHashMap::default(),
        seen_edges: FxHashSet::default(),
        group_ids: BTreeMap::new(),
    };
    assembler.set_meta();
    let (begin, end) = assembler.add_threads(threads);
    assembler.add_work(work);
    assembler.connect_threads(threads, begin, end);
    assembler.connect_work(threads, work, begin, end);
    assembler.number_operations();
    assembler.graph
}

impl Assembler<'_> {
    fn set_meta(&mut self) {
        let meta = &self.context.trace.meta;
        self.graph.meta = StepMeta {
            rank: meta.rank.unwrap_or(0),
            world_size: meta.world_size.unwrap_or(1),
            device: meta.devices.first().map_or_else(String::new, |d| d.name.clone()),
            step: self.step.name.clone(),
            recorded_step: Some(self.step.duration()),
            source: meta.path.clone(),
        };
    }

    fn add_threads(&mut self, threads: &[ThreadPieces]) -> (NodeId, NodeId) {
        let marks = match threads.first() {
            Some(_) => None,
            None => Some(self.graph.add_queue("no host thread recorded", QueueKind::Other)),
        };
        let n_threads = threads.iter().filter(|thread| !thread.is_messages).count();
        let queues: Vec<QueueId> = (0..threads.len())
            .map(|i| {
                let name = match i.checked_sub(n_threads) {
                    Some(lane) => format!("messages {}", lane + 1),
                    None if i == 0 => "main thread".into(),
                    None => format!("thread {i}"),
                };
                self.graph.add_queue(name, QueueKind::Thread)
            })
            .collect();
        let mark_queue = marks.or(queues.first().copied()).unwrap_or_default();
        let begin = self.add_mark(STEP_BEGIN, mark_queue, Nanos::ZERO);
        for (thread, queue) in threads.iter().zip(queues) {
            let nodes = thread.pieces.iter().map(|piece| self.add_piece(piece, queue)).collect();
            self.piece_nodes.push(nodes);
        }
        let end = self.add_mark(STEP_END, mark_queue, self.step.duration());
        (begin, end)
    }

    fn add_mark(&mut self, name: &str, queue: QueueId, at: Nanos) -> NodeId {
        let name = self.graph.names.intern(name);
        let id = self.graph.add_node(Node::new(NodeKind::Mark, name, queue, Nanos::ZERO));
        self.graph.node_attributes.set_i64(well_known::RECORDED_START, id.index(), at.nanos());
        id
    }

    fn add_piece(&mut self, piece: &Piece, queue: QueueId) -> NodeId {
        let phase = self.context.phases.of(piece.row, piece.start, self.backward);
        let duration = piece.end - piece.start;
        let (kind, name, work) = match &piece.work {
            Work::Run => (self.run_kind(piece, phase), self.run_name(piece), duration),
            Work::Wait { targets, overhead } => {
                (NodeKind::Sync, self.wait_name(piece, targets), *overhead)
            }
            Work::Collective { row } => (
                NodeKind::Collective,
                self.context.trace.name_of(*row as usize).to_owned(),
                duration,
            ),
        };
        let name = self.graph.names.intern(&name);
        let mut node = Node { phase, ..Node::new(kind, name, queue, work) };
        node.module = self.module_of(piece.row);
        if let Work::Collective { row } = piece.work
            && let Some(op) = self.context.op(row).cloned()
        {
            self.describe_collective(&mut node, &op);
        }
        let id = self.graph.add_node(node);
        self.set_recorded(id, piece.start, piece.end);
        if let Work::Collective { row } = piece.work {
            self.graph.node_attributes.set_i64(TRACE_ROW, id.index(), i64::from(row));
        }
        self.set_gradient(id, piece.row);
        id
    }

    fn run_kind(&self, piece: &Piece, phase: Phase) -> NodeKind {
        let has_device = !self.context.index.streams.is_empty();
        match phase {
            Phase::Input if self.is_loader(piece.row) => NodeKind::DataLoad,
            Phase::Optimizer if !has_device => NodeKind::Optimizer,
            _ => NodeKind::HostSegment,
        }
    }

    fn is_loader(&self, mut row: u32) -> bool {
        while row != NO_ROW {
            if self.context.trace.name_of(row as usize).contains("DataLoader") {
                return true;
            }
            row = self.context.index.parent[row as usize];
        }
        false
    }

    fn run_name(&self, piece: &Piece) -> String {
        let trace = self.context.trace;
        if piece.row == NO_ROW {
            return "host".into();
        }
        let operator = if trace.category[piece.row as usize] == Category::Runtime {
            innermost_operator(self.context, piece.row)
        } else {
            outermost_operator(self.context, piece.row)
        };
        let row = if operator == NO_ROW { piece.row } else { operator };
        let name = trace.name_of(row as usize);
        // Step marks carry a running number, which would keep steps from matching.
        if name.starts_with("ProfilerStep") { "host".into() } else { name.to_owned() }
    }

    fn wait_name(&self, piece: &Piece, targets: &[Target]) -> String {
        match targets.first() {
            Some(Target::Thread(..)) => "wait for thread".into(),
            Some(Target::QueueSlot(_)) => "launch queue full".into(),
            _ if piece.row != NO_ROW => self.context.trace.name_of(piece.row as usize).to_owned(),
            _ => "wait".into(),
        }
    }

    /// The innermost `nn.Module` frame around a row.
    fn module_of(&mut self, mut row: u32) -> NameId {
        while row != NO_ROW {
            let name = self.context.trace.name_of(row as usize);
            if let Some(module) = name.strip_prefix("nn.Module: ") {
                return self.graph.names.intern(module);
            }
            row = self.context.index.parent[row as usize];
        }
        NameId::EMPTY
    }

    fn set_recorded(&mut self, id: NodeId, start: Nanos, end: Nanos) {
        let (row, attributes) = (id.index(), &mut self.graph.node_attributes);
        attributes.set_i64(well_known::RECORDED_START, row, (start - self.step.start).nanos());
        attributes.set_i64(well_known::RECORDED_DURATION, row, (end - start).nanos());
    }

    fn set_gradient(&mut self, id: NodeId, row: u32) {
        if row == NO_ROW || !is_accumulate_grad(self.context.trace.name_of(row as usize)) {
            return;
        }
        if let Some(bytes) = first_input_bytes(self.context, row) {
            let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
            self.graph.node_attributes.set_i64(well_known::GRADIENT_BYTES, id.index(), bytes);
        }
    }

    fn describe_collective(&mut self, node: &mut Node, op: &CollectiveOp) {
        node.kind = match op.kind {
            CollectiveKind::Send | CollectiveKind::Recv => NodeKind::PointToPoint,
            _ => NodeKind::Collective,
        };
        node.collective = Some(op.kind);
        node.bytes = op.bytes;
        node.dtype = op.dtype;
        if matches!(node.phase, Phase::Backward | Phase::Optimizer) {
            node.phase = Phase::Sync;
        }
        let Some(group) = op.group else { return };
        node.group = Some(self.group_id(group.index()));
    }

    /// Numbers the operations of each group and kind as they were issued, which is the same order
    /// on every rank; a host backend's threads may start them in another. Work of earlier steps
    /// comes after the step's own.
    fn number_operations(&mut self) {
        let mut operations: BTreeMap<_, Vec<(bool, Nanos, NodeId)>> = BTreeMap::new();
        for id in self.graph.node_ids() {
            let node = self.graph.node(id);
            let (Some(group), Some(kind)) = (node.group, node.collective) else { continue };
            let carried = self.graph.is_carried_in(id);
            let issued = self
                .graph
                .node_attributes
                .get_i64(TRACE_ROW, id.index())
                .and_then(|row| self.context.op(u32::try_from(row).ok()?))
                .map_or(Nanos::ZERO, |op| op.issued(self.context.trace));
            operations.entry((group, kind)).or_default().push((carried, issued, id));
        }
        for mut alike in operations.into_values() {
            alike.sort_unstable();
            for ((_, _, id), sequence) in alike.into_iter().zip(0_u32..) {
                let mut node = self.graph.node(id);
                node.sequence = sequence;
                self.graph.set_node(id, node);
            }
        }
    }

    fn group_id(&mut self, index: usize) -> GroupId {
        if let Some(&id) = self.group_ids.get(&index) {
            return id;
        }
        let group = &self.context.recognised.groups[index];
        let world = self.context.trace.meta.world_size.unwrap_or(0);
        let id = self.graph.add_group(Group {
            name: group_name(&group.name, &group.ranks),
            role: group.description.clone(),
            size: if group.size > 0 { group.size } else { world },
            ranks: group.ranks.clone(),
        });
        self.group_ids.insert(index, id);
        id
    }

    fn add_work(&mut self, work: &[DeviceWork]) {
        let mut queues: BTreeMap<(usize, usize), QueueId> = BTreeMap::new();
        for item in work {
            let queue = *queues.entry((item.stream, item.lane)).or_insert_with(|| {
                let stream = &self.context.index.streams[item.stream];
                let name = match (stream.stream, item.lane) {
                    (number, 0) => format!("stream {number}"),
                    (number, lane) => format!("stream {number} lane {lane}"),
                };
                let device = u32::try_from(stream.device).ok();
                self.graph.queues.push(Queue { name, kind: QueueKind::Stream, device });
                QueueId::from_index(self.graph.queues.len() - 1)
            });
            let id = self.add_device_node(item, queue);
            self.work_nodes.push(id);
            self.node_of_row.insert(item.row, id);
        }
    }

    fn add_device_node(&mut self, item: &DeviceWork, queue: QueueId) -> NodeId {
        let trace = self.context.trace;
        let row = item.row as usize;
        let name = self.graph.names.intern(trace.name_of(row));
        let kind = match trace.category[row] {
            Category::Kernel => NodeKind::Kernel,
            _ => NodeKind::Copy,
        };
        let mut node = Node::new(kind, name, queue, item.end - item.start);
        let launch = self.context.index.launch[row];
        let operator =
            if launch == NO_ROW { NO_ROW } else { innermost_operator(self.context, launch) };
        node.phase = if launch == NO_ROW {
            Phase::Unknown
        } else {
            self.context.phases.of(launch, trace.start[launch as usize], self.backward)
        };
        node.module = self.module_of(launch);
        node.bytes = trace.copy_args_of(row).and_then(|args| args.bytes).map(Bytes::new);
        if let Some(op) = self.context.op(item.row).cloned() {
            self.describe_collective(&mut node, &op);
        } else if operator != NO_ROW {
            node.dtype = first_input_dtype(self.context, operator);
        }
        let id = self.graph.add_node(node);
        self.set_recorded(id, item.start, item.end);
        self.set_device_attributes(id, item, operator);
        id
    }

    fn set_device_attributes(&mut self, id: NodeId, item: &DeviceWork, operator: u32) {
        let trace = self.context.trace;
        let attributes = &mut self.graph.node_attributes;
        attributes.set_i64(TRACE_ROW, id.index(), i64::from(item.row));
        if item.carry_in {
            attributes.set_bool(well_known::CARRY_IN, id.index(), true);
        }
        if let Some(launch) = trace.launch_args_of(item.row as usize) {
            let text = |v: [u32; 3]| format!("{},{},{}", v[0], v[1], v[2]).into_boxed_str();
            attributes.set_str(well_known::GRID, id.index(), text(launch.grid));
            attributes.set_str(well_known::BLOCK, id.index(), text(launch.block));
        }
        if operator != NO_ROW {
            let shapes = trace.names.get(trace.shapes[operator as usize]);
            if !shapes.is_empty() && shapes.len() <= 4096 {
                attributes.set_str(well_known::SHAPES, id.index(), shapes.into());
            }
        }
    }

    fn edge(&mut self, edge: Edge) {
        if edge.src != edge.dst && self.seen_edges.insert((edge.src, edge.dst, edge.kind)) {
            self.graph.add_edge(edge);
        }
    }

    /// The last node of a thread that ends at or before `at`, with its end; the step's begin mark
    /// for the main thread if there is none.
    fn anchor(
        &self,
        threads: &[ThreadPieces],
        thread: usize,
        at: Nanos,
        begin: NodeId,
    ) -> (NodeId, Nanos) {
        let pieces = &threads[thread].pieces;
        let upto = pieces.partition_point(|piece| piece.end <= at);
        match upto.checked_sub(1) {
            Some(i) => (self.piece_nodes[thread][i], pieces[i].end),
            None => (begin, self.step.start),
        }
    }

    fn connect_threads(&mut self, threads: &[ThreadPieces], begin: NodeId, end: NodeId) {
        for (t, thread) in threads.iter().enumerate() {
            for (i, piece) in thread.pieces.iter().enumerate() {
                let node = self.piece_nodes[t][i];
                if piece.begins_block {
                    self.connect_block(threads, t, i, begin);
                } else {
                    let previous = self.piece_nodes[t][i - 1];
                    self.edge(Edge::new(previous, node, EdgeKind::ThreadOrder));
                }
                if let Work::Wait { targets, overhead } = &piece.work {
                    for target in targets {
                        self.connect_wait(node, *target, piece.end - *overhead);
                    }
                }
            }
        }
        if let Some(&last) = self.piece_nodes.first().and_then(|nodes| nodes.last()) {
            self.edge(Edge::new(last, end, EdgeKind::ThreadOrder));
        }
        self.connect_unwaited_collectives(threads);
    }

    /// A host-side collective whose end was too early for the main thread to be seen waiting is
    /// waited for all the same: before the first thing the main thread did after it, and, but for
    /// messages, after the backward pass that issued it.
    fn connect_unwaited_collectives(&mut self, threads: &[ThreadPieces]) {
        let Some(main) = threads.first() else { return };
        let waited: FxHashSet<(usize, usize)> = threads
            .iter()
            .flat_map(|thread| &thread.pieces)
            .filter_map(|piece| match &piece.work {
                Work::Wait { targets, .. } => Some(targets),
                _ => None,
            })
            .flatten()
            .filter_map(|target| match target {
                Target::Thread(thread, piece) => Some((*thread, *piece)),
                _ => None,
            })
            .collect();
        let backward_end = self.backward.map_or(Nanos::MIN, |(_, end)| end);
        for (t, thread) in threads.iter().enumerate().skip(1) {
            for (i, piece) in thread.pieces.iter().enumerate() {
                let is_collective = matches!(piece.work, Work::Collective { .. });
                if !is_collective || waited.contains(&(t, i)) {
                    continue;
                }
                let issued_before = !thread.is_messages && piece.start < backward_end;
                let from = if issued_before { piece.end.max(backward_end) } else { piece.end };
                let next = main.pieces.partition_point(|p| p.start < from);
                if let Some(&target) = self.piece_nodes[0].get(next) {
                    let source = self.piece_nodes[t][i];
                    self.edge(Edge::new(source, target, EdgeKind::Data).inferred());
                }
            }
        }
    }

    /// `over` is when the wait was over and only the call's own cost remained.
    fn connect_wait(&mut self, node: NodeId, target: Target, over: Nanos) {
        let (source, kind) = match target {
            Target::Device(row) => (self.node_of_row.get(&row).copied(), EdgeKind::HostSync),
            Target::QueueSlot(row) => (self.node_of_row.get(&row).copied(), EdgeKind::LaunchQueue),
            Target::Thread(thread, piece) => {
                (self.piece_nodes.get(thread).and_then(|n| n.get(piece)).copied(), EdgeKind::Data)
            }
        };
        let lag = match target {
            Target::QueueSlot(row) => {
                (over - self.context.trace.end(row as usize)).clamp_positive()
            }
            _ => Nanos::ZERO,
        };
        if let Some(source) = source {
            self.edge(Edge::new(source, node, kind).with_lag(lag).inferred());
        }
    }

    /// A block hangs off the point that set it off and follows the block before it.
    fn connect_block(&mut self, threads: &[ThreadPieces], t: usize, i: usize, begin: NodeId) {
        let piece = &threads[t].pieces[i];
        let node = self.piece_nodes[t][i];
        if t == 0 {
            let previous = if i == 0 { begin } else { self.piece_nodes[0][i - 1] };
            self.edge(Edge::new(previous, node, EdgeKind::ThreadOrder));
            return;
        }
        let block = super::blocks::Block {
            start: piece.start,
            end: piece.end,
            collective: match piece.work {
                Work::Collective { row } => Some(row),
                _ => None,
            },
        };
        let (at, by) = super::host::fork_point(self.context, &block, threads[0].track);
        let by = self.thread_of_track.get(&by).copied().unwrap_or(0);
        let (source, source_end) = self.anchor(threads, by, at, begin);
        let before = i.checked_sub(1).map(|j| (self.piece_nodes[t][j], threads[t].pieces[j].end));
        let delay = piece.start - source_end;
        match before {
            // The thread was still busy with its previous block: that is what held this one.
            Some((previous, end)) if end > source_end && end <= piece.start => {
                self.edge(Edge::new(source, node, EdgeKind::Data).inferred());
                let lag = piece.start - end;
                self.edge(Edge::new(previous, node, EdgeKind::ThreadOrder).with_lag(lag));
            }
            _ => {
                self.edge(Edge::new(source, node, EdgeKind::Data).with_lag(delay).inferred());
                if let Some((previous, end)) = before
                    && end <= piece.start
                {
                    self.edge(Edge::new(previous, node, EdgeKind::ThreadOrder));
                }
            }
        }
    }

    fn connect_work(
        &mut self,
        threads: &[ThreadPieces],
        work: &[DeviceWork],
        begin: NodeId,
        end: NodeId,
    ) {
        for (i, item) in work.iter().enumerate() {
            let node = self.work_nodes[i];
            for hold in &item.holds {
                let edge = match *hold {
                    Hold::Stream { from, lag } => {
                        Edge::new(self.work_nodes[from], node, EdgeKind::StreamOrder).with_lag(lag)
                    }
                    Hold::Launch { lag } => self.launch_edge(threads, item, node, lag, begin),
                    Hold::Event { from, lag, origin } => Edge {
                        origin,
                        ..Edge::new(self.work_nodes[from], node, EdgeKind::EventWait).with_lag(lag)
                    },
                    Hold::Release { after } => {
                        Edge::new(begin, node, EdgeKind::Data).with_lag(after).inferred()
                    }
                };
                self.edge(edge);
            }
        }
        let ends_with_device = self.context.steps.source == StepSource::WholeWindow;
        if threads.is_empty() || (ends_with_device && !work.is_empty()) {
            self.end_at_device(work, begin, end);
        }
    }

    fn launch_edge(
        &self,
        threads: &[ThreadPieces],
        item: &DeviceWork,
        node: NodeId,
        lag: Nanos,
        begin: NodeId,
    ) -> Edge {
        let called = self.context.trace.start[item.call as usize];
        let thread = launching_track(self.context, item)
            .and_then(|track| self.thread_of_track.get(&track).copied());
        let (source, source_end) = match thread {
            Some(thread) => self.anchor(threads, thread, called, begin),
            None => (begin, self.step.start),
        };
        Edge::new(source, node, EdgeKind::Launch).with_lag(lag + (called - source_end))
    }

    /// Without host marks the step ends when its device work does.
    fn end_at_device(&mut self, work: &[DeviceWork], begin: NodeId, end: NodeId) {
        let last = (0..work.len()).max_by_key(|&i| (work[i].end, i));
        match last {
            Some(last) => {
                let lag = (self.step.end - work[last].end).clamp_positive();
                let edge = Edge::new(self.work_nodes[last], end, EdgeKind::Data);
                self.edge(edge.with_lag(lag).inferred());
            }
            None => {
                let lag = self.step.duration();
                self.edge(Edge::new(begin, end, EdgeKind::Data).with_lag(lag).inferred());
            }
        }
    }
}

/// A name that is the same on all members and different for groups with different members.
fn group_name(name: &str, ranks: &[u32]) -> String {
    match (ranks.first(), ranks.last()) {
        (Some(first), Some(last)) if ranks.len() > 1 => {
            let contiguous = (last - first) as usize == ranks.len() - 1;
            if contiguous {
                format!("{name} [{first}-{last}]")
            } else {
                let all: Vec<String> = ranks.iter().map(u32::to_string).collect();
                format!("{name} [{}]", short(&all.join(",")))
            }
        }
        _ => name.to_owned(),
    }
}

/// Bytes of an operator's first input, from its recorded shapes and types.
fn first_input_bytes(context: &Context<'_>, row: u32) -> Option<u64> {
    let trace = context.trace;
    let shapes = trace.names.get(trace.shapes[row as usize]);
    let elements = first_shape(shapes)?.into_iter().try_fold(1u64, u64::checked_mul)?;
    let dtype = first_input_dtype(context, row).unwrap_or(DType::F32);
    (elements > 0).then(|| dtype.bytes_of(elements))
}

/// The first non-empty flat list of whole numbers in a JSON list of lists.
fn first_shape(shapes: &str) -> Option<Vec<u64>> {
    let inner = shapes.trim().strip_prefix('[')?;
    let open = inner.find('[')?;
    let close = inner[open..].find(']')? + open;
    let list = inner[open + 1..close].trim();
    if list.is_empty() {
        return None;
    }
    list.split(',').map(|n| n.trim().parse().ok()).collect()
}

/// The first element type among an operator's inputs.
fn first_input_dtype(context: &Context<'_>, row: u32) -> Option<DType> {
    let types = context.trace.names.get(context.trace.types[row as usize]);
    types.split('"').find_map(DType::parse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_read_where_they_are_plain() {
        assert_eq!(first_shape("[[512, 256], []]"), Some(vec![512, 256]));
        assert_eq!(first_shape("[[], [3]]"), None);
        assert_eq!(first_shape("[[[4, 2048]], []]"), None);
        assert_eq!(first_shape(""), None);
    }

    #[test]
    fn groups_with_different_members_have_different_names() {
        assert_eq!(group_name("3", &[0, 1, 2, 3]), "3 [0-3]");
        assert_eq!(group_name("3", &[0, 8]), "3 [0,8]");
        assert_eq!(group_name("3", &[]), "3");
    }
}
