//! The engine driven by models, against closed forms and against itself.

use std::sync::Arc;

use foretrain_core::{Bytes, Nanos};
use foretrain_cost::interference::{Analytic, DeviceLimits, Fixed, OverlapModel};
use foretrain_graph::attributes::well_known;
use foretrain_graph::{
    CollectiveKind, Edge, EdgeKind, Group, Job, Node, NodeKind, QueueKind, StepGraph,
};
use foretrain_sim::{SimOptions, Timeline, simulate};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::*;

const A100: DeviceLimits = DeviceLimits { multiprocessors: 108, memory_bandwidth: 2.0e12 };

/// Streams of kernels and of collectives, each in order; lengths in microseconds.
fn graph(kernels: &[Vec<i64>], transfers: &[Vec<i64>]) -> StepGraph {
    let mut graph = StepGraph::new();
    let kernel = graph.names.intern("vectorized_elementwise_kernel");
    let reduce = graph.names.intern("ncclDevKernel_AllReduce_Sum_f32_RING_LL");
    let streams = kernels.iter().map(|s| (false, s)).chain(transfers.iter().map(|s| (true, s)));
    for (at, (communicates, lengths)) in streams.enumerate() {
        let queue = graph.add_queue(format!("stream {at}"), QueueKind::Stream);
        let group = communicates
            .then(|| graph.add_group(Group { name: format!("{at}"), size: 8, ..Group::default() }));
        let mut before = None;
        for (sequence, &micros) in lengths.iter().enumerate() {
            let (kind, name) = match communicates {
                true => (NodeKind::Collective, reduce),
                false => (NodeKind::Kernel, kernel),
            };
            let node = Node::new(kind, name, queue, Nanos::from_micros(micros));
            let id = graph.add_node(Node {
                group,
                sequence: sequence as u32,
                collective: communicates.then_some(CollectiveKind::AllReduce),
                bytes: communicates.then_some(Bytes::from_mib(8)),
                ..node
            });
            let blocks = if communicates { "16,1,1" } else { "4096,1,1" };
            graph.node_attributes.set_str(well_known::GRID, id.index(), blocks.into());
            graph.node_attributes.set_str(well_known::BLOCK, id.index(), "256,1,1".into());
            if let Some(before) = before {
                graph.add_edge(Edge::new(before, id, EdgeKind::StreamOrder));
            }
            before = Some(id);
        }
    }
    graph
}

fn sharing(model: OverlapModel, graph: &StepGraph) -> DeviceSharing {
    let loads = vec![Arc::new(Loads::new(graph, |id| graph.work(id), |_| 1.0))];
    DeviceSharing { model: Arc::new(model), device: A100, loads }
}

fn run(job: &Job, sharing: Option<DeviceSharing>) -> Timeline {
    let mut options = SimOptions::iterations(1);
    if let Some(sharing) = sharing {
        options.interference = Some(Arc::new(sharing));
    }
    simulate(job, &options).expect("no cycle")
}

fn makespan(kernel: i64, transfer: i64, fixed: Fixed) -> i64 {
    let graph = graph(&[vec![kernel]], &[vec![transfer]]);
    let sharing = sharing(OverlapModel::Fixed(fixed), &graph);
    run(&Job::uniform(graph, 1), Some(sharing)).makespan().nanos()
}

#[test]
fn fixed_factors_give_the_closed_form_of_two_kernels() {
    for (a, b, fc, fm) in [(100, 400, 1.3, 1.1), (900, 50, 1.3, 1.1), (70, 70, 2.0, 1.5)] {
        let fixed = Fixed::new(fc, fm).expect("in range");
        let (x, y) = (a as f64 * 1e3, b as f64 * 1e3);
        let want =
            if x * fc <= y * fm { x * fc + (y - x * fc / fm) } else { y * fm + (x - y * fm / fc) };
        let got = makespan(a, b, fixed) as f64;
        assert!((got - want).abs() <= 2.0, "{a} {b}: {got} {want}");
    }
}

#[test]
fn fixed_factors_give_the_formula_of_galvatron() {
    let galvatron = |bct: f64, msg: f64, dc: f64, coe: f64| {
        let (dp, compute) = (msg * dc * coe, bct * coe);
        if dp > compute {
            compute + (msg - compute / (dc * coe)) * dc
        } else {
            dp + (bct - dp / coe)
        }
    };
    for (bct, msg) in [(300.0, 50.0), (300.0, 75.0), (300.0, 200.0)] {
        let fixed = Fixed::new(1.3, 1.3).expect("in range");
        let got = makespan(bct as i64, (msg * 4.0) as i64, fixed) as f64;
        let want = 1e3 * galvatron(bct, msg, 4.0, 1.3);
        assert!((got - want).abs() <= 2.0, "{bct} {msg}: {got} {want}");
    }
}

fn random(rng: &mut Pcg64Mcg) -> StepGraph {
    let mut streams = |count: usize, most: i64| -> Vec<Vec<i64>> {
        (0..count)
            .map(|_| (0..rng.random_range(1..8)).map(|_| rng.random_range(1..most)).collect())
            .collect()
    };
    let (kernels, transfers) = (streams(2, 400), streams(2, 1_500));
    graph(&kernels, &transfers)
}

/// However many things overlap, and however often rates change, each node does its work: the
/// integral of its rate over its time is its time alone.
#[test]
fn work_is_conserved_in_random_overlaps() {
    let mut rng = Pcg64Mcg::seed_from_u64(7);
    let models =
        [OverlapModel::Fixed(Fixed::default()), OverlapModel::Analytic(Analytic::default())];
    for round in 0..200 {
        let graph = random(&mut rng);
        let sharing = sharing(models[round % 2].clone(), &graph);
        let job = Job::uniform(graph.clone(), 1);
        let timeline = run(&job, Some(sharing.clone()));
        let alone = take_out(&spans(&job, &timeline)[0], &graph, 0, &sharing);
        let (times, mut slowed) = (&timeline.classes[0], 0);
        for id in graph.node_ids() {
            let took = times.end[times.row(0, id)] - times.start[times.row(0, id)];
            let work = alone.get(&id).copied().unwrap_or(took);
            let off = (work - graph.work(id)).nanos().abs();
            assert!(off <= 20, "round {round}: {off} ns off of {}", graph.work(id));
            slowed += usize::from(took > graph.work(id));
        }
        assert!(slowed > 0, "round {round}: nothing was slowed down");
    }
}

#[test]
fn a_collective_that_waits_delays_kernels_but_leaves_them_the_memory() {
    let graph = graph(&[vec![100]], &[vec![25]]);
    let sharing = sharing(OverlapModel::Analytic(Analytic::default()), &graph);
    let view = |node: usize, waiting| foretrain_sim::TaskView {
        class: 0,
        node: foretrain_graph::NodeId::from_index(node),
        kind: graph.kind(foretrain_graph::NodeId::from_index(node)),
        queue: graph.queue(foretrain_graph::NodeId::from_index(node)),
        device: 0,
        waiting,
    };
    let rates = |waiting| {
        let mut rates = [1.0; 2];
        let running = [view(0, false), view(1, waiting)];
        foretrain_sim::Interference::rates(&sharing, &running, &mut rates);
        rates[0]
    };
    let (moving, waiting) = (rates(false), rates(true));
    let delay = Analytic::default().launch_delay().micros_f64();
    assert!((waiting - 100.0 / (100.0 + delay)).abs() < 1e-9, "{waiting}");
    assert!(moving < 0.9 * waiting, "{moving} {waiting}");
}
