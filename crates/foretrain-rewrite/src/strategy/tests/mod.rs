//! Every pass against a case computed by hand.
//!
//! One thread runs three forward nodes of 10 us, three backward nodes of 20 us and an optimiser of
//! 5 us: 95 us. The backward nodes complete gradients of 30, 20 and 10 kB at 50, 70 and 90 us. An
//! operation of M kB takes 1 us of latency and 1 us per kB.

mod graphs;
mod links;
mod schedules;
mod shards;
mod text;
mod volumes;

use std::collections::BTreeMap;

use foretrain_core::{Bytes, Estimate, Nanos};
use foretrain_cost::primitives::{CodecCost, LinearCost, Primitives, Scheme};
use foretrain_graph::attributes::well_known;
use foretrain_graph::{Edge, EdgeKind, Job, Node, NodeKind, Phase, QueueKind, StepGraph};
use foretrain_sim::{Discipline, QueueDiscipline, SimOptions, Timeline, simulate};

use super::{Applied, Call, Cost, Registry, SyncCosts};

/// 1 us and 1 us per kB for everything, whoever takes part.
struct Line {
    replicas: u32,
    per_node: u32,
    primitives: Primitives,
}

impl Line {
    fn new(replicas: u32, per_node: u32) -> Self {
        let flat = |us: f64| LinearCost::new(us * 1e3, 0.0);
        let codec = CodecCost { encode: flat(2.0), decode: flat(3.0) };
        let primitives = Primitives {
            source: "by hand".into(),
            send: LinearCost::FREE,
            receive: LinearCost::FREE,
            one_way: None,
            aggregate: flat(4.0),
            copy: LinearCost::FREE,
            codec: BTreeMap::from(Scheme::ALL.map(|scheme| (scheme, codec))),
        };
        Self { replicas, per_node, primitives }
    }
}

const LATENCY: Nanos = Nanos::from_micros(1);

fn line(bytes: Bytes) -> Cost {
    let whole = LATENCY + Nanos::from_nanos(bytes.get() as i64);
    Cost { whole: Estimate::exact(whole), latency: LATENCY }
}

impl SyncCosts for Line {
    fn replicas(&self) -> u32 {
        self.replicas
    }
    fn replicas_per_node(&self) -> u32 {
        self.per_node
    }
    fn collective(&self, call: &Call) -> Cost {
        line(call.bytes)
    }
    fn wire(&self, bytes: Bytes) -> Cost {
        line(bytes)
    }
    fn primitives(&self) -> &Primitives {
        &self.primitives
    }
}

fn step() -> StepGraph {
    use Phase::{Backward, Forward, Optimizer};
    let mut graph = StepGraph::new();
    let thread = graph.add_queue("main", QueueKind::Thread);
    let parts = [
        ("F1", Forward, 10, 0),
        ("F2", Forward, 10, 0),
        ("F3", Forward, 10, 0),
        ("B3", Backward, 20, 30_000),
        ("B2", Backward, 20, 20_000),
        ("B1", Backward, 20, 10_000),
        ("O", Optimizer, 5, 0),
    ];
    let (mut at, mut ids) = (0, Vec::new());
    for (name, phase, us, gradient) in parts {
        let name = graph.names.intern(name);
        let node = Node::new(NodeKind::HostSegment, name, thread, Nanos::from_micros(us));
        let id = graph.add_node(Node { phase, ..node });
        let a = &mut graph.node_attributes;
        a.set_i64(well_known::RECORDED_START, id.index(), at * 1000);
        a.set_i64(well_known::RECORDED_DURATION, id.index(), us * 1000);
        if gradient > 0 {
            a.set_i64(well_known::GRADIENT_BYTES, id.index(), gradient);
        }
        if let Some(&previous) = ids.last() {
            graph.add_edge(Edge::new(previous, id, EdgeKind::ThreadOrder));
        }
        at += us;
        ids.push(id);
    }
    graph.add_edge(Edge::new(ids[6], ids[0], EdgeKind::ThreadOrder).with_distance(1));
    graph
}

fn apply(text: &str, costs: &Line) -> (StepGraph, Applied) {
    let mut graph = step();
    let strategy = Registry::builtin().parse(text).unwrap();
    let applied = strategy.apply(&mut graph, costs, "").unwrap();
    (graph, applied)
}

const ITERATIONS: u32 = 8;

fn run(graph: &StepGraph, applied: &Applied) -> Timeline {
    let queue = |&queue| QueueDiscipline { class: 0, queue, discipline: Discipline::Priority };
    let queue_disciplines = applied.priority_queues.iter().map(queue).collect();
    let options = SimOptions { queue_disciplines, ..SimOptions::iterations(ITERATIONS) };
    simulate(&Job::uniform(graph.clone(), 1), &options).unwrap()
}

/// Steady time of one training step in us.
fn simulated(graph: &StepGraph, applied: &Applied) -> f64 {
    run(graph, applied).steady_step_time().step.micros_f64() / f64::from(applied.steps)
}

fn step_us_among(text: &str, costs: &Line) -> f64 {
    let (graph, applied) = apply(text, costs);
    simulated(&graph, &applied)
}

fn step_us(text: &str) -> f64 {
    step_us_among(text, &Line::new(4, 1))
}

/// Bytes on the NICs outwards.
fn sent(graph: &StepGraph, applied: &Applied) -> u64 {
    applied
        .placed
        .iter()
        .map(|placed| graph.node(placed.id))
        .filter(|node| graph.queues[node.queue.index()].name == "NIC outwards")
        .filter_map(|node| node.bytes)
        .map(Bytes::get)
        .sum()
}
