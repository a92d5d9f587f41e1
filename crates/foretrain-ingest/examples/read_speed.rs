//! Reads profiler traces and prints events, bytes, CPU time and peak memory (Linux).
//!
//! `cargo run --release -p foretrain-ingest --example read_speed -- TRACE...`

use std::path::PathBuf;

use foretrain_core::InputError;
use foretrain_ingest::{ReadOptions, read_ranks};

#[expect(clippy::print_stdout, reason = "prints its measurement")]
fn main() -> Result<(), InputError> {
    let threads = std::env::var("THREADS").ok().and_then(|t| t.parse().ok()).unwrap_or(1);
    let inputs: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let options = ReadOptions { threads, ..ReadOptions::default() };
    let started = std::time::Instant::now();
    let (traces, _) = read_ranks(&inputs, &options, &|_| {})?;
    let wall = started.elapsed().as_secs_f64();
    let events: usize = traces.iter().map(foretrain_trace::Trace::len).sum();
    let (cpu, peak) = usage();
    println!(
        "{} ranks, {events} duration events, wall {wall:.2} s, CPU {cpu:.2} s, peak RSS {peak:.0} MB",
        traces.len()
    );
    println!("{:.0} duration events per CPU-second", events as f64 / cpu);
    Ok(())
}

/// CPU seconds (user and system) and peak resident megabytes of this process.
fn usage() -> (f64, f64) {
    let read = |file: &str| std::fs::read_to_string(file).unwrap_or_default();
    let stat = read("/proc/self/stat");
    // Fields after the parenthesised name; utime and stime are the 12th and 13th, in ticks.
    let fields: Vec<&str> =
        stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |i: usize| fields.get(i).and_then(|t| t.parse::<f64>().ok()).unwrap_or(0.0);
    let status = read("/proc/self/status");
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok())
        .unwrap_or(0.0);
    ((ticks(11) + ticks(12)) / 100.0, peak / 1024.0)
}
