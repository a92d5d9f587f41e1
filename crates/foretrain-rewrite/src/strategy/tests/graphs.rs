//! Passes that repeat parts of the step.

use foretrain_graph::{CollectiveKind, Group, NodeId};

use super::*;

#[test]
fn deferred_accumulation_synchronises_once() {
    // Two micro-batches of 90 us; gradients of the second at 140, 160, 180; then as without.
    assert_eq!(step_us("accumulate(2)"), 90.0 + 118.0);
    let (graph, applied) = apply("accumulate(3)", &Line::new(4, 1));
    assert_eq!((applied.placed.len(), applied.gradients), (3, 3));
    assert_eq!(graph.node_count(), 7 + 2 * 6 + 3);
}

#[test]
fn each_micro_batch_may_synchronise() {
    // The next micro-batch waits for the exchanges of the one before: 113 + 113 + 5.
    assert_eq!(step_us("accumulate(2, deferred=false)"), 231.0);
}

#[test]
fn each_micro_batch_is_synchronised_on_its_own_by_every_pass() {
    // All three gradients are one bucket, and a micro-batch waits for that of the one before.
    let (_, applied) = apply("accumulate(3, deferred=false) | fuse(25MiB)", &Line::new(4, 1));
    assert_eq!(applied.placed.len(), 3);
    let one = step_us("fuse(25MiB)");
    assert_eq!(step_us("accumulate(3, deferred=false) | fuse(25MiB)"), 3.0 * (one - 5.0) + 5.0);
    for passes in ["merge", "horovod(buffer=64MiB, cycle=1s)", "fuse(25MiB, first=1MiB)"] {
        let text = format!("accumulate(3, deferred=false) | {passes}");
        let (_, applied) = apply(&text, &Line::new(4, 1));
        assert_eq!(applied.placed.len() % 3, 0, "{passes}");
        assert!(step_us(&text) > step_us(&format!("accumulate(3) | {passes}")), "{passes}");
    }
    // What synchronises each micro-batch anyway does so once.
    for passes in ["zero(2)", "fuse(25MiB) | zero(2)", "zero(3)", "fully-shard"] {
        let each = format!("accumulate(3, deferred=false) | {passes}");
        assert_eq!(step_us(&each), step_us(&format!("accumulate(3) | {passes}")), "{passes}");
    }
}

#[test]
fn what_lies_between_micro_batches_work_is_done_once() {
    // Gradients are cleared after the input has come: of no phase that is repeated.
    for (kind, times) in [(NodeKind::HostSegment, 2), (NodeKind::Collective, 3)] {
        let mut graph = step();
        let id = NodeId::from_index(1);
        let group = (kind == NodeKind::Collective).then(|| graph.add_group(Group::default()));
        let collective = group.map(|_| CollectiveKind::Barrier);
        let node = Node { kind, group, collective, phase: Phase::Optimizer, ..graph.node(id) };
        graph.set_node(id, node);
        let text = format!("accumulate({times})");
        let strategy = Registry::builtin().parse(&text).unwrap();
        let applied = strategy.apply(&mut graph, &Line::new(4, 1), "").unwrap();
        graph.topological_order().unwrap();
        let cleared =
            graph.node_ids().filter(|&id| graph.node(id).group.is_some() && graph.kind(id) == kind);
        assert_eq!(
            cleared.filter(|&id| graph.name(id) == "F2").count(),
            usize::from(group.is_some())
        );
        // Of 90 us, 10 are spent in the first micro-batch only.
        let micro_batches = 90.0 + f64::from(times - 2) * 80.0;
        assert_eq!(simulated(&graph, &applied), micro_batches + 118.0 - 10.0, "{kind}");
    }
}

/// Messages are repeated whatever their phase: the other end may give them another.
#[test]
fn messages_of_micro_batches_keep_their_numbers_apart() {
    let mut graph = step();
    let group = Some(graph.add_group(Group::default()));
    let phases = [Phase::Unknown, Phase::Forward, Phase::Backward, Phase::Sync];
    for (sequence, (i, phase)) in [0, 1, 3, 6].into_iter().zip(phases).enumerate() {
        let id = NodeId::from_index(i);
        let collective = Some(CollectiveKind::Recv);
        let (kind, sequence) = (NodeKind::PointToPoint, sequence as u32);
        graph.set_node(id, Node { kind, group, collective, sequence, phase, ..graph.node(id) });
    }
    let strategy = Registry::builtin().parse("accumulate(3)").unwrap();
    strategy.apply(&mut graph, &Line::new(4, 1), "").unwrap();
    let received = |id: &NodeId| graph.node(*id).collective == Some(CollectiveKind::Recv);
    let mut numbers: Vec<u32> =
        graph.node_ids().filter(received).map(|id| graph.node(id).sequence).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..12).collect::<Vec<u32>>());
}

#[test]
fn averages_now_and_then() {
    // Two steps of 95 us, then 63 us of parameters in the open, per step half of it.
    assert_eq!(step_us("local-sgd(2)"), (2.0 * 95.0 + 63.0) / 2.0);
    assert_eq!(step_us("local-sgd(10)"), 95.0 + 6.3);
}

#[test]
fn copies_delay_the_backward_pass_and_the_optimiser() {
    // Copies of 2 us. The second gradient is ready at 50 + 2 + 20 + 2 = 74, the third at 96.
    let mut costs = Line::new(4, 1);
    costs.primitives.copy = LinearCost::new(2e3, 0.0);
    // 52-83, 83-104, 104-115, each copied back as it comes: the last at 115-117.
    assert_eq!(step_us_among("copies", &costs), 117.0 + 5.0);
    // One bucket: 96 + 61 + 2 + 5.
    assert_eq!(step_us_among("copies | fuse(1GiB)", &costs), 164.0);
    // Slow ones hide all communication: three in, three out.
    costs.primitives.copy = LinearCost::new(40e3, 0.0);
    assert_eq!(step_us_among("copies", &costs), 90.0 + 6.0 * 40.0 + 5.0);
}

#[test]
fn buffers_are_waited_for() {
    // 118 us, and 1 + 4 us before the forward pass.
    assert_eq!(step_us("buffers(4kB)"), 123.0);
}

/// Host calls of 1 us launch kernels of 100 us; the gradient is the second kernel's, and the third
/// updates the parameters.
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
            attributes.set_i64(well_known::GRADIENT_BYTES, call.index(), 9_000);
        }
        graph.add_edge(Edge::new(call, kernel, EdgeKind::Launch));
        if let Some((earlier_call, earlier)) = last {
            graph.add_edge(Edge::new(earlier_call, call, EdgeKind::ThreadOrder));
            graph.add_edge(Edge::new(earlier, kernel, EdgeKind::StreamOrder));
        }
        last = Some((call, kernel));
    }
    let mut costs = Line::new(4, 1);
    costs.primitives.copy = LinearCost::new(5e3, 0.0);
    let strategy = Registry::builtin().parse("copies").unwrap();
    strategy.apply(&mut graph, &costs, "").unwrap();
    // Two kernels, the copy, an all-reduce of 9 kB, the copy back, the update.
    let length = graph.longest_path().unwrap().length;
    assert_eq!(length, us(1 + 100 + 100 + 5 + 10 + 5 + 100));
}
