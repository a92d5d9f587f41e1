//! Finding gradients, their use in the forward pass, and the optimiser in a step.
//!
//! A gradient is a node with the attribute [`GRADIENT_BYTES`](well_known::GRADIENT_BYTES); it is
//! ready when that node has ended and the device work launched last before its end. The forward use
//! of its parameters is the node of the forward pass in the same module, where modules are known;
//! else the mirror image: backward runs through the layers in reverse, so what is ready after a
//! fraction `f` of the backward pass was used at `1 - f` of the forward pass.

use foretrain_core::{Bytes, NameId, Nanos};
use foretrain_graph::attributes::well_known;
use foretrain_graph::{EdgeKind, NodeId, NodeKind, Phase, StepGraph};
use rustc_hash::FxHashMap;

use super::draft::{Anchor, Gradient};
use crate::accumulation::count_passes;

/// Where the parameter update lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Optimiser {
    /// What has to wait for the gradients: the first work after the backward pass. `None` if the
    /// step shows nothing there.
    pub first: Option<Anchor>,
    /// Its last node, which new parameters come after.
    pub last: Option<Anchor>,
}

/// What [`find`] finds.
pub(super) struct Found {
    pub(super) gradients: Vec<Vec<Gradient>>,
    pub(super) optimiser: Optimiser,
    pub(super) on_device: bool,
}

/// A gradient's node.
struct Ready {
    host: NodeId,
    at: i64,
    bytes: Bytes,
    module: NameId,
}

/// Host work that launches device work, by when it was recorded to end.
struct Launches(Vec<(i64, NodeId)>);

impl Launches {
    fn of(graph: &StepGraph) -> Self {
        let mut launches: Vec<(i64, NodeId)> = graph
            .edges()
            .iter()
            .filter(|e| e.kind == EdgeKind::Launch && graph.kind(e.dst) == NodeKind::Kernel)
            .map(|e| (recorded_end(graph, e.src), e.dst))
            .collect();
        launches.sort_unstable();
        Self(launches)
    }
    fn last_until(&self, at: i64) -> Option<NodeId> {
        let before = self.0.partition_point(|&(end, _)| end <= at);
        before.checked_sub(1).map(|i| self.0[i].1)
    }
    fn first_from(&self, at: i64) -> Option<NodeId> {
        self.0.get(self.0.partition_point(|&(end, _)| end < at)).map(|&(_, id)| id)
    }
}

pub(super) fn find(graph: &StepGraph) -> Found {
    let ready = ready_points(graph);
    let launches = Launches::of(graph);
    let sizes: Vec<(i64, Bytes)> = ready.iter().map(|r| (r.at, r.bytes)).collect();
    let passes = count_passes(graph, &sizes);
    let on_device = ready.iter().any(|r| launches.last_until(r.at).is_some());
    let forward = Forward::of(graph, &launches, on_device);
    let per_pass = ready.len() / passes.max(1);
    let mut gradients = Vec::new();
    for pass in 0..passes {
        let end = if pass + 1 == passes { ready.len() } else { (pass + 1) * per_pass };
        let points = &ready[pass * per_pass..end];
        let span = span(points);
        let gradient = |r: &Ready| Gradient {
            bytes: r.bytes,
            at: Nanos::from_nanos(r.at),
            ready: ready_anchors(r, &launches),
            forward: forward.use_of(r, span, pass),
        };
        gradients.push(points.iter().map(gradient).collect());
    }
    let last = ready.last().map_or(0, |r| r.at);
    let first = after(graph, &launches, ready.last().map(|r| r.host), last, on_device);
    let optimiser = Optimiser { first, last: last_of_step(graph, on_device) };
    if ready.is_empty() {
        gradients.clear();
    }
    Found { gradients, optimiser, on_device }
}

/// How many backward passes (micro-batches) a step has, each of which completes all gradients.
pub fn backward_passes(graph: &StepGraph) -> usize {
    let ready = ready_points(graph);
    let sizes: Vec<(i64, Bytes)> = ready.iter().map(|r| (r.at, r.bytes)).collect();
    count_passes(graph, &sizes)
}

/// What follows the backward pass that completes these gradients.
pub(super) fn after_backward(
    graph: &StepGraph,
    gradients: &[Gradient],
    on_device: bool,
) -> Option<Anchor> {
    let last = gradients.last()?;
    let host = last.ready.iter().find(|anchor| anchor.kind == EdgeKind::Launch)?;
    after(graph, &Launches::of(graph), Some(host.node), last.at.nanos(), on_device)
}

/// Gradient-ready points in ready order.
fn ready_points(graph: &StepGraph) -> Vec<Ready> {
    let attributes = &graph.node_attributes;
    let mut ready: Vec<Ready> = graph
        .node_ids()
        .filter_map(|id| {
            let bytes = attributes.get_i64(well_known::GRADIENT_BYTES, id.index())?;
            let bytes = Bytes::new(u64::try_from(bytes).ok()?);
            let module = graph.node(id).module;
            Some(Ready { host: id, at: recorded_end(graph, id), bytes, module })
        })
        .collect();
    ready.sort_by_key(|r| (r.at, r.host));
    ready
}

fn ready_anchors(ready: &Ready, launches: &Launches) -> Vec<Anchor> {
    let host = Anchor { node: ready.host, kind: EdgeKind::Launch, distance: 0 };
    let device = launches.last_until(ready.at);
    let device = device.map(|node| Anchor { node, kind: EdgeKind::EventWait, distance: 0 });
    std::iter::once(host).chain(device).collect()
}

/// First and last ready time of a backward pass.
fn span(points: &[Ready]) -> (i64, i64) {
    (points.first().map_or(0, |r| r.at), points.last().map_or(0, |r| r.at))
}

/// The forward passes of a step, to find where parameters are used.
struct Forward {
    /// Per micro-batch the host nodes with their start and the device work launched from there.
    passes: Vec<Vec<(i64, Anchor)>>,
    modules: FxHashMap<(usize, NameId), Anchor>,
}

impl Forward {
    fn of(graph: &StepGraph, launches: &Launches, on_device: bool) -> Self {
        let mut nodes: Vec<(i64, NodeId)> = graph
            .node_ids()
            .filter(|&id| {
                graph.node(id).phase == Phase::Forward && graph.kind(id) == NodeKind::HostSegment
            })
            .map(|id| (recorded_start(graph, id), id))
            .collect();
        nodes.sort_unstable();
        // Backward work between two forward nodes ends a micro-batch.
        let mut backward: Vec<i64> = graph
            .node_ids()
            .filter(|&id| graph.node(id).phase == Phase::Backward)
            .map(|id| recorded_start(graph, id))
            .collect();
        backward.sort_unstable();
        let any_between = |from: i64, to: i64| {
            backward.get(backward.partition_point(|&at| at < from)).is_some_and(|&at| at < to)
        };
        let (mut passes, mut modules) = (Vec::new(), FxHashMap::default());
        for pass in nodes.chunk_by(|a, b| !any_between(a.0, b.0)) {
            let number = passes.len();
            let mut anchors = Vec::new();
            for &(start, id) in pass {
                let device = if on_device { launches.first_from(start) } else { None };
                let anchor = match device {
                    Some(node) => Anchor { node, kind: EdgeKind::EventWait, distance: 0 },
                    None => Anchor { node: id, kind: EdgeKind::Data, distance: 0 },
                };
                anchors.push((start, anchor));
                modules.entry((number, graph.node(id).module)).or_insert(anchor);
            }
            passes.push(anchors);
        }
        Self { passes, modules }
    }

    fn use_of(&self, ready: &Ready, (from, to): (i64, i64), pass: usize) -> Vec<Anchor> {
        let pass = pass.min(self.passes.len().saturating_sub(1));
        if ready.module != NameId::EMPTY
            && let Some(anchor) = self.modules.get(&(pass, ready.module))
        {
            return vec![*anchor];
        }
        let Some(nodes) = self.passes.get(pass) else { return Vec::new() };
        let (Some(first), Some(last)) = (nodes.first(), nodes.last()) else { return Vec::new() };
        let done = if to > from { (ready.at - from) as f64 / (to - from) as f64 } else { 1.0 };
        let at = first.0 + ((1.0 - done) * (last.0 - first.0) as f64) as i64;
        // The last node that starts by then: gathering too early is safe, too late is not.
        let i = nodes.partition_point(|&(start, _)| start <= at).max(1) - 1;
        vec![nodes[i].1]
    }
}

/// What comes after host work that ended at `at`: on a device, the first work launched afterwards;
/// without one, the next node of the thread. If the step ends there, its beginning in the next
/// step: an optimiser before the forward pass.
fn after(
    graph: &StepGraph,
    launches: &Launches,
    host: Option<NodeId>,
    at: i64,
    on_device: bool,
) -> Option<Anchor> {
    let kind = if on_device { EdgeKind::EventWait } else { EdgeKind::Data };
    let node = if on_device {
        // What the call that ended then launched is part of the gradient.
        launches.first_from(at + 1)
    } else {
        graph
            .edges()
            .iter()
            .find(|e| Some(e.src) == host && e.kind == EdgeKind::ThreadOrder && e.distance == 0)
            .map(|e| e.dst)
    };
    let (node, distance) = match node {
        Some(node) => (Some(node), 0),
        None => (first_work(graph, on_device), 1),
    };
    node.map(|node| Anchor { node, kind, distance })
}

fn computes(graph: &StepGraph, id: NodeId, on_device: bool) -> bool {
    let kind = graph.kind(id);
    if on_device {
        kind == NodeKind::Kernel
    } else {
        matches!(kind, NodeKind::HostSegment | NodeKind::Optimizer)
    }
}

pub(super) fn first_work(graph: &StepGraph, on_device: bool) -> Option<NodeId> {
    graph
        .node_ids()
        .filter(|&id| computes(graph, id, on_device))
        .min_by_key(|&id| (recorded_start(graph, id), id))
}

fn last_of_step(graph: &StepGraph, on_device: bool) -> Option<Anchor> {
    let optimiser = |&id: &NodeId| graph.node(id).phase == Phase::Optimizer;
    let work = || graph.node_ids().filter(|&id| computes(graph, id, on_device));
    let last =
        |ids: &mut dyn Iterator<Item = NodeId>| ids.max_by_key(|&id| (recorded_end(graph, id), id));
    let node = last(&mut work().filter(optimiser)).or_else(|| last(&mut work()))?;
    let kind = if on_device { EdgeKind::EventWait } else { EdgeKind::Data };
    Some(Anchor { node, kind, distance: 0 })
}

fn recorded_start(graph: &StepGraph, id: NodeId) -> i64 {
    graph.node_attributes.get_i64(well_known::RECORDED_START, id.index()).unwrap_or(0)
}

fn recorded_end(graph: &StepGraph, id: NodeId) -> i64 {
    let get = |name| graph.node_attributes.get_i64(name, id.index()).unwrap_or(0);
    get(well_known::RECORDED_START) + get(well_known::RECORDED_DURATION)
}
