//! Noise and stragglers against order statistics.

use foretrain_core::stats::{expected_normal_max, mean};
use foretrain_core::{NameId, Nanos};
use foretrain_graph::{
    CollectiveKind, Edge, EdgeKind, Group, Job, Node, NodeKind, QueueKind, StepGraph,
};
use foretrain_sim::{Jitter, Program, SimOptions, Stragglers};

/// `kernels` kernels in a row, then a collective of the whole class.
fn step(kernels: i64, work: i64) -> StepGraph {
    let mut graph = StepGraph::new();
    let queue = graph.add_queue("stream", QueueKind::Stream);
    let group = graph.add_group(Group {
        name: "world".into(),
        role: String::new(),
        size: 0,
        ranks: vec![],
    });
    let mut last = None;
    for index in 0..=kernels {
        let work = Nanos::from_nanos(if index == kernels { 0 } else { work });
        let mut node = Node::new(NodeKind::Kernel, NameId::EMPTY, queue, work);
        if index == kernels {
            node.kind = NodeKind::Collective;
            node.group = Some(group);
            node.collective = Some(CollectiveKind::AllReduce);
        }
        let id = graph.add_node(node);
        if let Some(last) = last {
            graph.add_edge(Edge::new(last, id, EdgeKind::StreamOrder));
        }
        last = Some(id);
    }
    graph
}

fn means(graph: StepGraph, ranks: u64, jitter: &Jitter, runs: u64) -> f64 {
    let program = Program::compile(&Job::uniform(graph, ranks)).expect("the job is sound");
    let times: Vec<f64> = (0..runs)
        .map(|seed| {
            let jitter = Jitter { seed, ..jitter.clone() };
            let options = SimOptions { iterations: 1, jitter, ..SimOptions::default() };
            program.run(&options).expect("it ends").makespan().nanos() as f64
        })
        .collect();
    mean(&times).expect("at least one run")
}

#[test]
fn the_slowest_of_n_ranks_is_as_late_as_order_statistics_say() {
    let (work, spread) = (1_000_000, 0.05);
    for ranks in [1, 2, 8, 1024, 100_000] {
        for kernels in [1, 16] {
            let jitter = Jitter { spread, ..Jitter::default() };
            let got = means(step(kernels, work), ranks, &jitter, 2000);
            let mu = (kernels * work) as f64;
            let sigma = spread * work as f64 * (kernels as f64).sqrt();
            let want = mu + sigma * expected_normal_max(ranks);
            // The maximum spreads no more than one value: 5 standard errors of 2000 runs.
            let error = 5.0 * sigma / 2000f64.sqrt();
            assert!((got - want).abs() < error, "{ranks} x {kernels}: {got} against {want}");
        }
    }
}

#[test]
fn one_straggler_among_many_delays_the_step() {
    let (probability, factor, ranks) = (0.01, 1.5, 64);
    let stragglers = Some(Stragglers { probability, factor });
    let jitter = Jitter { stragglers, ..Jitter::default() };
    let got = means(step(4, 250_000), ranks, &jitter, 4000);
    let any = 1.0 - (1.0f64 - probability).powi(ranks as i32);
    let want = 1e6 * (1.0 + any * (factor - 1.0));
    let error = 5.0 * 1e6 * (factor - 1.0) * (any * (1.0 - any) / 4000.0).sqrt();
    assert!((got - want).abs() < error, "{got} against {want}");
}

#[test]
fn a_slow_class_is_slow_and_the_seed_decides_all() {
    let program = Program::compile(&Job::uniform(step(2, 500), 1)).unwrap();
    let run = |jitter: Jitter| {
        program.run(&SimOptions { iterations: 1, jitter, ..SimOptions::default() }).unwrap()
    };
    let slow = Jitter { slow_classes: vec![(0, 3.0)], ..Jitter::default() };
    assert_eq!(run(slow).iteration_finish(0), Nanos::from_nanos(3000));
    let noisy = |seed| run(Jitter { seed, spread: 0.2, ..Jitter::default() });
    assert_eq!(noisy(7), noisy(7));
    assert_ne!(noisy(7), noisy(8));
}
