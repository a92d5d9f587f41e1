//! Traces handed on one by one: the same answer however many are in memory at once.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use common::{document, op};
use foretrain_core::{Bytes, InputError, Ledger};
use foretrain_ingest::{Hold, Loaded, Progress, ReadOptions, load, load_each};
use foretrain_trace::Trace;

/// What `take` is said to need, in tables.
const FACTOR: u64 = 3;

fn write_rank(directory: &Path, rank: usize, events: usize, padding: usize) -> PathBuf {
    let rows: Vec<String> =
        (0..events).map(|i| op(&format!("op{}", i % 9 + rank), i * 10, 5)).collect();
    let mut text = document(&rows);
    text.extend(std::iter::repeat_n(b' ', padding));
    let path = directory.join(format!("rank{rank}.json"));
    fs::write(&path, text).expect("can write");
    path
}

fn options(threads: usize, memory_cap: Option<u64>) -> ReadOptions {
    ReadOptions { threads, memory_cap: memory_cap.map(Bytes::new), ..ReadOptions::default() }
}

fn all(path: &Path) -> (Vec<Trace>, Ledger) {
    match load(&[path.to_path_buf()], &ReadOptions::default(), &|_| {}).expect("loads") {
        (Loaded::Traces(traces), ledger) => (traces, ledger),
        (Loaded::Graphs(_), _) => panic!("traces expected"),
    }
}

fn each<T: Send>(
    path: &Path,
    options: &ReadOptions,
    take: &(dyn Fn(Trace, Hold<'_>) -> Result<T, InputError> + Sync),
) -> Result<(Vec<T>, Ledger), InputError> {
    match load_each(&[path.to_path_buf()], options, &|_| {}, FACTOR, take)? {
        (Loaded::Traces(taken), ledger) => Ok((taken, ledger)),
        (Loaded::Graphs(_), _) => panic!("traces expected"),
    }
}

/// Room for one rank of these, not for two.
fn room_for_one(traces: &[Trace]) -> u64 {
    let largest = traces.iter().map(Trace::heap_bytes).max().expect("traces");
    largest * FACTOR * 3 / 2
}

#[test]
fn neither_threads_nor_the_cap_change_the_result() {
    let home = tempfile::tempdir().unwrap();
    for rank in 0..6 {
        write_rank(home.path(), rank, 3_000 + rank * 50, 0);
    }
    let (traces, ledger) = all(home.path());
    let expected = format!("{traces:?}");
    for threads in [1, 4] {
        for cap in [None, Some(room_for_one(&traces)), Some(2 * room_for_one(&traces))] {
            let (inside, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let take = |trace: Trace, _: Hold<'_>| {
                most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                thread::sleep(Duration::from_millis(20));
                inside.fetch_sub(1, Ordering::SeqCst);
                Ok(trace)
            };
            let taken = each(home.path(), &options(threads, cap), &take).unwrap();
            assert_eq!(format!("{:?}", taken.0), expected, "{threads} threads, cap {cap:?}");
            assert_eq!(taken.1, ledger);
            let alone = threads == 1 || cap == Some(room_for_one(&traces));
            assert_eq!(most.into_inner() == 1, alone, "{threads} threads, cap {cap:?}");
        }
    }
}

#[test]
fn a_rank_that_outgrows_its_place_is_done_again_alone() {
    let home = tempfile::tempdir().unwrap();
    // The first file promises little memory per byte, which the others then exceed.
    write_rank(home.path(), 0, 2_000, 4_000_000);
    for rank in 1..5 {
        write_rank(home.path(), rank, 4_000, 0);
    }
    let (traces, ledger) = all(home.path());
    let cap = room_for_one(&traces);
    let blocks = |options: &ReadOptions| {
        let blocks = AtomicUsize::new(0);
        let progress = |_: Progress<'_>| _ = blocks.fetch_add(1, Ordering::SeqCst);
        let take = |trace: Trace, hold: Hold<'_>| {
            hold(Bytes::new(trace.heap_bytes() * (FACTOR + 1)))?;
            thread::sleep(Duration::from_millis(50));
            Ok(trace)
        };
        let inputs = [home.path().to_path_buf()];
        let loaded = load_each(&inputs, options, &progress, FACTOR, &take).unwrap();
        let (Loaded::Traces(taken), found) = loaded else { panic!("traces expected") };
        assert_eq!(format!("{taken:?}"), format!("{traces:?}"));
        assert_eq!(found, ledger, "nothing is reported twice");
        blocks.into_inner()
    };
    assert!(blocks(&options(4, Some(cap))) > blocks(&options(4, None)), "some were begun twice");
}

#[test]
fn a_rank_that_does_not_fit_alone_is_refused_whatever_the_others_do() {
    let home = tempfile::tempdir().unwrap();
    for (rank, events) in [2_000, 2_000, 9_000, 2_000, 9_000].into_iter().enumerate() {
        write_rank(home.path(), rank, events, 0);
    }
    let (traces, _) = all(home.path());
    let cap = traces[2].heap_bytes() * (FACTOR - 1);
    let refused = |threads, take: &(dyn Fn(Trace, Hold<'_>) -> Result<(), InputError> + Sync)| {
        let error = each(home.path(), &options(threads, Some(cap)), take).unwrap_err();
        assert!(error.message().contains("memory cap"), "{error}");
        assert!(!error.hints().is_empty());
        error.path().unwrap().file_name().unwrap().to_owned()
    };
    for threads in [1, 4] {
        assert_eq!(refused(threads, &|_, _| Ok(())), "rank2.json");
        let greedy = |_: Trace, hold: Hold<'_>| hold(Bytes::new(cap + 1));
        assert_eq!(refused(threads, &greedy), "rank0.json");
    }
}

#[test]
fn the_first_failure_in_order_is_told_and_ends_the_work() {
    let home = tempfile::tempdir().unwrap();
    for rank in 0..8 {
        write_rank(home.path(), rank, 50, 0);
    }
    for threads in [1, 4] {
        let taken = AtomicUsize::new(0);
        let take = |trace: Trace, _: Hold<'_>| match trace.meta.rank {
            Some(rank @ (1 | 6)) => Err(InputError::new(format!("no rank {rank}"))),
            _ => Ok(taken.fetch_add(1, Ordering::SeqCst)),
        };
        let error = each(home.path(), &options(threads, None), &take).unwrap_err();
        assert_eq!(error.message(), "no rank 1");
        assert!(threads > 1 || taken.into_inner() == 1, "nothing is begun after a failure");
    }
}
