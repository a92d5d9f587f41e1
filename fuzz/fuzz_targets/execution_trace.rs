//! No bytes make the execution trace reader panic, hang or build a graph with dangling edges.
#![no_main]

use foretrain_core::Ledger;
use foretrain_ingest::execution_trace;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(read) = execution_trace::read(bytes, "fuzz.json", &mut Ledger::new()) {
        let graph = read.graph;
        let count = graph.node_count();
        assert!(graph.edges().iter().all(|e| e.src.index() < count && e.dst.index() < count));
    }
});
