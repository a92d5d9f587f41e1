//! What communication takes from computing, on ranks whose threads share cores.

use foretrain_core::{Bytes, Nanos};
use foretrain_graph::{
    CollectiveKind, Edge, EdgeKind, Group, Node, NodeKind, Phase, QueueKind, StepGraph,
};
use foretrain_hardware::{Catalogue, Cluster};
use foretrain_predict::roles::{GivenRole, Role};
use foretrain_predict::{PredictOptions, Prediction, predict_graphs};

/// A forward pass of 10 ms and a backward pass of 40, beside whose second half 4 MiB of gradients
/// are reduced among so many ranks.
fn step(ranks: u32) -> StepGraph {
    let mut graph = StepGraph::new();
    let main = graph.add_queue("main", QueueKind::Thread);
    let sync = graph.add_queue("gloo", QueueKind::Thread);
    let group = graph.add_group(Group { name: "dp".into(), size: ranks, ..Group::default() });
    graph.meta.world_size = ranks;
    let name = graph.names.intern("work");
    for (phase, ms) in [(Phase::Forward, 10), (Phase::Backward, 20), (Phase::Backward, 20)] {
        let node = Node::new(NodeKind::HostSegment, name, main, Nanos::from_millis(ms));
        let id = graph.add_node(Node { phase, ..node });
        if id.index() == 1 {
            let node = Node::new(NodeKind::Collective, name, sync, Nanos::from_micros(20));
            let reduce = graph.add_node(Node {
                collective: Some(CollectiveKind::AllReduce),
                group: Some(group),
                bytes: Some(Bytes::from_mib(4)),
                phase: Phase::Backward,
                ..node
            });
            graph.add_edge(Edge::new(id, reduce, EdgeKind::EventWait));
        }
    }
    graph
}

fn processes(name: &str) -> (Catalogue, Cluster) {
    let text = r#"
        [devices.core]
        kind = "cpu"
        vendor = "other"
        memory = "8 GiB"
        memory_bandwidth = "10 GB/s"
        peak = { f32 = "50 GFLOP/s" }
        source = "a test"

        [nodes.process]
        device = "core"
        devices = 1
        nics = 1
        nic = "ethernet"
        nic_bandwidth = "100 Gbit/s"
        source = "a test"

        [clusters.measured]
        node = "process"
        source = "a test"

        [[clusters.measured.collectives.processors]]
        collective = "all-reduce"
        ranks = 2
        nodes = 2
        sizes = [1048576, 2097152]
        times_us = [500.0, 1000.0]
    "#;
    let mut catalogue = Catalogue::builtin().clone();
    catalogue.load_str(text, "test.toml").expect("valid hardware");
    let cluster = catalogue.cluster(name).expect("just read");
    (catalogue, cluster)
}

/// Recorded by so many ranks, predicted for four of a core each, or of as many as they need.
fn predicted(recorded: u32, cores: Option<f64>, is_machine_known: bool) -> Prediction {
    predicted_on("process", recorded, cores, is_machine_known)
}

fn predicted_on(
    name: &str,
    recorded: u32,
    cores: Option<f64>,
    is_machine_known: bool,
) -> Prediction {
    let (catalogue, cluster) = processes(name);
    let options = PredictOptions {
        gpus: vec![4],
        cores,
        recorded_on: is_machine_known.then(|| cluster.clone()),
        roles: vec![GivenRole {
            groups: foretrain_graph::Glob::new("dp"),
            role: Role::DataParallel,
        }],
        ..PredictOptions::default()
    };
    predict_graphs(&[step(recorded)], &cluster, &catalogue, &options).expect("predicted")
}

fn step_ms(prediction: &Prediction) -> f64 {
    prediction.sizes[0].step_time.value.millis_f64()
}

#[test]
fn a_process_alone_records_none_of_what_communication_takes() {
    let (spare, shared) = (predicted(1, None, false), predicted(1, Some(1.0), false));
    let slower = step_ms(&shared) - step_ms(&spare);
    // Gloo moves 1.5 times 4 MiB at 1.2 GB/s and sums half of that at 4 GB/s.
    assert!((slower - 6.0).abs() < 1.0, "{slower} ms");
    let half = step_ms(&predicted(1, Some(0.5), false)) - step_ms(&spare);
    // With half a core both share it all the time: no more than its time is there to be taken.
    assert!(half > slower, "{half} ms against {slower}");
    let said =
        |p: &Prediction| p.evidence.iter().any(|line| line.what.contains("beside computing"));
    assert!(said(&shared) && !shared.warnings.iter().any(|w| w.contains("machine of the rec")));
}

/// Among four ranks 4 MiB are six messages of 1 MiB, of which two ranks sent two for 2 MiB.
#[test]
fn measured_processor_time_is_taken() {
    let on = |cores| predicted_on("measured", 1, cores, false);
    let (spare, shared) = (on(None), on(Some(1.0)));
    let slower = step_ms(&shared) - step_ms(&spare);
    assert!((slower - 3.0).abs() < 0.5, "{slower} ms");
    let said = |p: &Prediction| p.evidence.iter().any(|line| line.source.contains("measured with"));
    assert!(said(&shared) && !said(&predicted(1, Some(1.0), false)));
}

#[test]
fn several_ranks_record_what_communication_takes_from_each() {
    let slower = |recorded, known| {
        step_ms(&predicted(recorded, Some(1.0), known)) - step_ms(&predicted(recorded, None, known))
    };
    assert!(slower(4, true).abs() < 1e-6, "nothing changes: {}", slower(4, true));
    let (two, one) = (slower(2, true), slower(1, true));
    assert!(two > 0.0 && two < 0.5 * one, "of two ranks' data more is moved by four: {two} {one}");
    let unknown = predicted(2, Some(1.0), false);
    assert!(slower(2, false).abs() < 1e-6);
    let said = unknown.warnings.iter().any(|w| w.contains("not used: cores"));
    assert!(said, "{:?}", unknown.warnings);
}
