//! Loads the file of a graph of a million nodes again and again and prints the CPU time of each
//! load (Linux): on a busy machine the clock on the wall tells little.
//!
//! `cargo run --release -p foretrain-graph --example load_speed -- TIMES`

#[path = "../benches/large/mod.rs"]
mod large;

use foretrain_core::InputError;
use foretrain_graph::{Limits, StepGraph};

#[expect(clippy::print_stdout, reason = "prints its measurement")]
fn main() -> Result<(), InputError> {
    let times = std::env::args().nth(1).and_then(|times| times.parse().ok()).unwrap_or(10);
    let file = large::large().to_file_bytes()?;
    for _ in 0..times {
        let bytes = file.clone();
        let before = cpu_ticks();
        let graph = StepGraph::from_file_bytes(bytes, &Limits::default())?;
        let ticks = cpu_ticks() - before;
        println!("{} nodes in {} ms CPU", graph.node_count(), ticks * 10);
    }
    Ok(())
}

/// User and system time of this process in hundredths of a second.
fn cpu_ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    // Fields after the parenthesised name; utime and stime are the 12th and 13th.
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum()
}
