//! A million nodes: load, edit and save, each to stay under a second on one core.

mod large;

use std::hint::black_box;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use foretrain_graph::{Limits, NodeSet, Query, Removal, StepGraph};

use large::large;

/// Scales the tenth of the nodes that a query names, removes 1 % with bridges.
fn edit(g: &mut StepGraph) {
    let tenth = Query::parse(r#"kernel("*_0") | kernel("*_3")"#).expect("a valid query");
    let set = g.select(&tenth);
    g.scale_work(&set, 0.5).expect("a valid factor");
    let hundredth = NodeSet::from_fn(g.node_count(), |i| i % 100 == 37);
    g.remove_nodes(&hundredth, Removal::Bridge);
}

fn benches(c: &mut Criterion) {
    let graph = large();
    let file = graph.to_file_bytes().expect("a valid graph");
    let mut group = c.benchmark_group("1M nodes, 1.5M edges");
    group.sample_size(10);
    group.bench_function("save", |b| b.iter(|| black_box(&graph).to_file_bytes()));
    group.bench_function("load", |b| {
        b.iter_batched(
            || file.clone(),
            |bytes| StepGraph::from_file_bytes(bytes, &Limits::default()),
            BatchSize::PerIteration,
        );
    });
    group.bench_function("edit", |b| {
        b.iter_batched_ref(|| graph.clone(), edit, BatchSize::PerIteration);
    });
    group.bench_function("validate", |b| b.iter(|| black_box(&graph).validate()));
    group.bench_function("longest path", |b| b.iter(|| black_box(&graph).longest_path()));
    group.finish();
}

criterion_group!(all, benches);
criterion_main!(all);
