//! Chakra files, made-up ones and real ones.

mod traces;

use foretrain_core::{Bytes, InputError, Ledger, Nanos};
use foretrain_graph::attributes::well_known;
use foretrain_graph::{CollectiveKind, EdgeKind, NodeKind, StepGraph};
use foretrain_ingest::chakra;
use foretrain_testkit::chakra::{Bools, Content, Node, attribute, file, node, sample};
use traces::{check, fingerprint, of_kind};

fn read(bytes: &[u8]) -> Result<(StepGraph, Ledger), InputError> {
    let mut ledger = Ledger::new();
    let graph = chakra::read(bytes, "made-up.et", &mut ledger)?.graph;
    check(&graph, &ledger, "made-up");
    Ok((graph, ledger))
}

#[test]
fn a_run_is_read_with_its_id_zero() {
    let bytes = file("1.1.1-chakra.0.0.4", &sample());
    assert!(chakra::looks_like(&bytes));
    let (graph, ledger) = read(&bytes).unwrap();
    assert_eq!(graph.node_count(), 7);
    let collective = of_kind(&graph, NodeKind::Collective);
    assert_eq!(collective.len(), 1, "the host half is no second collective");
    let row = graph.node(collective[0]);
    assert_eq!(row.collective, Some(CollectiveKind::AllReduce));
    assert_eq!((row.bytes, row.work), (Some(Bytes::from_gib(4)), Nanos::from_micros(20_031)));
    assert_eq!(graph.groups[row.group.unwrap().index()].name, "2");
    assert_eq!(graph.node(of_kind(&graph, NodeKind::Copy)[0]).bytes, Some(Bytes::new(640)));
    let kernel = of_kind(&graph, NodeKind::Kernel)[0];
    assert_eq!(graph.node_attributes.get_f64(well_known::FLOPS, kernel.index()), Some(1000.0));
    let messages = of_kind(&graph, NodeKind::PointToPoint);
    assert_ne!(graph.queue(messages[0]), graph.queue(messages[1]), "directions do not block");
    assert_eq!(graph.node_attributes.get_i64("peer", messages[0].index()), Some(1));
    assert_eq!(graph.node_attributes.get_i64("tag", messages[0].index()), Some(3));
    // Node 0 launches the kernel and precedes the next host node on its thread.
    let kinds: Vec<_> = graph.edges().iter().filter(|e| e.src.get() == 0).map(|e| e.kind).collect();
    assert_eq!(kinds, [EdgeKind::Launch, EdgeKind::Data]);
    assert_eq!(ledger.count("host-half-of-collective"), 1);
    assert_eq!(ledger.coverage("times in the file").unwrap().used, 2);
}

#[test]
fn equal_bytes_give_equal_graphs_and_starts_count_from_the_first() {
    let mut nodes = sample();
    for (at, node) in nodes.iter_mut().enumerate() {
        node.start = 1_694_128_201_426_693 + at as u64;
    }
    let bytes = file("1.0.1", &nodes);
    let (graph, _) = read(&bytes).unwrap();
    assert_eq!(fingerprint(&graph), fingerprint(&read(&bytes).unwrap().0));
    assert_eq!(graph.node_attributes.get_i64(well_known::RECORDED_START, 2), Some(2_000));
    assert_eq!(graph.meta.recorded_step, Some(Nanos::from_micros(20_034)));
}

#[test]
fn dimensions_name_the_group_where_nothing_else_does() {
    let dims = |values: &[bool]| {
        attribute("involved_dim", Content::Bools(Bools { values: values.to_vec() }))
    };
    let mut nodes = [node(0, "ALL_REDUCE", 7, &[]), node(1, "ALL_TO_ALL", 7, &[0])];
    nodes[0].attributes = vec![dims(&[true, true])];
    nodes[1].attributes = vec![dims(&[false, true]), attribute("comm_type", Content::Int64(6))];
    let (graph, ledger) = read(&file("0.0.4", &nodes)).unwrap();
    let names: Vec<_> = graph.groups.iter().map(|group| group.name.as_str()).collect();
    assert_eq!(names, ["world", "dimensions 1"]);
    let row = graph.node(graph.node_ids().next().unwrap());
    assert_eq!((row.collective, row.bytes), (Some(CollectiveKind::AllReduce), None));
    assert_eq!(ledger.coverage("sizes of communication operations").unwrap().used, 0);
}

/// chakra#161 and #134: nothing is lost, dangling and false edges are counted.
#[test]
fn collectives_are_conserved_and_bad_dependencies_reported() {
    let mut nodes: Vec<Node> = (0..10)
        .map(|kind| {
            let mut node = node(kind, "x", 7, &[]);
            node.attributes = vec![attribute("comm_type", Content::Int64(kind as i64))];
            node
        })
        .collect();
    nodes[0].data = vec![9, 0];
    nodes[9].data = vec![0, 500];
    let (graph, ledger) = read(&file("0.0.4", &nodes)).unwrap();
    assert_eq!(of_kind(&graph, NodeKind::Collective).len(), 10);
    assert_eq!(ledger.coverage("communication operations").unwrap().used, 10);
    assert_eq!(ledger.count("dangling-dependency"), 1);
    assert_eq!(ledger.count("cyclic-dependency"), 2, "9 -> 0 and 0 -> 0");
    assert_eq!(graph.edges().len(), 1);
    assert_eq!(ledger.coverage("dependencies").unwrap().used, 3);
}

/// Packed dependencies as long as those of converted runs, and a cycle through all nodes.
#[test]
fn long_packed_dependencies_and_deep_chains_are_read() {
    let count = 185_000u64;
    let mut nodes: Vec<Node> =
        (0..count).map(|id| node(id, "op", 4, &[(id + count - 1) % count])).collect();
    nodes.push(node(count, "join", 4, &(0..count).collect::<Vec<_>>()));
    let (graph, ledger) = read(&file("1.0.1", &nodes)).unwrap();
    assert_eq!(ledger.count("cyclic-dependency"), 1);
    assert_eq!(graph.edges().len() as u64, 2 * count - 1);
}

#[test]
fn a_cut_file_keeps_its_whole_nodes_and_says_where_it_ends() {
    let mut bytes = file("1.1.1-chakra.0.0.4", &sample());
    let whole = bytes.len();
    bytes.truncate(whole - 5);
    let (graph, ledger) = read(&bytes).unwrap();
    assert_eq!(graph.node_count(), 6);
    let place = &ledger.get("truncated-file").unwrap().places[0];
    assert!(place.starts_with("byte ") && place.contains("are left"), "{place}");
}

#[test]
fn an_unknown_schema_and_files_without_nodes_are_explained() {
    let mut nodes = sample();
    nodes[0].attributes.push(attribute("quantum_flux", Content::Int64(1)));
    let (_, ledger) = read(&file("9.9.9", &nodes)).unwrap();
    assert!(ledger.get("unknown-schema").unwrap().message.contains("9.9.9"));
    assert_eq!(ledger.get("unknown-field").unwrap().places, ["\"quantum_flux\""]);
    let error = read(&file("9.9.9", &[])).unwrap_err();
    assert!(error.message().contains("9.9.9") && !error.hints().is_empty(), "{error}");
}

#[test]
fn real_chakra_files_load() {
    let Some(root) = traces::data() else { return };
    let mut read_files = 0;
    for path in traces::files(&root.join("traces")) {
        let name = path.display().to_string();
        let is_chakra = name.ends_with(".et") || name.ends_with(".et.gz");
        let bytes = if is_chakra || name.ends_with(".pb") || name.ends_with(".json") {
            traces::load(&path)
        } else {
            continue;
        };
        let head = &bytes[..bytes.len().min(4096)];
        assert_eq!(chakra::looks_like(head), is_chakra, "{name}");
        if !is_chakra {
            continue;
        }
        let mut ledger = Ledger::new();
        let started = std::time::Instant::now();
        let read = chakra::read(&bytes, &name, &mut ledger);
        let graph = read.unwrap_or_else(|e| panic!("{name}: {e}")).graph;
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
        check_known(&name, &graph, &ledger);
    }
    assert!(read_files > 100, "only {read_files} Chakra files found");
}

/// Facts counted in the files by other means.
fn check_known(name: &str, graph: &StepGraph, ledger: &Ledger) {
    assert_eq!(ledger.count("unknown-schema") + ledger.count("unknown-field"), 0, "{name}");
    let collectives = of_kind(graph, NodeKind::Collective);
    let share = |what| ledger.coverage(what).map(|c| (c.used, c.total));
    if name.contains("EricDinging") {
        assert_eq!((graph.node_count(), collectives.len()), (1634, 2));
        assert!(collectives.iter().all(|&id| graph.node(id).bytes == Some(Bytes::from_gib(4))));
        // Rank 1 waits 142 ms in its first one; all others take their transfer time.
        let times: Vec<Nanos> = collectives.iter().map(|&id| graph.work(id)).collect();
        let transfer = Nanos::from_micros(19_800)..Nanos::from_micros(20_200);
        let waits = usize::from(name.contains("trace.1."));
        let in_range = times.iter().filter(|time| transfer.contains(time)).count();
        assert_eq!(in_range, 2 - waits, "{times:?}");
    } else if name.contains("mlcommons+chakra") {
        assert_eq!((graph.node_count(), collectives.len()), (3664, 7));
        assert_eq!(ledger.count("dangling-dependency"), 1277);
        assert_eq!(share("dependencies"), Some((185_542 - 1277, 185_542)));
    } else if name.contains("resnet_dp") {
        assert_eq!((graph.node_count(), collectives.len()), (215, 54));
    } else if name.contains("custom_allreduce") {
        assert_eq!((graph.node_count(), graph.edges().len()), (35, 34));
        assert_eq!(of_kind(graph, NodeKind::PointToPoint).len(), 28);
    }
}
