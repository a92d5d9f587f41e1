//! No bytes make the execution trace reader panic, hang or build a graph with dangling edges.
#![no_main]

use foretrain_core::Ledger;
use foretrain_ingest::execution_trace;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = execution_trace::looks_like(bytes);
    if let Ok(graph) = execution_trace::read(bytes, "fuzz.json", &mut Ledger::new()) {
        let count = graph.node_count();
        assert!(graph.edges().iter().all(|e| e.src.index() < count && e.dst.index() < count));
    }
});
