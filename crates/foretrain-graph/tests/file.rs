//! Saving, loading, and files that are not what they claim to be.

mod common;

use foretrain_core::Nanos;
use foretrain_graph::{Edge, EdgeKind, Limits, Node, NodeId, NodeKind, QueueKind, StepGraph};
use proptest::prelude::*;

fn load(bytes: Vec<u8>) -> Result<StepGraph, String> {
    StepGraph::from_file_bytes(bytes, &Limits::default()).map_err(|error| error.to_string())
}

/// A chain of kernels with two attributes.
fn chain(count: usize) -> StepGraph {
    let mut g = StepGraph::new();
    let queue = g.add_queue("stream 7", QueueKind::Stream);
    for i in 0..count {
        let name = g.names.intern(&format!("kernel_{}", i % 100));
        let work = Nanos::from_nanos(i as i64 % 977);
        let id = g.add_node(Node::new(NodeKind::Kernel, name, queue, work));
        if i > 0 {
            g.add_edge(Edge::new(NodeId::from_index(i - 1), id, EdgeKind::StreamOrder));
        }
        g.node_attributes.set_i64("tokens", i, i as i64);
        g.node_attributes.set_str("owner", i, format!("team {}", i % 3).into());
    }
    g
}

/// Replaces text in a file, wherever it stands, by text of the same length.
fn patch(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut patched = bytes.to_vec();
    let places = bytes.windows(from.len()).enumerate().filter(|(_, w)| *w == from.as_bytes());
    let places: Vec<usize> = places.map(|(at, _)| at).collect();
    assert!(!places.is_empty(), "{from} is not in the file");
    for at in places {
        patched[at..at + to.len()].copy_from_slice(to.as_bytes());
    }
    patched
}

#[test]
fn a_graph_of_a_hundred_thousand_nodes_survives_editing_and_saving() {
    let mut g = chain(100_000);
    let query = foretrain_graph::Query::parse(r#"kernel("kernel_1?") & attr:tokens>=0"#).unwrap();
    let set = g.select(&query);
    assert_eq!(set.len(), 10_000);
    let before = g.serial_sum();
    let selected: Nanos = set.iter().map(|id| g.work(id)).sum();
    g.scale_work(&set, 2.0).unwrap();
    assert_eq!(g.serial_sum(), before + selected);
    let each = foretrain_graph::NodeSet::from_fn(g.node_count(), |i| i % 100 == 37);
    let work: Nanos = each.iter().map(|id| g.work(id)).sum();
    g.remove_nodes(&each, foretrain_graph::Removal::Bridge);
    assert_eq!(g.node_count(), 99_000);
    assert_eq!(g.edges().len(), 98_999);
    assert_eq!(g.longest_path().unwrap().length, before + selected - work);
    assert_eq!(load(g.to_file_bytes().unwrap()).unwrap(), g);
}

#[test]
fn files_are_written_whole_and_name_themselves_in_errors() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("step.parquet");
    let g = chain(10);
    g.save(&path).unwrap();
    g.save(&path).unwrap();
    assert_eq!(StepGraph::load(&path).unwrap(), g);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    let missing = StepGraph::load(directory.path().join("absent.parquet")).unwrap_err();
    assert!(missing.path().is_some_and(|path| path.ends_with("absent.parquet")));
    let small = Limits { file_bytes: 100, ..Limits::default() };
    let error = StepGraph::load_within(&path, &small).unwrap_err();
    assert_eq!(error.message(), "the file has more than 100 bytes");
    let small = Limits { memory_bytes: 500, ..Limits::default() };
    let error = StepGraph::load_within(&path, &small).unwrap_err();
    assert!(error.message().contains("more memory than allowed"), "{error}");
    let mut invalid = g;
    invalid.add_edge(Edge::new(NodeId::new(1), NodeId::new(0), EdgeKind::Data));
    assert!(invalid.save(&path).unwrap_err().message().contains("cycle"));
}

#[test]
fn an_empty_graph_is_a_graph() {
    let g = StepGraph::new();
    assert_eq!(load(g.to_file_bytes().unwrap()).unwrap(), g);
}

#[test]
fn other_versions_and_formats_are_told_apart() {
    let bytes = chain(3).to_file_bytes().unwrap();
    let error = load(patch(&bytes, "\"version\":1", "\"version\":9")).unwrap_err();
    assert!(
        error.starts_with("the graph file has format version 9 (written by \"foretrain "),
        "{error}"
    );
    assert!(error.ends_with("but this release reads versions 1 to 1"), "{error}");
    let error = load(patch(&bytes, "foretrain-graph", "foretrain-other")).unwrap_err();
    assert_eq!(error, "expected a \"foretrain-graph\" file, found a \"foretrain-other\" file");
    let error = load(b"name,work\n".to_vec()).unwrap_err();
    assert!(error.contains("the node table is no Parquet file"), "{error}");
}

#[test]
fn contents_that_contradict_themselves_are_refused() {
    let bytes = chain(3).to_file_bytes().unwrap();
    for (from, to, want) in [
        ("\"nodes\":3", "\"nodes\":4", "counts 4 nodes, the table 3"),
        ("\"rows\":2", "\"rows\":3", "counts 3 edges, the table 2"),
        ("\"offset\":4", "\"offset\":9", "the edge table"),
        ("kernel", "kernal", "unknown node kind \"kernal\""),
        ("attr:tokens", "attrxtokens", "unknown column \"attrxtokens\""),
    ] {
        // A word on its own stands behind its length; "kernel_0" does not match.
        let patched = match from {
            "kernel" => patch(&bytes, "\u{6}\0\0\0kernel", "\u{6}\0\0\0kernal"),
            _ => patch(&bytes, from, to),
        };
        let error = load(patched).unwrap_err();
        assert!(error.contains(want), "{from}: {error}");
    }
}

proptest! {
    #[test]
    fn saving_and_loading_changes_nothing(g in common::graph()) {
        let bytes = g.to_file_bytes().unwrap();
        let back = load(bytes.clone()).unwrap();
        prop_assert_eq!(&back, &g);
        prop_assert_eq!(back.to_file_bytes().unwrap(), bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn damaged_files_are_read_or_refused(
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in prop::option::weighted(0.1, any::<prop::sample::Index>()),
        footer: bool,
    ) {
        let mut bytes = chain(20).to_file_bytes().unwrap();
        for (place, value) in flips {
            // Half of the time aim at the metadata, where lengths and offsets are.
            let start = if footer { bytes.len() / 2 } else { 0 };
            let at = start + place.index(bytes.len() - start);
            bytes[at] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Ok(g) = load(bytes) {
            prop_assert!(g.validate().is_ok());
        }
    }
}
