//! Directories, patterns, ranks, threads and limits.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use common::{document, gzip, kernel, op};
use foretrain_core::{Bytes, InputError, Ledger};
use foretrain_ingest::{Cancel, FileKind, ReadOptions, discover, read_ranks, read_trace};
use foretrain_trace::Trace;

fn trace_of(seed: usize, events: usize) -> Vec<u8> {
    let rows: Vec<String> = (0..events)
        .map(|i| match i % 2 {
            0 => op(&format!("op{}", i % 7 + seed), 100 + i * 10, 5),
            _ => kernel(
                &format!("k{}", i % 5),
                103 + i * 10,
                "6.25",
                &format!(",\"correlation\":{i}"),
            ),
        })
        .collect();
    document(&rows)
}

fn write(directory: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = directory.join(name);
    fs::create_dir_all(path.parent().expect("has a parent")).expect("can create");
    fs::write(&path, bytes).expect("can write");
    path
}

fn ranks(path: &Path, options: &ReadOptions) -> Result<(Vec<Trace>, Ledger), InputError> {
    read_ranks(&[path.to_path_buf()], options, &|_| {})
}

#[test]
fn a_lone_trace_is_rank_0_of_1_and_other_json_is_passed_over() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), "run.json", &trace_of(0, 3));
    write(home.path(), "package.json", b"{\"name\":\"left-pad\"}");
    let (traces, ledger) = ranks(home.path(), &ReadOptions::default()).unwrap();
    let meta = &traces[0].meta;
    assert_eq!((traces.len(), meta.rank, meta.world_size), (1, Some(0), Some(1)));
    assert_eq!(meta.rank_source, "assumed: only file");
    assert_eq!((ledger.count("rank-assumed"), ledger.count("ignored-file")), (1, 1));
    assert!(ledger.get("ignored-file").unwrap().places[0].contains("package.json"));
}

#[test]
fn ranks_come_from_names_and_must_differ() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), "b/rank0.json.gz", &gzip(&trace_of(0, 4)));
    write(home.path(), "rank1.json", &trace_of(1, 4));
    write(home.path(), "rank10.json.zst", &zstd::encode_all(&trace_of(2, 4)[..], 1).unwrap());
    let (traces, ledger) = ranks(home.path(), &ReadOptions::default()).unwrap();
    let found: Vec<_> = traces.iter().map(|trace| trace.meta.rank).collect();
    assert_eq!(found, [Some(0), Some(1), Some(10)]);
    assert_eq!(ledger.count("rank-from-name"), 3);

    let pattern = home.path().join("rank*.json*");
    let (traces, _) = ranks(&pattern, &ReadOptions::default()).unwrap();
    assert_eq!(traces.len(), 2);
    let only = ReadOptions { ranks: Some(vec![1]), ..ReadOptions::default() };
    assert_eq!(ranks(home.path(), &only).unwrap().0.len(), 1);

    write(home.path(), "copy/rank1.json", &trace_of(1, 4));
    let error = ranks(home.path(), &ReadOptions::default()).unwrap_err().to_string();
    assert!(error.contains("rank 1") && error.contains("copy/rank1.json"), "{error}");
    assert_eq!(error.matches("rank1.json").count(), 2, "both paths are named: {error}");
}

#[test]
fn numbers_at_the_end_count_only_beside_their_siblings() {
    let home = tempfile::tempdir().unwrap();
    let first = write(home.path(), "kineto_4.json", &trace_of(0, 2));
    assert_eq!(read_trace(&first, &ReadOptions::default()).unwrap().0.meta.rank, Some(0));
    write(home.path(), "kineto_5.json", &trace_of(0, 2));
    let (traces, _) = ranks(home.path(), &ReadOptions::default()).unwrap();
    assert_eq!(traces.iter().map(|t| t.meta.rank).collect::<Vec<_>>(), [Some(4), Some(5)]);

    let other = tempfile::tempdir().unwrap();
    for pid in [7101, 7102] {
        let name = format!("host_{pid}.1700560457683344186.pt.trace.json");
        write(other.path(), &name, &trace_of(0, 2));
    }
    let error = ranks(other.path(), &ReadOptions::default()).unwrap_err();
    assert!(error.message().contains("cannot tell which rank"), "process ids are no ranks");
}

#[test]
fn what_the_document_states_outranks_the_name() {
    let home = tempfile::tempdir().unwrap();
    let text = format!(
        "{{\"traceEvents\":[{}],\"distributedInfo\":{{\"rank\":3,\"world_size\":4}}}}",
        op("a", 1, 1)
    );
    let path = write(home.path(), "rank0.json", text.as_bytes());
    let (trace, _) = read_trace(&path, &ReadOptions::default()).unwrap();
    assert_eq!((trace.meta.rank, trace.meta.world_size), (Some(3), Some(4)));
}

#[test]
fn threads_do_not_change_the_result() {
    let home = tempfile::tempdir().unwrap();
    for rank in 0..5 {
        let mut text = trace_of(rank, 4000 + rank * 100);
        text[9_000 * (rank + 1)] = 1;
        write(home.path(), &format!("rank{rank}.json.gz"), &gzip(&text));
    }
    let read = |threads| {
        let options = ReadOptions { threads, ..ReadOptions::default() };
        let (traces, ledger) = ranks(home.path(), &options).unwrap();
        (format!("{traces:?}"), ledger)
    };
    let one = read(1);
    assert_eq!(one, read(8));
    assert!(!one.1.is_empty());
}

#[test]
fn the_memory_cap_is_for_all_ranks_together_and_says_what_to_do() {
    let home = tempfile::tempdir().unwrap();
    for rank in 0..4 {
        write(home.path(), &format!("rank{rank}.json"), &trace_of(rank, 5_000));
    }
    let read = |cap, threads| {
        let memory_cap = Some(Bytes::from_kib(cap));
        ranks(home.path(), &ReadOptions { memory_cap, threads, ..ReadOptions::default() })
    };
    for threads in [1, 4] {
        assert!(read(8 << 10, threads).is_ok());
        let error = read(900, threads).unwrap_err();
        assert!(error.message().contains("memory cap of 900.0 KiB"), "{error}");
        assert!(!error.hints().is_empty());
    }
}

#[test]
fn reading_tells_how_far_it_is_and_can_be_stopped() {
    let home = tempfile::tempdir().unwrap();
    let path = write(home.path(), "rank0.json", &trace_of(0, 40_000));
    let size = fs::metadata(&path).unwrap().len();
    let (most, cancel) = (AtomicU64::new(0), Cancel::default());
    let options = ReadOptions { cancel: cancel.clone(), ..ReadOptions::default() };
    let names = Mutex::new(Vec::new());
    let watch = |progress: foretrain_ingest::Progress<'_>| {
        assert!(progress.read_bytes <= progress.total_bytes);
        most.fetch_max(progress.read_bytes, Ordering::Relaxed);
        names.lock().unwrap().push(progress.path.to_path_buf());
    };
    read_ranks(std::slice::from_ref(&path), &options, &watch).unwrap();
    assert_eq!(most.load(Ordering::Relaxed), size);
    assert!(names.lock().unwrap().len() > 3, "once per block");

    let stop = |_: foretrain_ingest::Progress<'_>| cancel.cancel();
    let error = read_ranks(&[path], &options, &stop).unwrap_err();
    assert_eq!(error.message(), "reading was cancelled");
}

#[test]
fn named_files_must_be_traces() {
    let home = tempfile::tempdir().unwrap();
    let bad = write(home.path(), "notes.json", b"{\"a\":1}");
    let error = discover(std::slice::from_ref(&bad)).unwrap_err();
    assert_eq!(error.path(), Some(bad.as_path()));
    for (missing, want) in
        [("nothing.json", "no such file"), ("*.trace", "no file matches"), ("", "no traces found")]
    {
        let error = discover(&[home.path().join(missing)]).unwrap_err();
        assert!(error.message().contains(want), "{error}");
        assert!(!error.hints().is_empty());
    }
    let graph = write(home.path(), "et.json", b"{\"schema\":\"1.0.1\",\"nodes\":[]}");
    assert_eq!(discover(std::slice::from_ref(&graph)).unwrap().0[0].kind, FileKind::ExecutionTrace);
    let error = ranks(&graph, &ReadOptions::default()).unwrap_err();
    assert!(error.message().contains("only execution traces"), "{error}");
    assert_eq!(error.path(), Some(graph.as_path()));
}
