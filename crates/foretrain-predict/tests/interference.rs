//! Slow-down by communication, out of a recording and back in.

use foretrain_core::{Bytes, Nanos};
use foretrain_cost::interference::{Analytic, Fixed, OverlapModel};
use foretrain_graph::attributes::well_known;
use foretrain_graph::{
    CollectiveKind, Edge, EdgeKind, Group, Node, NodeKind, QueueKind, StepGraph,
};
use foretrain_hardware::Catalogue;
use foretrain_predict::roles::{GivenRole, Role};
use foretrain_predict::{PredictOptions, predict_graphs};

/// Twenty kernels in a row; gradients of data-parallel replicas are reduced beside the last half.
fn step() -> StepGraph {
    let mut graph = StepGraph::new();
    graph.meta.world_size = 8;
    graph.meta.device = "NVIDIA A100-SXM4-80GB".into();
    let compute = graph.add_queue("stream 7", QueueKind::Stream);
    let communicate = graph.add_queue("stream 20", QueueKind::Stream);
    let ranks: Vec<u32> = (0..8).collect();
    let group = graph.add_group(Group { name: "dp".into(), size: 8, ranks, ..Group::default() });
    let name = graph.names.intern("vectorized_elementwise_kernel");
    let mut before = None;
    for at in 0..20 {
        let kernel = Node::new(NodeKind::Kernel, name, compute, Nanos::from_micros(10 + at));
        let id = graph.add_node(kernel);
        graph.node_attributes.set_str(well_known::GRID, id.index(), "2000,1,1".into());
        graph.node_attributes.set_str(well_known::BLOCK, id.index(), "256,1,1".into());
        if let Some(before) = before {
            graph.add_edge(Edge::new(before, id, EdgeKind::StreamOrder));
        }
        if at == 9 {
            let name = graph.names.intern("ncclDevKernel_AllReduce_Sum_f32_RING_LL");
            let node = Node::new(NodeKind::Collective, name, communicate, Nanos::from_micros(150));
            let reduce = graph.add_node(Node {
                collective: Some(CollectiveKind::AllReduce),
                group: Some(group),
                bytes: Some(Bytes::from_mib(16)),
                ..node
            });
            graph.node_attributes.set_str(well_known::GRID, reduce.index(), "16,1,1".into());
            graph.add_edge(Edge::new(id, reduce, EdgeKind::EventWait));
        }
        before = Some(id);
    }
    graph
}

fn predicted(interference: Option<OverlapModel>, gpus: u32) -> (Nanos, usize) {
    let catalogue = Catalogue::builtin();
    let cluster = catalogue.cluster("dgx-a100").expect("built in");
    let options = PredictOptions {
        recorded_on: Some(cluster.clone()),
        gpus: vec![gpus],
        roles: vec![GivenRole {
            groups: foretrain_graph::Glob::new("dp"),
            role: Role::DataParallel,
        }],
        interference,
        ..PredictOptions::default()
    };
    let prediction = predict_graphs(&[step()], &cluster, catalogue, &options).expect("predicted");
    let about = |what: &&foretrain_core::Evidence| what.what == "kernels beside communication";
    let evidence = prediction.evidence.iter().filter(about).count();
    (prediction.sizes[0].step_time.value, evidence)
}

fn models() -> [OverlapModel; 2] {
    [
        OverlapModel::Analytic(Analytic::default()),
        OverlapModel::Fixed(Fixed::new(1.4, 1.2).expect("in range")),
    ]
}

#[test]
fn an_unchanged_job_takes_as_long_as_recorded() {
    let (recorded, silent) = predicted(None, 8);
    assert_eq!(silent, 0);
    for model in models() {
        let (replayed, evidence) = predicted(Some(model.clone()), 8);
        let off = (replayed - recorded).nanos().abs() as f64 / recorded.nanos() as f64;
        assert!(off < 0.002, "{model:?}: {replayed} against {recorded}");
        assert_eq!(evidence, 1, "the answer says what was taken out");
    }
}

#[test]
fn without_communication_there_is_no_slow_down() {
    let (with_slow_down, _) = predicted(None, 1);
    for model in models() {
        let (alone, _) = predicted(Some(model.clone()), 1);
        assert!(alone < with_slow_down, "{model:?}: {alone} against {with_slow_down}");
    }
    let (alone, _) = predicted(Some(OverlapModel::Fixed(Fixed::default())), 1);
    // 150 µs of the kernels ran beside communication, at 1.3 times their time alone.
    let gained = (with_slow_down - alone).micros_f64();
    assert!((gained - 150.0 * (1.0 - 1.0 / 1.3)).abs() < 1.0, "{gained}");
}
