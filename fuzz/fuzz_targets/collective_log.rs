//! No bytes make the reader of benchmark logs panic or hang; every row it gives has a time, and
//! what it tells of NCCL is bounded and made of numbers.
#![no_main]

use foretrain_ingest::collective_log::{self, LogOptions};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = collective_log::looks_like(bytes);
    if let Ok((log, ledger)) = collective_log::read_bytes(bytes, "fuzz.log", &LogOptions::default()) {
        for run in &log.runs {
            assert!(!run.rows.is_empty() && run.lines.0 <= run.lines.1);
            for timing in run.rows.iter().flat_map(|row| row.out_of_place.iter().chain(&row.in_place)) {
                assert!(timing.time.nanos() >= 0);
            }
        }
        let rows = log.runs.iter().map(|run| run.rows.len() as u64).sum::<u64>();
        assert_eq!(ledger.coverage("rows").map_or(0, |rows| rows.used), rows);
        let facts = &log.nccl;
        assert!(facts.graphs.len() <= 32 && facts.choices.len() <= 4096);
        for cost in &facts.costs {
            assert!(cost.latency_us.is_finite() && cost.algbw.get().is_finite());
        }
    }
});
