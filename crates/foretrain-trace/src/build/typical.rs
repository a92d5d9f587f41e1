//! Typical latencies of one trace, used where a constraint exists but did not bind.

use foretrain_core::Nanos;
use foretrain_core::stats::quantile;

use crate::index::{NO_ROW, TraceIndex};
use crate::table::Trace;

/// CUDA's default number of launches that may wait for the device (recalled; the trace's own
/// figure replaces it when the queue was ever full).
pub const DEFAULT_QUEUE_CAPACITY: u32 = 1024;

/// Typical latencies and limits of one trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Typical {
    /// From the start of a launch call to the start of its kernel on an idle stream.
    pub launch_latency: Nanos,
    /// From the end of a kernel to the start of the next one that was already queued.
    pub stream_gap: Nanos,
    /// A launch call that does not block.
    pub launch_call: Nanos,
    /// Launches that may be queued before a launch call blocks.
    pub queue_capacity: u32,
    /// Whether the queue was seen full, so the capacity is measured.
    pub queue_was_full: bool,
}

impl Typical {
    /// Measures a trace.
    pub fn measure(trace: &Trace, index: &TraceIndex) -> Self {
        let (mut latencies, mut gaps, mut calls) = (Vec::new(), Vec::new(), Vec::new());
        for stream in &index.streams {
            let mut previous_end = Nanos::MIN;
            for &row in &stream.rows {
                let launch = index.launch[row as usize];
                let start = trace.start[row as usize];
                if launch != NO_ROW {
                    let launched = trace.start[launch as usize];
                    calls.push(trace.duration[launch as usize].nanos() as f64);
                    if previous_end <= launched && start >= launched {
                        latencies.push((start - launched).nanos() as f64);
                    } else if previous_end > launched + Nanos::from_micros(20) {
                        gaps.push((start - previous_end).clamp_positive().nanos() as f64);
                    }
                }
                previous_end = previous_end.max(trace.end(row as usize));
            }
        }
        let pick = |values: &[f64], q: f64, default: i64| {
            Nanos::from_nanos_f64(quantile(values, q).unwrap_or(default as f64))
        };
        let launch_call = pick(&calls, 0.5, 5_000);
        let (queue_capacity, queue_was_full) = queue_capacity(trace, index, launch_call);
        Self {
            launch_latency: pick(&latencies, 0.25, 6_000),
            stream_gap: pick(&gaps, 0.25, 1_000),
            launch_call,
            queue_capacity,
            queue_was_full,
        }
    }
}

/// How many launches were queued on the device whenever a launch call blocked, if that is one
/// consistent large number; the default otherwise.
fn queue_capacity(trace: &Trace, index: &TraceIndex, launch_call: Nanos) -> (u32, bool) {
    let depths = queue_depths(trace, index);
    let blocked: Vec<f64> = depths
        .iter()
        .filter(|&&(call, depth)| {
            depth > 128 && trace.duration[call as usize] > launch_call.scale(10.0)
        })
        .map(|&(_, depth)| f64::from(depth))
        .collect();
    let deepest = depths.iter().map(|&(_, depth)| depth).max().unwrap_or(0);
    match quantile(&blocked, 0.5) {
        // Blocked at the same depth again and again, which is also the deepest ever seen.
        Some(depth) if blocked.len() >= 8 && depth >= 0.97 * f64::from(deepest) => {
            (depth as u32, true)
        }
        _ => (DEFAULT_QUEUE_CAPACITY.max(deepest), false),
    }
}

/// For each launch call, by time: how many device events launched earlier had not yet
/// started when it returned.
pub(super) fn queue_depths(trace: &Trace, index: &TraceIndex) -> Vec<(u32, u32)> {
    let mut launches: Vec<(Nanos, u32)> = Vec::new();
    let mut starts: Vec<Nanos> = Vec::new();
    for row in index.device_rows() {
        let launch = index.launch[row as usize];
        if launch != NO_ROW {
            launches.push((trace.end(launch as usize), launch));
            starts.push(trace.start[row as usize]);
        }
    }
    launches.sort_unstable();
    starts.sort_unstable();
    let mut started = 0;
    launches
        .iter()
        .enumerate()
        .map(|(launched, &(returned, call))| {
            while started < starts.len() && starts[started] <= returned {
                started += 1;
            }
            (call, (launched + 1).saturating_sub(started) as u32)
        })
        .collect()
}
