//! DDP's copies of gradients into its buckets and back.
//!
//! Unless a model is wrapped with `gradient_as_bucket_view=True`, a gradient is copied into its
//! bucket as soon as it is ready, and back when the bucket has come round. The first kind of copy
//! delays what computes behind it, of the second only what the optimiser waits for shows.

use foretrain_core::{Bytes, Nanos};
use foretrain_graph::attributes::well_known;
use foretrain_graph::{Edge, EdgeKind, Node, NodeId, NodeKind, Phase, StepGraph};

use crate::ddp::{DdpInserted, LAUNCH_LATENCY, Ready, last_device_work, synchronised_gradients};

/// Copies each gradient that is to be synchronised into its bucket once it is ready; a pass to run
/// before [`insert_ddp`](crate::insert_ddp), whose buckets then wait for the copies. `cost` gives
/// the time of copying so many bytes.
pub fn copy_into_buckets(graph: &mut StepGraph, cost: &dyn Fn(Bytes) -> Nanos) {
    let ready = synchronised_gradients(graph);
    let device = last_device_work(graph, &ready);
    let name = graph.names.intern("copy of a gradient into its bucket");
    let places = ready.iter().zip(&device).map(|(gradient, device)| {
        let behind = device.unwrap_or(gradient.host);
        // On a device the copy is a kernel like any other.
        let kind = if device.is_some() { NodeKind::Kernel } else { NodeKind::Copy };
        let copy = Node {
            phase: graph.node(gradient.host).phase,
            bytes: Some(gradient.bytes),
            ..Node::new(kind, name, graph.queue(behind), cost(gradient.bytes))
        };
        (behind, copy)
    });
    let places: Vec<(NodeId, Node)> = places.collect();
    let order = if device.iter().any(Option::is_some) {
        EdgeKind::StreamOrder
    } else {
        EdgeKind::ThreadOrder
    };
    let copies = graph.insert_after_each(&places, order);
    let mut moved = Vec::new();
    for ((gradient, device), copy) in ready.iter().zip(&device).zip(copies) {
        if device.is_some() {
            let launch = Edge::new(gradient.host, copy, EdgeKind::Launch);
            graph.add_edge(launch.with_lag(LAUNCH_LATENCY).inferred());
        } else {
            moved.push((gradient, copy));
        }
    }
    move_ready_points(graph, &moved);
}

/// A gradient is ready when its copy is.
fn move_ready_points(graph: &mut StepGraph, moved: &[(&Ready, NodeId)]) {
    let attributes = &mut graph.node_attributes;
    let Some(mut gradients) = attributes.remove_column(well_known::GRADIENT_BYTES) else { return };
    for (gradient, _) in moved {
        gradients.clear(gradient.host.index());
    }
    attributes.insert_column(well_known::GRADIENT_BYTES, gradients);
    for &(gradient, copy) in moved {
        let bytes = i64::try_from(gradient.bytes.get()).unwrap_or(i64::MAX);
        attributes.set_i64(well_known::GRADIENT_BYTES, copy.index(), bytes);
        attributes.set_i64(well_known::RECORDED_START, copy.index(), gradient.at);
        attributes.set_i64(well_known::RECORDED_DURATION, copy.index(), 0);
    }
}

/// Copies each bucket that [`insert_ddp`](crate::insert_ddp) inserted back into its gradients, one
/// after the other, before whatever waits for the synchronisation goes on. Nothing is copied where
/// nothing waits.
pub fn copy_out_of_buckets(
    graph: &mut StepGraph,
    inserted: &DdpInserted,
    cost: &dyn Fn(Bytes) -> Nanos,
) {
    let Some(&last) = inserted.nodes.last() else { return };
    let waits = |edge: &&Edge| {
        edge.src == last && matches!(edge.kind, EdgeKind::Data | EdgeKind::EventWait)
    };
    let Some(waiting) = graph.edges().iter().find(waits).copied() else { return };
    let on_device = waiting.kind == EdgeKind::EventWait;
    let (order, trigger, kind) = if on_device {
        (EdgeKind::StreamOrder, EdgeKind::EventWait, NodeKind::Kernel)
    } else {
        (EdgeKind::ThreadOrder, EdgeKind::Launch, NodeKind::Copy)
    };
    // The backward pass ends before the first bucket is looked at again.
    let triggers = |edge: &&Edge| edge.dst == last && edge.kind == trigger;
    let mut before = graph.edges().iter().find(triggers).map(|edge| edge.src);
    let name = graph.names.intern("copy of a bucket into its gradients");
    let queue = graph.queue(waiting.dst);
    for (&collective, &bytes) in inserted.nodes.iter().zip(&inserted.buckets) {
        let copy = graph.add_node(Node {
            phase: Phase::Sync,
            bytes: Some(bytes),
            ..Node::new(kind, name, queue, cost(bytes))
        });
        graph.add_edge(Edge::new(collective, copy, waiting.kind).inferred());
        if let Some(before) = before {
            graph.add_edge(Edge::new(before, copy, order).inferred());
        }
        before = Some(copy);
    }
    if let Some(before) = before {
        let then = Edge::new(before, waiting.dst, order).with_distance(waiting.distance);
        graph.add_edge(then.inferred());
    }
}

#[cfg(test)]
mod tests {
    use foretrain_graph::QueueKind;

    use super::*;
    use crate::ddp::tests::{cpu_step, group};
    use crate::{BucketCaps, insert_ddp};

    const IN: Nanos = Nanos::from_micros(5);
    const OUT: Nanos = Nanos::from_micros(7);
    const REDUCE: Nanos = Nanos::from_micros(10);

    /// The step's length with copies, and what synchronises it.
    fn with_copies(graph: &mut StepGraph) -> (Nanos, DdpInserted) {
        copy_into_buckets(graph, &|_| IN);
        let inserted =
            insert_ddp(graph, BucketCaps::default(), group(), &mut |_| REDUCE).expect("gradients");
        copy_out_of_buckets(graph, &inserted, &|_| OUT);
        (graph.longest_path().expect("no cycle").length, inserted)
    }

    /// Forward 100, gradients 50 each, optimiser 20. The first bucket is reduced beside the second
    /// gradient and copied back beside the second reduction; the rest shows.
    #[test]
    fn copies_on_the_host_delay_what_comes_behind_them() {
        let (mut graph, _) = cpu_step();
        for id in graph.node_ids() {
            graph.set_work(id, graph.work(id).scale(1000.0));
        }
        let (length, inserted) = with_copies(&mut graph);
        assert_eq!(inserted.gradients, 2);
        assert_eq!(length, Nanos::from_micros(100 + 50 + 5 + 50 + 5 + 10 + 7 + 20));
    }

    /// Host calls of 1 us launch kernels of 100 us; the gradient is the second kernel's, and the
    /// third updates the parameters.
    #[test]
    fn copies_on_a_device_run_in_the_stream() {
        let mut graph = StepGraph::new();
        let thread = graph.add_queue("main", QueueKind::Thread);
        let stream = graph.add_queue("stream 7", QueueKind::Stream);
        let name = graph.names.intern("work");
        let us = Nanos::from_micros;
        let mut last: Option<(NodeId, NodeId)> = None;
        for i in 0..3 {
            let call = graph.add_node(Node::new(NodeKind::HostSegment, name, thread, us(1)));
            let kernel = graph.add_node(Node::new(NodeKind::Kernel, name, stream, us(100)));
            let attributes = &mut graph.node_attributes;
            attributes.set_i64(well_known::RECORDED_START, call.index(), i * 1_000);
            attributes.set_i64(well_known::RECORDED_DURATION, call.index(), 1_000);
            if i == 1 {
                attributes.set_i64(well_known::GRADIENT_BYTES, call.index(), 4096);
            }
            graph.add_edge(Edge::new(call, kernel, EdgeKind::Launch));
            if let Some((earlier_call, earlier)) = last {
                graph.add_edge(Edge::new(earlier_call, call, EdgeKind::ThreadOrder));
                graph.add_edge(Edge::new(earlier, kernel, EdgeKind::StreamOrder));
            }
            last = Some((call, kernel));
        }
        let (length, _) = with_copies(&mut graph);
        assert_eq!(length, us(1 + 100 + 100 + 5 + 10 + 7 + 100));
    }
}
