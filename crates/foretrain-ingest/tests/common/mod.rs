//! Builders of small traces.
#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(clippy::allow_attributes, reason = "an expectation would fail where all is used")]

use std::io::Write;

use foretrain_core::Ledger;
use foretrain_ingest::{ReadOptions, read_trace_bytes};
use foretrain_trace::Trace;

/// A complete event on a host thread.
pub(crate) fn op(name: &str, ts: impl std::fmt::Display, dur: impl std::fmt::Display) -> String {
    format!(
        r#"{{"ph":"X","cat":"cpu_op","name":"{name}","pid":9,"tid":9,"ts":{ts},"dur":{dur},"args":{{}}}}"#
    )
}

/// A kernel on stream 7 of device 0.
pub(crate) fn kernel(
    name: &str,
    ts: impl std::fmt::Display,
    dur: impl std::fmt::Display,
    args: &str,
) -> String {
    format!(
        r#"{{"ph":"X","cat":"kernel","name":"{name}","pid":0,"tid":7,"ts":{ts},"dur":{dur},"args":{{"device":0,"stream":7{args}}}}}"#
    )
}

/// A document around events.
pub(crate) fn document(events: &[String]) -> Vec<u8> {
    format!("{{\"schemaVersion\":1,\"traceEvents\":[\n{}\n]}}", events.join(",\n")).into_bytes()
}

/// Reads a document that must load.
pub(crate) fn read(bytes: &[u8]) -> (Trace, Ledger) {
    read_trace_bytes(bytes, "trace.json", &ReadOptions::default()).expect("loads")
}

/// Packs bytes as gzip.
pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(bytes).expect("packs");
    packer.finish().expect("packs")
}

/// Starts and durations in nanoseconds since the producer's epoch.
pub(crate) fn times(trace: &Trace) -> Vec<(i64, i64)> {
    let base = trace.meta.base_nanos;
    let rows = trace.start.iter().zip(&trace.duration);
    rows.map(|(start, duration)| (start.nanos() + base, duration.nanos())).collect()
}
