//! Timelines for Perfetto and chrome://tracing, as Chrome trace JSON.
//!
//! Each view is a process with one thread per queue; a recorded and a simulated view of the same
//! step stand below each other. Times start at zero, so the first picture shows the step. Launches
//! are flow arrows.

mod pipeline;

use std::io::{self, Write};

use foretrain_core::Nanos;
use foretrain_graph::attributes::well_known;
use foretrain_graph::{EdgeKind, NodeId, NodeKind, StepGraph};
use foretrain_sim::ClassTimeline;
use serde_json::{Value, json};

pub use pipeline::write_pipelines;

/// One piece of a timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slice {
    node: NodeId,
    start: Nanos,
    end: Nanos,
    wait: Nanos,
}

/// A step as it was recorded or simulated.
#[derive(Clone, Debug)]
pub struct TimelineView<'a> {
    title: String,
    graph: &'a StepGraph,
    slices: Vec<Slice>,
}

impl<'a> TimelineView<'a> {
    /// The step as recorded; nodes without a recorded time are left out.
    pub fn recorded(title: impl Into<String>, graph: &'a StepGraph) -> Self {
        let at = |name: &str, id: NodeId| graph.node_attributes.get_i64(name, id.index());
        let slices = graph.node_ids().filter_map(|node| {
            let start = Nanos::from_nanos(at(well_known::RECORDED_START, node)?);
            let duration = at(well_known::RECORDED_DURATION, node).unwrap_or(0);
            let end = start + Nanos::from_nanos(duration);
            Some(Slice { node, start, end, wait: Nanos::ZERO })
        });
        Self { title: title.into(), graph, slices: slices.collect() }
    }

    /// One iteration of a simulated class.
    pub fn simulated(
        title: impl Into<String>,
        graph: &'a StepGraph,
        class: &ClassTimeline,
        iteration: usize,
    ) -> Self {
        let slices = graph.node_ids().filter_map(|node| {
            let row = class.row(iteration, node);
            let (start, end) = (*class.start.get(row)?, *class.end.get(row)?);
            let wait = class.wait.get(row).copied().unwrap_or(Nanos::ZERO);
            Some(Slice { node, start, end, wait })
        });
        Self { title: title.into(), graph, slices: slices.collect() }
    }

    fn origin(&self) -> Nanos {
        self.slices.iter().map(|slice| slice.start).min().unwrap_or(Nanos::ZERO)
    }
}

/// Writes the views, one process each, in a stable order.
///
/// # Errors
/// If the writer fails.
pub fn write_chrome_trace(out: &mut dyn Write, views: &[TimelineView<'_>]) -> io::Result<()> {
    write!(out, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
    let mut writer = Events { out, first: true };
    let mut flow = 0u64;
    for (index, view) in views.iter().enumerate() {
        let pid = index + 1;
        writer.metadata("process_name", pid, 0, &view.title)?;
        for (queue, q) in view.graph.queues.iter().enumerate() {
            writer.metadata("thread_name", pid, queue, &q.name)?;
        }
        let origin = view.origin();
        let mut slices = view.slices.clone();
        slices.sort_by_key(|slice| (slice.start, slice.node));
        for slice in &slices {
            writer.slice(view, slice, pid, origin)?;
        }
        writer.arrows(view, pid, origin, &mut flow)?;
    }
    write!(out, "\n]}}\n")
}

struct Events<'a> {
    out: &'a mut dyn Write,
    first: bool,
}

impl Events<'_> {
    fn event(&mut self, event: &Value) -> io::Result<()> {
        let separator = if self.first { "\n" } else { ",\n" };
        self.first = false;
        write!(self.out, "{separator}{event}")
    }

    fn metadata(&mut self, what: &str, pid: usize, tid: usize, name: &str) -> io::Result<()> {
        self.event(&json!({
            "ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name},
        }))
    }

    fn slice(
        &mut self,
        view: &TimelineView<'_>,
        slice: &Slice,
        pid: usize,
        origin: Nanos,
    ) -> io::Result<()> {
        let node = view.graph.node(slice.node);
        if node.kind == NodeKind::Mark {
            return Ok(());
        }
        let mut args = json!({"kind": node.kind.as_str(), "phase": node.phase.as_str()});
        if let Some(group) = node.group {
            args["group"] = json!(view.graph.groups[group.index()].name);
        }
        if let Some(bytes) = node.bytes {
            args["bytes"] = json!(bytes.get());
        }
        if slice.wait > Nanos::ZERO {
            args["wait_us"] = micros(slice.wait);
        }
        self.event(&json!({
            "ph": "X",
            "name": view.graph.name(slice.node),
            "cat": node.kind.as_str(),
            "pid": pid,
            "tid": node.queue.index(),
            "ts": micros(slice.start - origin),
            "dur": micros((slice.end - slice.start).clamp_positive()),
            "args": args,
        }))
    }

    fn arrows(
        &mut self,
        view: &TimelineView<'_>,
        pid: usize,
        origin: Nanos,
        flow: &mut u64,
    ) -> io::Result<()> {
        let mut times: Vec<Option<(Nanos, Nanos)>> = vec![None; view.graph.node_count()];
        for slice in &view.slices {
            times[slice.node.index()] = Some((slice.start, slice.end));
        }
        let launches = view.graph.edges().iter();
        for edge in launches.filter(|e| e.kind == EdgeKind::Launch && e.distance == 0) {
            let ends = times[edge.src.index()].zip(times[edge.dst.index()]);
            let Some(((_, launched), (started, _))) = ends else { continue };
            *flow += 1;
            for (phase, node, at) in [("s", edge.src, launched), ("f", edge.dst, started)] {
                self.event(&json!({
                    "ph": phase, "id": *flow, "name": "launch", "cat": "launch", "bp": "e",
                    "pid": pid, "tid": view.graph.queue(node).index(), "ts": micros(at - origin),
                }))?;
            }
        }
        Ok(())
    }
}

/// Microseconds with the nanoseconds as decimals; exact for a hundred days.
fn micros(time: Nanos) -> Value {
    json!(time.nanos() as f64 / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use foretrain_graph::{Edge, Node, QueueKind};

    #[test]
    fn recorded_and_simulated_steps_stand_side_by_side() {
        let mut graph = StepGraph::new();
        let (host, device) = (
            graph.add_queue("main thread", QueueKind::Thread),
            graph.add_queue("stream 7", QueueKind::Stream),
        );
        let name = graph.names.intern("aten::mm");
        let work = Nanos::from_nanos(1_500);
        let launch = graph.add_node(Node::new(NodeKind::HostSegment, name, host, work));
        let kernel = graph.add_node(Node::new(NodeKind::Kernel, name, device, work));
        graph.add_edge(Edge::new(launch, kernel, EdgeKind::Launch));
        for (id, start) in [(launch, 0), (kernel, 2_000)] {
            let attributes = &mut graph.node_attributes;
            attributes.set_i64(well_known::RECORDED_START, id.index(), start);
            attributes.set_i64(well_known::RECORDED_DURATION, id.index(), 1_500);
        }
        let at = |n: i64| Nanos::from_nanos(n);
        let class = ClassTimeline {
            nodes: 2,
            start: vec![at(100), at(1_600)],
            end: vec![at(1_600), at(3_100)],
            wait: vec![Nanos::ZERO; 2],
            ..ClassTimeline::default()
        };
        let views = [
            TimelineView::recorded("recorded rank 0", &graph),
            TimelineView::simulated("simulated rank 0", &graph, &class, 0),
        ];
        let mut out = Vec::new();
        write_chrome_trace(&mut out, &views).unwrap();
        let parsed: Value = serde_json::from_slice(&out).unwrap();
        let events = parsed["traceEvents"].as_array().unwrap();
        let slices: Vec<(u64, f64, f64)> = events
            .iter()
            .filter(|e| e["ph"] == "X")
            .map(|e| {
                let number = |key: &str| e[key].as_f64().unwrap();
                (e["pid"].as_u64().unwrap(), number("ts"), number("dur"))
            })
            .collect();
        assert_eq!(slices, [(1, 0.0, 1.5), (1, 2.0, 1.5), (2, 0.0, 1.5), (2, 1.5, 1.5)]);
        assert_eq!(events.iter().filter(|e| e["ph"] == "s").count(), 2);
    }
}
