//! A step as device work one after the other.

use foretrain_core::{Bytes, NameId, Nanos};
use foretrain_graph::attributes::well_known;
use foretrain_graph::{
    Edge, EdgeKind, Node, NodeId, NodeKind, Phase, QueueId, QueueKind, StepGraph,
};

/// Device work, and the call that launches it.
#[derive(Clone, Copy, Debug)]
pub struct Task<'a> {
    /// Its name.
    pub name: &'a str,
    /// A kernel or a copy.
    pub kind: NodeKind,
    /// Part of the step.
    pub phase: Phase,
    /// How long it takes.
    pub time: Nanos,
    /// Payload of a copy.
    pub bytes: Option<Bytes>,
    /// The gradient that it completes.
    pub gradient: Option<Bytes>,
}

impl<'a> Task<'a> {
    /// A kernel that completes no gradient.
    pub const fn kernel(name: &'a str, phase: Phase, time: Nanos) -> Self {
        Self { name, kind: NodeKind::Kernel, phase, time, bytes: None, gradient: None }
    }
}

/// Device work one after the other on a stream, and the calls of a host thread that launch it and
/// take no time.
#[derive(Debug)]
pub struct StepLine {
    graph: StepGraph,
    thread: QueueId,
    stream: QueueId,
    at: Nanos,
    ends: Option<(Pair, Pair)>,
}

/// A call and what it launches.
#[derive(Clone, Copy, Debug)]
struct Pair {
    call: NodeId,
    work: NodeId,
}

impl Default for StepLine {
    fn default() -> Self {
        Self::new()
    }
}

impl StepLine {
    /// Without any work yet.
    pub fn new() -> Self {
        let mut graph = StepGraph::new();
        let thread = graph.add_queue("main", QueueKind::Thread);
        let stream = graph.add_queue("stream", QueueKind::Stream);
        Self { graph, thread, stream, at: Nanos::ZERO, ends: None }
    }

    /// Adds work behind what is there, as if the host had waited for all of it in the recording: a
    /// gradient's call ends when the gradient is ready.
    pub fn launch(&mut self, task: &Task<'_>) {
        let Task { phase, time, .. } = *task;
        let name = self.graph.names.intern(task.name);
        let start = self.at;
        self.at += time;
        let module = if phase == Phase::Optimizer { NameId::EMPTY } else { name };
        let of = |kind, queue, work| Node { phase, module, ..Node::new(kind, name, queue, work) };
        let call = self.graph.add_node(of(NodeKind::HostSegment, self.thread, Nanos::ZERO));
        let work = Node { bytes: task.bytes, ..of(task.kind, self.stream, time) };
        let work = self.graph.add_node(work);
        let recorded = [(call, self.at, Nanos::ZERO), (work, start, time)];
        let attributes = &mut self.graph.node_attributes;
        for (id, start, time) in recorded {
            attributes.set_i64(well_known::RECORDED_START, id.index(), start.nanos());
            attributes.set_i64(well_known::RECORDED_DURATION, id.index(), time.nanos());
        }
        if let Some(bytes) = task.gradient {
            let bytes = i64::try_from(bytes.get()).unwrap_or(i64::MAX);
            attributes.set_i64(well_known::GRADIENT_BYTES, call.index(), bytes);
        }
        self.graph.add_edge(Edge::new(call, work, EdgeKind::Launch));
        let pair = Pair { call, work };
        let first = match self.ends {
            Some((first, last)) => {
                self.follow(last, pair, 0);
                first
            }
            None => pair,
        };
        self.ends = Some((first, pair));
    }

    /// The work that was added last, with the graph to say more of it.
    pub fn last(&mut self) -> Option<(NodeId, &mut StepGraph)> {
        let (_, last) = self.ends?;
        Some((last.work, &mut self.graph))
    }

    fn follow(&mut self, before: Pair, after: Pair, distance: u16) {
        let calls = Edge::new(before.call, after.call, EdgeKind::ThreadOrder);
        let works = Edge::new(before.work, after.work, EdgeKind::StreamOrder);
        for edge in [calls, works] {
            self.graph.add_edge(edge.with_distance(distance));
        }
    }

    /// The graph; its end is followed by its beginning.
    pub fn close(mut self) -> StepGraph {
        if let Some((first, last)) = self.ends {
            self.follow(last, first, 1);
        }
        self.graph
    }
}
