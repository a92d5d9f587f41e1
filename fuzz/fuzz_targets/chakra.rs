//! No bytes make the Chakra reader panic, hang or build a graph with dangling edges.
#![no_main]

use foretrain_core::Ledger;
use foretrain_ingest::chakra;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = chakra::looks_like(bytes);
    if let Ok(read) = chakra::read(bytes, "fuzz.et", &mut Ledger::new()) {
        let graph = read.graph;
        let count = graph.node_count();
        assert!(graph.edges().iter().all(|e| e.src.index() < count && e.dst.index() < count));
    }
});
