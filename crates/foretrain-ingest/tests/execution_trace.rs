//! PyTorch execution traces of every schema, made-up ones and real ones.

mod traces;

use foretrain_core::{Bytes, DType, InputError, Ledger, Nanos};
use foretrain_graph::attributes::well_known;
use foretrain_graph::{CollectiveKind, EdgeKind, NodeId, NodeKind, QueueKind, StepGraph};
use foretrain_ingest::{FileKind, execution_trace, sniff};
use foretrain_testkit::execution_trace::{FIVE, NONE, Op, TENSOR, new_style, old_style};
use traces::{check, fingerprint, of_kind};

fn read(text: &str) -> Result<(StepGraph, Ledger), InputError> {
    let mut ledger = Ledger::new();
    let graph = execution_trace::read(text.as_bytes(), "made-up.json", &mut ledger)?.graph;
    check(&graph, &ledger, text);
    Ok((graph, ledger))
}

/// Case O14: the schema string decides nothing, the same nodes are the same graph.
#[test]
fn equal_nodes_of_different_schemas_are_equal_graphs() {
    let (old, ledger) = read(&old_style("1.0.1", &FIVE)).unwrap();
    assert_eq!(ledger.count("unknown-schema"), 0);
    for schema in ["1.0.2-chakra.0.0.4", "1.1.1-chakra.0.0.4"] {
        let (new, ledger) = read(&new_style(schema, &FIVE, "")).unwrap();
        assert_eq!(fingerprint(&new), fingerprint(&old), "{schema}");
        assert_eq!(ledger.count("unknown-schema") + ledger.count("unknown-field"), 0, "{schema}");
    }
    let collective = old.node(of_kind(&old, NodeKind::Collective)[0]);
    assert_eq!(collective.collective, Some(CollectiveKind::AllReduce));
    assert_eq!((collective.bytes, collective.dtype), (Some(Bytes::new(32)), Some(DType::F16)));
    let group = &old.groups[collective.group.unwrap().index()];
    assert_eq!((group.name.as_str(), group.role.as_str()), ("5", "tp"));
    assert_eq!((group.size, &group.ranks[..], old.meta.rank), (2, &[0, 1][..], 1));
    assert_eq!(old.node_count(), 2, "frames and enclosing records are no work");
}

/// Case O14, last part: an unknown version loads with a warning that names what was not used.
#[test]
fn an_unknown_schema_is_named_with_its_unknown_fields() {
    let extra = r#", {"name": "quantum_flux", "type": "int64", "value": 3}"#;
    let (graph, ledger) = read(&new_style("9.9.9", &FIVE, extra)).unwrap();
    assert_eq!(graph.node_count(), 2);
    let message = &ledger.get("unknown-schema").unwrap().message;
    assert!(message.contains("9.9.9") && message.contains("1.1.1-chakra.0.0.4"), "{message}");
    let fields = ledger.get("unknown-field").unwrap();
    assert_eq!((fields.count, fields.places[0].as_str()), (5, "\"quantum_flux\""));

    let error = read(r#"{"schema": "9.9.9", "nodes": [{"ident": 1}]}"#).unwrap_err();
    assert!(error.message().contains("9.9.9"), "{error}");
    assert!(error.message().contains("1.1.1-chakra.0.0.4"), "{error}");
    assert!(!error.hints().is_empty());
}

/// A product on a CPU encloses views; its arithmetic is counted, and only once.
#[test]
fn arithmetic_of_enclosing_operators_is_counted() {
    const PRODUCT: [&str; 3] = ["[]", "[[2, 3], [3, 4]]", "[]"];
    let nested = [
        Op(1, "[pytorch|profiler|execution_trace|process]", 1, NONE),
        Op(2, "aten::matmul", 1, PRODUCT),
        Op(3, "aten::mm", 2, PRODUCT),
        Op(4, "aten::resolve_conj", 3, TENSOR),
    ];
    for ops in [&nested[..], &nested[..3]] {
        let (graph, _) = read(&old_style("1.0.1", ops)).unwrap();
        let flops = |id: NodeId| graph.node_attributes.get_f64(well_known::FLOPS, id.index());
        let total: f64 = graph.node_ids().filter_map(flops).sum();
        assert_eq!((total, graph.node_count()), (48.0, ops.len() - 2));
    }
}

/// chakra#161: no kind of operation gets lost on the way.
#[test]
fn every_kind_of_collective_is_conserved() {
    let kinds = [
        "broadcast",
        "all_reduce",
        "all_gather",
        "_all_gather_base",
        "reduce_scatter",
        "_reduce_scatter_base",
        "all_to_all",
        "reduce",
        "gather",
        "scatter",
        "barrier",
        "send",
        "recv",
        "surprise",
    ];
    let nodes: Vec<String> = kinds
        .iter()
        .enumerate()
        .map(|(i, kind)| {
            format!(r#"{{"id": {}, "name": "nccl:{kind}", "parent": 1, "tid": 1, "inputs": [[1, 2, 0, 8, 4, "cuda:0"]], "input_types": ["Tensor(float)"]}}"#, i + 2)
        })
        .collect();
    let (graph, ledger) =
        read(&format!(r#"{{"schema": "1.0.1", "nodes": [{}]}}"#, nodes.join(","))).unwrap();
    let collectives = of_kind(&graph, NodeKind::Collective).len();
    let messages = of_kind(&graph, NodeKind::PointToPoint).len();
    assert_eq!((collectives, messages), (kinds.len() - 2, 2));
    let coverage = ledger.coverage("communication operations").unwrap();
    assert_eq!((coverage.used, coverage.total), (14, 14));
    assert_eq!(ledger.count("unknown-collective"), 1);
}

/// astra-sim#339: subgroups with different sequences; each group counts for itself.
#[test]
fn groups_with_different_sequences_stay_apart() {
    let op = |id: u64, group: &str, name: &str| {
        format!(
            r#"{{"id": {id}, "name": "record_param_comms", "ctrl_deps": 1, "inputs": {{"values": [[[1, 2, 0, 8, 4, "cuda:0"]], {id}, ["{group}", ""], 0, "{name}", [], [], 0, 1, 8], "shapes": [], "types": []}}, "attrs": []}}"#
        )
    };
    let ops = [
        op(2, "all", "allgather"),
        op(3, "half", "allreduce"),
        op(4, "all", "allgather"),
        op(5, "half", "allreduce"),
    ];
    let (graph, _) =
        read(&format!(r#"{{"schema": "1.1.0-chakra.0.0.4", "nodes": [{}]}}"#, ops.join(",")))
            .unwrap();
    let seen: Vec<_> = graph
        .node_ids()
        .map(|id| graph.node(id))
        .map(|n| (graph.groups[n.group.unwrap().index()].name.clone(), n.sequence))
        .collect();
    let want = [("all", 0), ("half", 0), ("all", 1), ("half", 1)];
    assert_eq!(seen, want.map(|(name, n)| (name.to_owned(), n)));
}

/// chakra#134 and PR 185: linking leaves synchronisation edges from later to earlier operators.
#[test]
fn false_synchronisation_edges_are_broken_and_reported() {
    let text = r#"{"schema": "1.0.1", "nodes": [
        {"id": 2, "name": "aten::a", "parent": 1, "tid": 1, "sync_dep": [4]},
        {"id": 3, "name": "aten::b", "parent": 1, "tid": 1},
        {"id": 4, "name": "aten::c", "parent": 1, "tid": 1, "sync_dep": [2, 77]}]}"#;
    let (graph, ledger) = read(text).unwrap();
    assert_eq!(ledger.count("cyclic-dependency"), 1);
    assert!(ledger.get("cyclic-dependency").unwrap().places[0].contains("aten::c"));
    assert!(ledger.count("dangling-dependency") >= 1);
    assert_eq!(graph.edges().len(), 3, "2->3, 3->4 and the true 2->4");
}

/// chakra#220: gaps between operators are part of the step.
#[test]
fn recorded_gaps_between_operators_are_kept() {
    let text = r#"{"schema": "1.0.1", "nodes": [
        {"id": 2, "name": "aten::a", "parent": 1, "tid": 1, "ts": 1694128201426693, "dur": 10},
        {"id": 3, "name": "aten::b", "parent": 1, "tid": 1, "ts": 1694128201426733, "dur": 5}]}"#;
    let (graph, _) = read(text).unwrap();
    assert_eq!(graph.edges()[0].lag, Nanos::from_micros(30));
    assert_eq!(graph.meta.recorded_step, Some(Nanos::from_micros(45)));
}

#[test]
fn merged_files_have_kernels_on_streams_and_waits_between_them() {
    let text = r#"{"schema": "1.0.1", "nodes": [
        {"id": 2, "name": "record_param_comms", "parent": 1, "tid": 1, "ts": 100, "dur": 9,
         "inputs": [[7, 8, 0, 100, 4, "cuda:0"], 41, 94594108284448, 0, "all_to_all", [], []], "input_types": ["Tensor(float)"]},
        {"id": 3, "name": "nccl:all_to_all", "parent": 2, "tid": 1, "ts": 101, "dur": 6},
        {"id": 4, "name": "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*)", "parent": 3, "ph": "X", "cat": "kernel", "pid": 0, "tid": 24, "ts": 105, "dur": 50, "args": {"stream": 24, "grid": [8, 1, 1], "block": [640, 1, 1]}},
        {"id": 5, "name": "record_param_comms", "parent": 1, "tid": 1, "ts": 110, "dur": 1, "inputs": [41, 0, 0, "wait", [], []]},
        {"id": 6, "name": "aten::add", "parent": 1, "tid": 1, "ts": 112, "dur": 4},
        {"id": 7, "name": "vectorized_add", "parent": 6, "ph": "X", "cat": "kernel", "pid": 0, "tid": 7, "ts": 155, "dur": 3, "args": {"stream": 7}},
        {"id": 8, "name": "Memcpy DtoH", "parent": 6, "ph": "X", "cat": "gpu_memcpy", "pid": 0, "tid": 7, "ts": 158, "dur": 2, "args": {"stream": 7, "bytes": 400}}]}"#;
    let (graph, ledger) = read(text).unwrap();
    let collective = of_kind(&graph, NodeKind::Collective);
    assert_eq!(collective.len(), 1);
    let node = graph.node(collective[0]);
    assert_eq!(
        (node.collective, node.bytes),
        (Some(CollectiveKind::AllToAll), Some(Bytes::new(400)))
    );
    assert_eq!(node.work, Nanos::from_micros(50));
    assert_eq!(graph.queues[node.queue.index()].name, "stream 24");
    assert_eq!(
        graph.node_attributes.get_str(well_known::GRID, collective[0].index()),
        Some("8,1,1")
    );
    let kernel = of_kind(&graph, NodeKind::Kernel)[0];
    let edge = |kind| graph.edges().iter().filter(move |e| e.kind == kind);
    assert!(edge(EdgeKind::EventWait).any(|e| e.src == collective[0] && e.dst == kernel));
    assert_eq!(edge(EdgeKind::Launch).count(), 3);
    assert_eq!(graph.node(of_kind(&graph, NodeKind::Copy)[0]).bytes, Some(Bytes::new(400)));
    assert_eq!(ledger.coverage("times in the file").unwrap().share(), 1.0);
}

#[test]
fn threads_hand_over_and_collectives_of_unknown_stream_overlap() {
    let text = r#"{"schema": "1.0.1", "nodes": [
        {"id": 2, "name": "aten::mm", "parent": 1, "tid": 1, "inputs": [], "input_shapes": [[4, 8], [8, 2]]},
        {"id": 3, "name": "gloo:all_reduce", "parent": 1, "tid": 2, "inputs": [[1, 9, 0, 8, 4, "cpu"]]},
        {"id": 4, "name": "aten::mm", "parent": 1, "tid": 2},
        {"id": 5, "name": "aten::add_", "parent": 1, "tid": 2, "inputs": [[1, 9, 0, 8, 4, "cpu"]]}]}"#;
    let (graph, ledger) = read(text).unwrap();
    let collective = of_kind(&graph, NodeKind::Collective)[0];
    let queue = &graph.queues[graph.queue(collective).index()];
    assert_eq!(queue.kind, QueueKind::Other);
    let name = |id| graph.name(id).to_owned();
    let data: Vec<_> = graph
        .edges()
        .iter()
        .filter(|e| e.kind == EdgeKind::Data)
        .map(|e| (name(e.src), name(e.dst)))
        .collect();
    assert!(data.contains(&("gloo:all_reduce".into(), "aten::add_".into())), "{data:?}");
    assert!(data.contains(&("aten::mm".into(), "aten::mm".into())), "the hand-over: {data:?}");
    assert_eq!(ledger.count("thread-hand-over"), 1);
    assert_eq!(graph.node_attributes.get_f64(well_known::FLOPS, 0), Some(128.0));
    assert_eq!(ledger.count("no-duration"), 4);
    assert_eq!(graph.node_attributes.get_str(well_known::PROVENANCE, 0), Some("no duration"));
}

#[test]
fn chakra_nodes_as_json_are_read_whatever_the_case_of_their_keys() {
    let text = r#"{"workload_graph": [
        {"Id": 0, "Name": "op", "NodeType": 4, "runtime": 318, "data_deps": [], "is_cpu_op": true},
        {"Id": 3, "Name": "c10d::broadcast_(0)", "NodeType": 7, "ctrlDeps": [99], "data_deps": [0], "runtime": 85, "is_cpu_op": true},
        {"Id": 4, "Name": "ncclKernel_Broadcast_RING_LL(x)", "NodeType": 7, "ctrlDeps": [3], "data_deps": [3, 0], "runtime": 28, "is_cpu_op": false}],
        "workload_name": "w", "ngpus": 8, "soc": "s"}"#;
    let (graph, ledger) = read(text).unwrap();
    assert_eq!(graph.node_count(), 3);
    let collective = graph.node(of_kind(&graph, NodeKind::Collective)[0]);
    assert_eq!(collective.collective, Some(CollectiveKind::Broadcast));
    assert_eq!((collective.work, graph.meta.world_size), (Nanos::from_micros(28), 8));
    assert_eq!((ledger.count("dangling-dependency"), ledger.count("unknown-field")), (1, 0));
}

#[test]
fn real_execution_traces_load() {
    let Some(root) = traces::data() else { return };
    let mut read_files = 0;
    for path in traces::files(&root.join("traces"))
        .into_iter()
        .chain(traces::files(&root.join("lab/traces")))
    {
        let name = path.display().to_string();
        if !(name.ends_with(".json") || name.ends_with(".json.gz")) {
            continue;
        }
        let bytes = traces::load(&path);
        let kind = sniff(&bytes[..bytes.len().min(1 << 20)], &name);
        if !matches!(kind, FileKind::ExecutionTrace | FileKind::Chakra) {
            assert!(!name.ends_with(".et.json.gz"), "{name} is not recognised");
            continue;
        }
        let mut ledger = Ledger::new();
        let started = std::time::Instant::now();
        let graph = execution_trace::read(&bytes, &name, &mut ledger)
            .unwrap_or_else(|error| panic!("{name}: {error}"))
            .graph;
        let took = started.elapsed();
        check(&graph, &ledger, &name);
        read_files += 1;
        let short = name.rsplit('/').next().unwrap_or_default();
        println!(
            "{short}: {:.1} MB in {took:.0?}: {}",
            bytes.len() as f64 / 1e6,
            traces::summary(&graph, &ledger)
        );
        for finding in ledger.findings() {
            println!("    {finding}");
        }
        check_known(short, &graph, &ledger);
        if name.ends_with(".et.json.gz") {
            // Gloo runs: one per dispatched operation, wherever its backend record is nested.
            let dispatched = String::from_utf8_lossy(&bytes).matches(r#""name": "c10d::"#).count();
            let operations = of_kind(&graph, NodeKind::Collective).len()
                + of_kind(&graph, NodeKind::PointToPoint).len();
            assert_eq!(operations, dispatched, "{name}");
        }
    }
    assert!(read_files > 100, "only {read_files} execution traces found");
}

/// Facts counted in the files by other means.
fn check_known(name: &str, graph: &StepGraph, ledger: &Ledger) {
    let collectives = of_kind(graph, NodeKind::Collective).len();
    let world = graph.meta.world_size;
    assert_eq!(ledger.count("unknown-schema") + ledger.count("unknown-field"), 0, "{name}");
    if let Some(rank) = name.strip_prefix("megatron_et_") {
        assert_eq!((collectives, world), (85, 8), "{name}");
        assert_eq!(graph.meta.rank.to_string(), rank.trim_end_matches(".json.gz"), "{name}");
    } else if name.starts_with("dlrm_eg_") {
        assert_eq!(collectives, 8, "{name}");
    } else if name == "resnet_2gpu_et.json.gz" {
        assert_eq!((collectives, world), (21, 2), "{name}");
    }
}
