//! Every file of the validation data is read, or refused with a reason.

#![expect(clippy::print_stdout, reason = "the table of results is the point of this test")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use foretrain_core::Nanos;
use foretrain_ingest::{FileKind, ReadOptions, read_ranks, read_trace};
use foretrain_trace::{Category, Trace};

fn data() -> Option<PathBuf> {
    let home = std::env::var_os("FORETRAIN_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    let traces = home.join("traces");
    if traces.is_dir() {
        return Some(traces);
    }
    println!("skipped: no validation data at {}", traces.display());
    None
}

fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).expect("readable data") {
        let path = entry.expect("readable data").path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

/// The invariants that any table keeps.
fn check(trace: &Trace, path: &Path) {
    let at = path.display();
    assert!(trace.duration.iter().all(|d| *d >= Nanos::ZERO), "{at}");
    assert!(trace.start.iter().all(|s| s.nanos().abs() < 366 * 86_400 * 1_000_000_000), "{at}");
    let device = |row: &usize| trace.category[*row].is_device_work();
    for row in (0..trace.len()).filter(device) {
        assert!(trace.stream[row] >= 0, "{at}: row {row} \"{}\" has no stream", trace.name_of(row));
    }
}

#[test]
fn every_file_is_read_or_refused_with_a_reason() {
    let Some(home) = data() else { return };
    let mut paths = Vec::new();
    files(&home, &mut paths);
    paths.sort();
    let mut kinds: BTreeMap<String, u32> = BTreeMap::new();
    let mut totals = [0_u64; 4];
    for path in &paths {
        let short = path.strip_prefix(&home).unwrap().display().to_string();
        let (kind, line) = match read_trace(path, &ReadOptions::default()) {
            Ok((trace, ledger)) => {
                check(&trace, path);
                let kernels =
                    trace.category.iter().filter(|c| **c == Category::Kernel).count() as u64;
                let events = ledger.coverage("events").unwrap();
                assert_eq!(ledger.count("skipped-event"), 0, "{short}");
                for (total, count) in
                    totals.iter_mut().zip([1, events.used, kernels, trace.comm_args.len() as u64])
                {
                    *total += count;
                }
                let span = trace.start.iter().zip(&trace.duration).map(|(s, d)| *s + *d).max();
                let line = format!(
                    "{:>8} events {kernels:>6} kernels {:>4} comm {:>3} tracks {:>9} span, rank {:?} of {:?}, {}",
                    trace.len(),
                    trace.comm_args.len(),
                    trace.tracks.len(),
                    span.unwrap_or_default().to_string(),
                    trace.meta.rank,
                    trace.meta.world_size,
                    trace.meta.producer,
                );
                ("trace".to_owned(), line)
            }
            Err(error) => {
                assert!(!error.message().is_empty() && !error.hints().is_empty(), "{short}");
                (error.message().to_owned(), error.message().to_owned())
            }
        };
        *kinds.entry(kind).or_default() += 1;
        println!("{short:.110}: {line}");
    }
    for (kind, count) in &kinds {
        println!("{count:>4} {kind}");
    }
    let [traces, events, kernels, comm] = totals;
    println!(
        "{} files, {traces} traces, {events} events, {kernels} kernels, {comm} with collective arguments",
        paths.len()
    );
    assert!(traces >= 80, "{traces}");
    assert!(events > 1_400_000, "{events}");
}

#[test]
fn a_job_of_eight_ranks_is_read_alike_by_any_number_of_threads() {
    let Some(home) = data() else { return };
    let pattern =
        home.join("astra-sim+astra-sim/my_test/inputs/workload/megatron-tp8/megatron_kineto_*");
    let read = |threads| {
        let options = ReadOptions { threads, ..ReadOptions::default() };
        read_ranks(std::slice::from_ref(&pattern), &options, &|_| {}).unwrap()
    };
    let (traces, ledger) = read(1);
    let ranks: Vec<_> = traces.iter().map(|trace| trace.meta.rank).collect();
    assert_eq!(ranks, (0..8).map(Some).collect::<Vec<_>>());
    assert!(traces.iter().all(|trace| trace.len() > 9_000));
    let (again, ledger_again) = read(8);
    assert_eq!(ledger, ledger_again);
    assert_eq!(format!("{traces:?}"), format!("{again:?}"));
}

#[test]
fn nothing_is_called_a_trace_that_is_none() {
    let Some(home) = data() else { return };
    for (path, want) in [
        (
            "bytedance+byteps/bytescheduler/examples/mxnet-image-classification/timeline_worker.json.gz",
            "MXNet",
        ),
        ("AMD-AGI+TraceLens/tests/rocprof/908_results.json.gz", "rocprofiler"),
        (
            "facebookresearch+HolisticTraceAnalysis/tests/data/memory_analysis/memory_timeline.raw.gz",
            "memory timeline",
        ),
        ("sarchlab+triosim/sample_trace/trace2-h100-bs128/vgg13/trace.csv", "CSV"),
    ] {
        let error = read_trace(&home.join(path), &ReadOptions::default()).unwrap_err();
        assert!(error.message().contains(want), "{error}");
    }
    let graph =
        home.join("astra-sim+astra-sim/my_test/inputs/workload/megatron-tp8/megatron_et_0.json.gz");
    let (found, _) = foretrain_ingest::discover(&[graph]).unwrap();
    assert_eq!(found[0].kind, FileKind::ExecutionTrace);
}
