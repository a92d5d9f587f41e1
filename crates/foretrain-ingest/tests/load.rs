//! Inputs of every kind through the one loader.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{document, gzip, op};
use foretrain_core::{Bytes, InputError, Ledger, Nanos};
use foretrain_ingest::{FileKind, GraphFile, Loaded, ReadOptions, load};
use foretrain_testkit::chakra::{Node, file, node, sample};
use foretrain_testkit::execution_trace::{FIVE, new_style, old_style};

fn write(directory: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = directory.join(name);
    fs::write(&path, bytes).expect("can write");
    path
}

fn load_all(inputs: &[PathBuf], options: &ReadOptions) -> Result<(Loaded, Ledger), InputError> {
    load(inputs, options, &|_| {})
}

fn graphs(inputs: &[PathBuf]) -> (Vec<GraphFile>, Ledger) {
    match load_all(inputs, &ReadOptions::default()).expect("loads") {
        (Loaded::Graphs(graphs), ledger) => (graphs, ledger),
        (Loaded::Traces(_), _) => panic!("graphs expected"),
    }
}

fn ranks(graphs: &[GraphFile]) -> Vec<u32> {
    graphs.iter().map(|file| file.graph.meta.rank).collect()
}

#[test]
fn execution_traces_of_every_schema_are_told_by_their_content() {
    let home = tempfile::tempdir().unwrap();
    // The operation in them names rank 1 of group [0, 1], which outranks the file's name.
    for text in [old_style("1.0.1", &FIVE), new_style("1.1.1-chakra.0.0.4", &FIVE, "")] {
        let path = write(home.path(), "rank7.et", &gzip(text.as_bytes()));
        let (found, _) = graphs(&[path]);
        assert_eq!((ranks(&found), found[0].graph.meta.world_size), (vec![1], 2));
        assert_eq!(found[0].kind, FileKind::ExecutionTrace);
        assert!(text.contains(found[0].schema.as_deref().unwrap()));
        assert_eq!(found[0].rank_source, "stated in the file");
    }
}

#[test]
fn chakra_ranks_come_from_the_names_of_the_format() {
    let home = tempfile::tempdir().unwrap();
    for rank in [2, 0, 11] {
        write(home.path(), &format!("run.{rank}.et"), &file("0.0.4", &sample()));
    }
    let (found, ledger) = graphs(&[home.path().to_path_buf()]);
    assert_eq!(ranks(&found), [0, 2, 11]);
    assert!(found.iter().all(|file| file.graph.meta.world_size == 12));
    assert_eq!((ledger.count("rank-from-name"), found[0].rank_source.as_str()), (3, "file name"));

    let only = ReadOptions { ranks: Some(vec![2]), ..ReadOptions::default() };
    let Loaded::Graphs(two) = load_all(&[home.path().into()], &only).unwrap().0 else { panic!() };
    assert_eq!(ranks(&two), [2]);

    write(home.path(), "nameless.et", &file("0.0.4", &sample()));
    let error = load_all(&[home.path().into()], &ReadOptions::default()).unwrap_err();
    assert!(error.message().contains("cannot tell which rank"), "{error}");
}

#[test]
fn a_saved_graph_is_what_it_was() {
    let home = tempfile::tempdir().unwrap();
    let (first, _) = graphs(&[write(home.path(), "run.3.et", &file("0.0.4", &sample()))]);
    let saved = home.path().join("no-ending");
    first[0].graph.save(&saved).unwrap();
    let (again, _) = graphs(std::slice::from_ref(&saved));
    assert_eq!((again[0].graph == first[0].graph, ranks(&again)), (true, vec![3]));
    assert_eq!(again[0].kind, FileKind::StepGraph);

    let wanted = ReadOptions { ranks: Some(vec![4]), ..ReadOptions::default() };
    let error = load_all(&[saved], &wanted).unwrap_err();
    assert_eq!(error.hints(), ["ranks found: 3"]);
}

#[test]
fn profiler_traces_win_over_graphs_that_lie_beside_them() {
    let home = tempfile::tempdir().unwrap();
    let timeline = write(home.path(), "rank0.json", &document(&[op("a", 1, 1)]));
    let graph = write(home.path(), "et.json", old_style("1.0.1", &FIVE).as_bytes());
    let pattern = home.path().join("*.json");
    for inputs in [vec![home.path().into()], vec![pattern], vec![timeline.clone()]] {
        let (loaded, ledger) = load_all(&inputs, &ReadOptions::default()).unwrap();
        assert!(matches!(loaded, Loaded::Traces(traces) if traces.len() == 1));
        assert_eq!(ledger.count("graph-file"), u64::from(inputs[0] != timeline));
    }
    let chakra = write(home.path(), "x.0.et", &file("0.0.4", &sample()));
    for (inputs, kinds) in [
        ([timeline, graph.clone()], ["a PyTorch profiler trace", "a PyTorch execution trace"]),
        ([graph, chakra], ["a PyTorch execution trace", "a Chakra execution trace"]),
    ] {
        let error = load_all(&inputs, &ReadOptions::default()).unwrap_err();
        for part in
            kinds.iter().map(ToString::to_string).chain(inputs.map(|p| p.display().to_string()))
        {
            assert!(error.message().contains(&part), "{error}");
        }
    }
}

#[test]
fn limits_and_strictness_hold_for_graphs_too() {
    let home = tempfile::tempdir().unwrap();
    let bytes = file("0.0.4", &sample());
    let cut = write(home.path(), "cut.0.et", &bytes[..bytes.len() - 5]);
    assert_eq!(graphs(std::slice::from_ref(&cut)).1.count("truncated-file"), 1);
    let refused =
        |options: ReadOptions| load_all(std::slice::from_ref(&cut), &options).unwrap_err();
    let strict = refused(ReadOptions { strict: true, ..ReadOptions::default() });
    assert!(strict.message().contains("ends early"), "{strict}");
    assert!(strict.place().is_some_and(|place| place.contains("byte ")), "{strict}");
    let capped =
        refused(ReadOptions { memory_cap: Some(Bytes::new(99)), ..ReadOptions::default() });
    assert!(capped.message().contains("memory cap"), "{capped}");
    let window = Some((Nanos::ZERO, Nanos::from_millis(1)));
    let windowed = refused(ReadOptions { window, ..ReadOptions::default() });
    assert!(windowed.message().contains("no timeline"), "{windowed}");

    // A packed file that breaks off gives what came before.
    let nodes: Vec<Node> = (0..4000).map(|id| node(id, &format!("op {id}"), 4, &[])).collect();
    let packed = gzip(&file("0.0.4", &nodes));
    let path = write(home.path(), "broken.0.et.gz", &packed[..packed.len() / 2]);
    let (found, ledger) = graphs(&[path]);
    assert!(found[0].graph.node_count() > 0);
    assert_eq!(ledger.count("damaged-packing"), 1);

    // 64 MiB of nothing in a few kilobytes.
    let mut bomb = file("0.0.4", &sample());
    bomb.resize(64 << 20, 0);
    let packed = zstd::encode_all(&bomb[..], 1).unwrap();
    let path = write(home.path(), "bomb.0.et.zst", &packed);
    let error = load_all(&[path], &ReadOptions::default()).unwrap_err();
    assert!(error.message().contains("unpacks to more than"), "{error}");
}

#[test]
fn nothing_to_read_is_explained() {
    let home = tempfile::tempdir().unwrap();
    let refused = |input: PathBuf| load_all(&[input], &ReadOptions::default()).unwrap_err();
    let empty = refused(home.path().into());
    assert!(empty.message().ends_with("no files there"), "{empty}");
    write(home.path(), "package.json", b"{\"name\": \"left-pad\"}");
    let other = refused(home.path().into());
    assert!(other.hints()[0].contains("the only file is no trace"), "{other:?}");
    assert!(other.hints()[0].contains("package.json (JSON without"), "{other:?}");
    let missing = refused(home.path().join("nowhere.et"));
    assert_eq!(missing.message(), "no such file or directory");
    assert!(missing.path().is_some_and(|path| path.ends_with("nowhere.et")));
}

#[test]
fn an_empty_profiler_trace_is_one() {
    let home = tempfile::tempdir().unwrap();
    let path = write(home.path(), "empty.json", b"{\"traceEvents\": []}");
    let (loaded, ledger) = load_all(&[path], &ReadOptions::default()).unwrap();
    assert!(matches!(loaded, Loaded::Traces(traces) if traces[0].is_empty()));
    assert_eq!(ledger.count("no-events"), 1);
}

#[test]
fn repetitions_ask_for_no_memory() {
    let home = tempfile::tempdir().unwrap();
    let mut repeated = file("0.0.4", &sample());
    repeated.resize(repeated.len() + 1_000_000, 0);
    let path = write(home.path(), "repeated.0.et", &repeated);
    let (found, ledger) = graphs(&[path]);
    // An empty message is a node with id 0, which the sample has.
    assert_eq!((found[0].graph.node_count(), ledger.count("repeated-id")), (7, 1_000_000));
}
