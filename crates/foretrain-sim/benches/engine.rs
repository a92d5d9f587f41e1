//! Task completions per second on a graph shaped like a replayed step.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use foretrain_core::{NameId, Nanos};
use foretrain_graph::{
    CollectiveKind, Edge, EdgeKind, Group, Job, Node, NodeId, NodeKind, QueueKind, StepGraph,
};
use foretrain_sim::{FixedFactors, Jitter, Path, Program, SimOptions};

const LAUNCHES: usize = 50_000;
const ITERATIONS: u32 = 5;

/// A host thread launches kernels on one stream; every hundredth launch is a collective on a
/// second stream that waits for the last kernel. All queues are chained, within and across steps.
fn replayed_step() -> StepGraph {
    let mut graph = StepGraph::new();
    let host = graph.add_queue("thread", QueueKind::Thread);
    let streams = [
        graph.add_queue("stream 7", QueueKind::Stream),
        graph.add_queue("stream 20", QueueKind::Stream),
    ];
    let group = graph.add_group(Group {
        name: "world".into(),
        role: "data-parallel".into(),
        size: 0,
        ranks: vec![],
    });
    let mut first: [Option<NodeId>; 3] = [None; 3];
    let mut last: [Option<NodeId>; 3] = [None; 3];
    for launch in 0..LAUNCHES {
        let collective = launch % 100 == 99;
        let stream = usize::from(collective);
        let host_work = Nanos::from_nanos(3000 + (launch as i64 * 7919) % 2000);
        let work = Nanos::from_nanos(2000 + (launch as i64 * 104_729) % 9000);
        let call = graph.add_node(Node::new(NodeKind::HostSegment, NameId::EMPTY, host, host_work));
        let mut kernel = Node::new(NodeKind::Kernel, NameId::EMPTY, streams[stream], work);
        if collective {
            kernel.kind = NodeKind::Collective;
            kernel.group = Some(group);
            kernel.collective = Some(CollectiveKind::AllReduce);
            kernel.sequence = (launch / 100) as u32;
        }
        let kernel = graph.add_node(kernel);
        graph.add_edge(Edge::new(call, kernel, EdgeKind::Launch).with_lag(Nanos::from_nanos(1500)));
        if let (true, Some(before)) = (collective, last[1]) {
            graph.add_edge(Edge::new(before, kernel, EdgeKind::EventWait));
        }
        for (queue, node) in [(0, call), (1 + stream, kernel)] {
            if let Some(before) = last[queue].replace(node) {
                graph.add_edge(Edge::new(before, node, EdgeKind::StreamOrder));
            }
            first[queue].get_or_insert(node);
        }
    }
    for (first, last) in first.into_iter().zip(last) {
        if let (Some(first), Some(last)) = (first, last) {
            graph.add_edge(Edge::new(last, first, EdgeKind::StreamOrder).with_distance(1));
        }
    }
    graph
}

fn engine(c: &mut Criterion) {
    let graph = replayed_step();
    let job = Job::uniform(graph.clone(), 1);
    let program = Program::compile(&job).expect("the job is sound");
    let mut group = c.benchmark_group("engine");
    group.sample_size(10);
    group.throughput(Throughput::Elements((program.node_count() as u64) * u64::from(ITERATIONS)));
    let plain = SimOptions::iterations(ITERATIONS);
    let factors = Arc::new(FixedFactors::default());
    let cases = [
        ("ordered", plain.clone()),
        ("fast", SimOptions { path: Path::Fast, ..plain.clone() }),
        ("general", SimOptions { path: Path::General, ..plain.clone() }),
        ("interference", SimOptions { interference: Some(factors), ..plain.clone() }),
        (
            "noise",
            SimOptions { jitter: Jitter { spread: 0.05, ..Jitter::default() }, ..plain.clone() },
        ),
    ];
    for (name, options) in &cases {
        group.bench_function(*name, |b| b.iter(|| black_box(program.run(options))));
    }
    group.bench_function("compile", |b| b.iter(|| black_box(Program::compile(&job))));
    let many = Program::compile(&Job::uniform(graph, 100_000)).expect("the job is sound");
    group.bench_function("100000 ranks with noise", |b| {
        b.iter(|| black_box(many.run(&cases[3].1)));
    });
    group.finish();
}

criterion_group!(benches, engine);
criterion_main!(benches);
