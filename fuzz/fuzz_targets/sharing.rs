//! Any text is a table of outcomes or a device, or an error; a device is played to its end.
#![no_main]

use foretrain_fleet::sharing::edge::{Memory, parse, simulate};
use foretrain_fleet::sharing::oracle::Table;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = Table::parse(text, 10, 0);
    let Ok(mut edge) = parse(text) else { return };
    edge.frames = edge.frames.min(50);
    let batches: Vec<u32> = edge.models.iter().map(|model| model.runs[0].batch).collect();
    if let Ok(Some(outcome)) = simulate(&edge, edge.memory(Memory::Level(0.5)), &batches) {
        assert!(outcome.served.iter().all(|one| one.processed + one.skipped == edge.frames));
    }
});
