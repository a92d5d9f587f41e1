//! ZeRO and FSDP.

use foretrain_graph::CollectiveKind;

use super::*;

fn count(graph: &StepGraph, applied: &Applied, kind: CollectiveKind) -> usize {
    applied.placed.iter().filter(|p| graph.node(p.id).collective == Some(kind)).count()
}

#[test]
fn stage_1_scatters_and_gathers_once() {
    // Scatter as the all-reduce here: 113. The optimiser does a quarter of its 5 us. Gathers of
    // 31 + 21 + 11 us in the open.
    assert_eq!(step_us("zero(1)"), 113.0 + 1.25 + 63.0);
    let (graph, applied) = apply("accumulate(4) | zero(1)", &Line::new(4, 1));
    assert_eq!(count(&graph, &applied, CollectiveKind::ReduceScatter), 3);
}

#[test]
fn stage_2_scatters_every_micro_batch() {
    let (graph, applied) = apply("accumulate(4) | zero(2)", &Line::new(4, 1));
    assert_eq!(count(&graph, &applied, CollectiveKind::ReduceScatter), 4 * 3);
    assert_eq!(count(&graph, &applied, CollectiveKind::AllGather), 3);
    assert_eq!(step_us("zero(2)"), step_us("zero(1)"));
}

#[test]
fn stage_3_gathers_every_use() {
    let (graph, applied) = apply("accumulate(2) | zero(3)", &Line::new(4, 1));
    // Every unit forward, all but the first of the backward pass again; per micro-batch.
    assert_eq!(count(&graph, &applied, CollectiveKind::AllGather), 2 * (3 + 2));
    assert_eq!(count(&graph, &applied, CollectiveKind::ReduceScatter), 2 * 3);
}

#[test]
fn a_single_unit_shows_all_its_communication() {
    // One unit of 60 kB: gather 61, forward and backward 90, scatter 61, a quarter of 5.
    assert_eq!(step_us("fuse(1GiB) | fully-shard"), 61.0 + 90.0 + 61.0 + 1.25);
}

#[test]
fn hybrid_sharding_stays_within_machines() {
    let (graph, applied) = apply("fuse(1GiB) | fully-shard(hybrid=true)", &Line::new(8, 4));
    let calls: Vec<_> = applied.placed.iter().filter_map(|placed| placed.call).collect();
    let seen: Vec<_> =
        calls.iter().map(|c| (c.kind, c.bytes.get(), c.scope.size, c.scope.stride)).collect();
    assert_eq!(
        seen,
        [
            (CollectiveKind::AllGather, 60_000, 4, 1),
            (CollectiveKind::ReduceScatter, 60_000, 4, 1),
            (CollectiveKind::AllReduce, 15_000, 2, 4),
        ]
    );
    assert_eq!(simulated(&graph, &applied), 61.0 + 90.0 + 61.0 + 16.0 + 1.25);
}

#[test]
fn prefetching_hides_gathers() {
    let without = step_us("fully-shard(prefetch=0)");
    let with = step_us("fully-shard(prefetch=1)");
    let kept = step_us("fully-shard(reshard=false)");
    assert!(with < without && kept < with, "{without} {with} {kept}");
    // Nothing hidden: every gather waits for the computation before it. 11 + 10, 21 + 10,
    // 31 + 10, then backward 20, 21 + 20, 11 + 20; the scatters share the stream in between.
    assert!(without > 11.0 + 21.0 + 31.0 + 90.0, "{without}");
}

#[test]
fn copies_must_divide_the_replicas() {
    let mut graph = step();
    let strategy = Registry::builtin().parse("fully-shard(shards=3)").unwrap();
    let error = strategy.apply(&mut graph, &Line::new(4, 1), "").unwrap_err();
    assert!(error.message().contains("groups of 3"));
    // A job of fewer replicas shares one copy among all.
    let few = Line::new(2, 1);
    assert_eq!(step_us_among("fully-shard(shards=4)", &few), step_us_among("fully-shard", &few));
    assert_eq!(step_us_among("fully-shard(shards=4)", &Line::new(1, 1)), 95.0);
}
