//! Taking the slow-down out of recorded times.
//!
//! A kernel that was recorded beside communication took longer than alone. Its work at full rate is
//! the integral of its rate over the recording, by the same model that slows it down again in the
//! simulation: where the same things meet again they take as long as recorded, and where they do
//! not, they no longer pay for each other.

use foretrain_core::Nanos;
use foretrain_graph::{Job, NodeId, QueueId, QueueKind, StepGraph};
use foretrain_sim::{Interference, TaskView, Timeline};
use rustc_hash::FxHashMap;

use super::adapter::DeviceSharing;

/// When a node of one class occupied its device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Span {
    node: NodeId,
    queue: QueueId,
    device: u32,
    /// Whether its time counts: it is of the iteration looked at.
    counts: bool,
    from: Nanos,
    /// From when on it no longer waited for other ranks.
    moves: Nanos,
    to: Nanos,
}

impl Span {
    /// The node and how long it took, if its time counts.
    pub(crate) fn counted(&self) -> Option<(NodeId, Nanos)> {
        self.counts.then_some((self.node, self.to - self.from))
    }
}

/// The device's part of an unchanged replay, by class: all iterations, of which the last but one
/// counts (what it meets of the next is there too).
pub(crate) fn spans(job: &Job, timeline: &Timeline) -> Vec<Vec<Span>> {
    let counted = timeline.iterations.saturating_sub(2);
    let first = counted.saturating_sub(1);
    let mut classes = Vec::new();
    for (class, times) in job.classes.iter().zip(&timeline.classes) {
        let graph = &class.graph;
        let mut spans = Vec::new();
        for iteration in first..timeline.iterations {
            for node in graph.node_ids() {
                let queue = graph.queue(node);
                let info = &graph.queues[queue.index()];
                let row = times.row(iteration, node);
                let (from, to) = (times.start[row], times.end[row]);
                if !matches!(info.kind, QueueKind::Stream | QueueKind::Link) || from >= to {
                    continue;
                }
                spans.push(Span {
                    node,
                    queue,
                    device: info.device.unwrap_or(0),
                    counts: iteration == counted,
                    from,
                    moves: from + times.wait[row],
                    to,
                });
            }
        }
        spans.sort_by_key(|span| (span.device, span.from, span.queue.index()));
        classes.push(spans);
    }
    classes
}

/// The time that each node of class `class` would have taken alone; those at full rate throughout
/// are left out.
pub(crate) fn take_out(
    spans: &[Span],
    graph: &StepGraph,
    class: usize,
    sharing: &DeviceSharing,
) -> FxHashMap<NodeId, Nanos> {
    let mut lost: FxHashMap<NodeId, f64> = FxHashMap::default();
    for device in spans.chunk_by(|a, b| a.device == b.device) {
        lose(device, graph, class, sharing, &mut lost);
    }
    let mut alone = FxHashMap::default();
    for span in spans.iter().filter(|span| span.counts) {
        let Some(lost) = lost.get(&span.node).filter(|lost| **lost > 0.5) else { continue };
        let time = (span.to - span.from).nanos() as f64;
        alone.insert(span.node, Nanos::from_nanos_f64((time - lost).max(1.0)));
    }
    alone
}

/// Adds up, instant by instant, what each node of one device lost.
fn lose(
    spans: &[Span],
    graph: &StepGraph,
    class: usize,
    sharing: &DeviceSharing,
    lost: &mut FxHashMap<NodeId, f64>,
) {
    let mut times: Vec<Nanos> =
        spans.iter().flat_map(|span| [span.from, span.moves, span.to]).collect();
    times.sort_unstable();
    times.dedup();
    let mut coming = spans.iter().peekable();
    let mut running: Vec<&Span> = Vec::new();
    let (mut views, mut rates) = (Vec::new(), Vec::new());
    for instant in times.windows(2) {
        running.retain(|span| span.to > instant[0]);
        while let Some(span) = coming.next_if(|span| span.from <= instant[0]) {
            running.push(span);
        }
        if running.len() < 2 {
            continue;
        }
        views.clear();
        views.extend(running.iter().map(|span| TaskView {
            class,
            node: span.node,
            kind: graph.kind(span.node),
            queue: span.queue,
            device: span.device,
            waiting: span.moves > instant[0],
        }));
        rates.clear();
        rates.resize(views.len(), 1.0);
        sharing.rates(&views, &mut rates);
        let length = (instant[1] - instant[0]).nanos() as f64;
        for ((span, view), rate) in running.iter().zip(&views).zip(&rates) {
            // What waits does no work that could be lost.
            if span.counts && !view.waiting && *rate < 1.0 {
                *lost.entry(span.node).or_insert(0.0) += (1.0 - rate) * length;
            }
        }
    }
}
