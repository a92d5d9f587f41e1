//! No bytes make the reader of benchmark logs panic or hang, and every row it gives has a time.
#![no_main]

use foretrain_ingest::collective_log::{self, LogOptions};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = collective_log::looks_like(bytes);
    if let Ok((log, _)) = collective_log::read_bytes(bytes, "fuzz.log", &LogOptions::default()) {
        for run in &log.runs {
            assert!(!run.rows.is_empty() && run.lines.0 <= run.lines.1);
            for timing in run.rows.iter().flat_map(|row| row.out_of_place.iter().chain(&row.in_place)) {
                assert!(timing.time.nanos() >= 0);
            }
        }
    }
});
