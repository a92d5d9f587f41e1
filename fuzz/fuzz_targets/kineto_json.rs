//! Any bytes give a well-formed table or an error, never a panic.
#![no_main]

use foretrain_core::Nanos;
use foretrain_ingest::{ReadOptions, read_trace_bytes};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let lenient = read_trace_bytes(bytes, "rank0.json", &ReadOptions::default());
    let strict = ReadOptions { strict: true, ..ReadOptions::default() };
    let strictly = read_trace_bytes(bytes, "rank0.json", &strict);
    let Ok((trace, ledger)) = lenient else {
        assert!(strictly.is_err(), "strict reading accepts what lenient reading refuses");
        return;
    };
    let rows = trace.len();
    for length in [
        trace.category.len(),
        trace.start.len(),
        trace.duration.len(),
        trace.track.len(),
        trace.correlation.len(),
        trace.external_id.len(),
        trace.stream.len(),
        trace.device.len(),
        trace.shapes.len(),
        trace.types.len(),
    ] {
        assert_eq!(length, rows);
    }
    assert!(trace.duration.iter().all(|duration| *duration >= Nanos::ZERO));
    assert!(trace.track.iter().all(|track| track.index() < trace.tracks.len()));
    assert!(trace.comm_args.is_sorted_by_key(|args| args.row));
    assert!(trace.comm_args.iter().all(|args| (args.row as usize) < rows));
    assert!(trace.copy_args.iter().all(|args| args.bandwidth_gb_s.is_none_or(f64::is_finite)));
    let events = ledger.coverage("events").expect("coverage stands beside every table");
    assert_eq!(events.used, rows as u64);
    assert!(events.used <= events.total);
});
