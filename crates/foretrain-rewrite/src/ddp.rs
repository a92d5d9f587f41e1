//! Gradient synchronisation of a step that was recorded without it.

use foretrain_core::{Bytes, DType, InputError, Nanos, Result};
use foretrain_graph::attributes::well_known;
use foretrain_graph::{
    CollectiveKind, Edge, EdgeKind, Group, Node, NodeId, NodeKind, Phase, QueueId, QueueKind,
    StepGraph,
};

use crate::accumulation::{Gradient, count_passes};
use crate::buckets::{BucketCaps, assign_buckets};

/// From the call that launches a collective to its start on an idle stream; a typical figure, used
/// because the recording has no collective to measure it on.
pub(crate) const LAUNCH_LATENCY: Nanos = Nanos::from_micros(10);

/// What was inserted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DdpInserted {
    /// Collective nodes in launch order.
    pub nodes: Vec<NodeId>,
    /// Size of each bucket.
    pub buckets: Vec<Bytes>,
    /// Gradients found, each counted once.
    pub gradients: usize,
}

/// A gradient's ready point.
pub(crate) struct Ready {
    pub(crate) host: NodeId,
    pub(crate) at: i64,
    pub(crate) bytes: Bytes,
}

/// Inserts one all-reduce per gradient bucket: it starts when the bucket's last gradient is ready
/// (on the host and, where there is one, on the device), follows the bucket before it, and the
/// optimiser waits for all of them. Of several backward passes the last is
/// synchronised, as under `no_sync`. `cost` gives the time of an all-reduce of that size.
///
/// # Errors
/// If the graph has no gradient-ready points (the trace lacks input shapes, or has no backward).
pub fn insert_ddp(
    graph: &mut StepGraph,
    caps: BucketCaps,
    group: Group,
    cost: &mut dyn FnMut(Bytes) -> Nanos,
) -> Result<DdpInserted> {
    let ready = synchronised_gradients(graph);
    if ready.is_empty() {
        return Err(InputError::new("the step shows no gradient sizes to synchronise")
            .hint("record the trace with record_shapes=True, or give the gradient bytes by hand"));
    }
    let sizes: Vec<Bytes> = ready.iter().map(|r| r.bytes).collect();
    let device = last_device_work(graph, &ready);
    let group = graph.add_group(group);
    let on_device = device.iter().any(Option::is_some);
    let queue = if on_device {
        graph.add_queue("stream of gradient synchronisation", QueueKind::Stream)
    } else {
        graph.add_queue("gradient synchronisation", QueueKind::Thread)
    };
    let name = graph.names.intern("gradient all-reduce");
    let mut inserted =
        DdpInserted { nodes: Vec::new(), buckets: Vec::new(), gradients: ready.len() };
    for (sequence, bucket) in assign_buckets(&sizes, caps).into_iter().enumerate() {
        let bytes: Bytes = sizes[bucket.clone()].iter().copied().sum();
        let last = bucket.end - 1;
        let node = graph.add_node(Node {
            phase: Phase::Sync,
            group: Some(group),
            collective: Some(CollectiveKind::AllReduce),
            sequence: sequence as u32,
            bytes: Some(bytes),
            dtype: Some(DType::F32),
            ..Node::new(NodeKind::Collective, name, queue, cost(bytes))
        });
        let lag = if on_device { LAUNCH_LATENCY } else { Nanos::ZERO };
        graph
            .add_edge(Edge::new(ready[last].host, node, EdgeKind::Launch).with_lag(lag).inferred());
        if let Some(work) = device[last] {
            graph.add_edge(Edge::new(work, node, EdgeKind::EventWait).inferred());
        }
        if let Some(&previous) = inserted.nodes.last() {
            graph.add_edge(Edge::new(previous, node, EdgeKind::StreamOrder).inferred());
        }
        inserted.nodes.push(node);
        inserted.buckets.push(bytes);
    }
    let last_ready = ready.iter().map(|r| r.at).max().unwrap_or(0);
    wait_for_all(graph, &inserted.nodes, &ready, last_ready, queue, on_device);
    Ok(inserted)
}

/// How many backward passes (micro-batches) a step has, each of which completes all gradients.
pub fn backward_passes(graph: &StepGraph) -> usize {
    passes_of(graph, &ready_points(graph))
}

fn passes_of(graph: &StepGraph, ready: &[Ready]) -> usize {
    let gradients: Vec<Gradient> = ready.iter().map(|r| (r.at, r.bytes)).collect();
    count_passes(graph, &gradients)
}

/// Ready points of the gradients that are synchronised: those of the last backward pass.
pub(crate) fn synchronised_gradients(graph: &StepGraph) -> Vec<Ready> {
    let mut ready = ready_points(graph);
    let passes = passes_of(graph, &ready);
    ready.drain(..ready.len() - ready.len() / passes);
    ready
}

/// Gradient-ready points in ready order.
fn ready_points(graph: &StepGraph) -> Vec<Ready> {
    let attributes = &graph.node_attributes;
    let mut ready: Vec<Ready> = graph
        .node_ids()
        .filter_map(|id| {
            let bytes = attributes.get_i64(well_known::GRADIENT_BYTES, id.index())?;
            let bytes = Bytes::new(u64::try_from(bytes).ok()?);
            Some(Ready { host: id, at: recorded_end(graph, id), bytes })
        })
        .collect();
    ready.sort_by_key(|r| (r.at, r.host));
    ready
}

fn recorded_end(graph: &StepGraph, id: NodeId) -> i64 {
    let get = |name| graph.node_attributes.get_i64(name, id.index()).unwrap_or(0);
    get(well_known::RECORDED_START) + get(well_known::RECORDED_DURATION)
}

/// For each ready point, the device work launched last before it.
pub(crate) fn last_device_work(graph: &StepGraph, ready: &[Ready]) -> Vec<Option<NodeId>> {
    let mut launches: Vec<(i64, NodeId)> = graph
        .edges()
        .iter()
        .filter(|e| e.kind == EdgeKind::Launch && graph.kind(e.dst) == NodeKind::Kernel)
        .map(|e| (recorded_end(graph, e.src), e.dst))
        .collect();
    launches.sort_unstable();
    ready
        .iter()
        .map(|r| {
            let before = launches.partition_point(|&(at, _)| at <= r.at);
            before.checked_sub(1).map(|i| launches[i].1)
        })
        .collect()
}

/// What comes after the last gradient waits for the synchronisation: on a device, the first work
/// launched afterwards; without one, the thread itself.
fn wait_for_all(
    graph: &mut StepGraph,
    nodes: &[NodeId],
    ready: &[Ready],
    last_ready: i64,
    queue: QueueId,
    on_device: bool,
) {
    let Some(&last) = nodes.last() else { return };
    let waiting: Option<NodeId> = if on_device {
        let mut after: Vec<(i64, NodeId)> = graph
            .edges()
            .iter()
            .filter(|e| {
                e.kind == EdgeKind::Launch
                    && graph.kind(e.dst) == NodeKind::Kernel
                    && graph.queue(e.dst) != queue
                    && recorded_end(graph, e.src) > last_ready
            })
            .map(|e| (recorded_end(graph, e.src), e.dst))
            .collect();
        after.sort_unstable();
        after.first().map(|&(_, id)| id)
    } else {
        let host = ready.iter().max_by_key(|r| (r.at, r.host)).map(|r| r.host);
        graph
            .edges()
            .iter()
            .find(|e| Some(e.src) == host && e.kind == EdgeKind::ThreadOrder && e.distance == 0)
            .map(|e| e.dst)
    };
    // The optimiser of a step whose backward ends it comes first in the next step.
    let (waiting, distance) = match waiting {
        Some(id) => (Some(id), 0),
        None => (first_kernel(graph, queue), 1),
    };
    if let Some(waiting) = waiting {
        let kind = if on_device { EdgeKind::EventWait } else { EdgeKind::Data };
        graph.add_edge(Edge::new(last, waiting, kind).with_distance(distance).inferred());
    }
}

fn first_kernel(graph: &StepGraph, not_on: QueueId) -> Option<NodeId> {
    graph
        .node_ids()
        .filter(|&id| graph.kind(id) == NodeKind::Kernel && graph.queue(id) != not_on)
        .min_by_key(|&id| (recorded_end(graph, id), id))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// One thread: forward, two gradients, optimiser, without a device.
    pub(crate) fn cpu_step() -> (StepGraph, [NodeId; 4]) {
        let mut graph = StepGraph::new();
        let queue = graph.add_queue("main", QueueKind::Thread);
        let name = graph.names.intern("work");
        let mut ids = Vec::new();
        let mut at = 0;
        for (i, work) in [100, 50, 50, 20].into_iter().enumerate() {
            let node = Node::new(NodeKind::HostSegment, name, queue, Nanos::from_nanos(work));
            let id = graph.add_node(node);
            let a = &mut graph.node_attributes;
            a.set_i64(well_known::RECORDED_START, id.index(), at);
            a.set_i64(well_known::RECORDED_DURATION, id.index(), work);
            if i == 1 || i == 2 {
                a.set_i64(well_known::GRADIENT_BYTES, id.index(), 2 << 20);
            }
            if let Some(&previous) = ids.last() {
                graph.add_edge(Edge::new(previous, id, EdgeKind::ThreadOrder));
            }
            at += work;
            ids.push(id);
        }
        (graph, [ids[0], ids[1], ids[2], ids[3]])
    }

    pub(crate) fn group() -> Group {
        Group { name: "dp".into(), role: "data-parallel".into(), size: 4, ranks: vec![] }
    }

    #[test]
    fn each_bucket_hangs_off_its_last_gradient_and_the_optimiser_waits() {
        let (mut graph, [_, first, second, optimiser]) = cpu_step();
        let inserted = insert_ddp(&mut graph, BucketCaps::default(), group(), &mut |bytes| {
            Nanos::from_nanos(bytes.get() as i64 / 1000)
        })
        .unwrap();
        assert_eq!(inserted.buckets, [Bytes::from_mib(2), Bytes::from_mib(2)]);
        assert_eq!(graph.work(inserted.nodes[0]), Nanos::from_nanos(2097));
        let has = |src, dst| graph.edges().iter().any(|e| (e.src, e.dst) == (src, dst));
        assert!(has(first, inserted.nodes[0]) && has(second, inserted.nodes[1]));
        assert!(has(inserted.nodes[0], inserted.nodes[1]));
        assert!(has(inserted.nodes[1], optimiser));
    }

    #[test]
    fn a_step_without_gradients_is_refused_with_a_way_on() {
        let error =
            insert_ddp(&mut StepGraph::new(), BucketCaps::default(), group(), &mut |_| Nanos::ZERO)
                .unwrap_err();
        assert!(error.hints()[0].contains("record_shapes"));
    }
}
