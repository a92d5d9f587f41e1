//! Lookups over a trace: host threads with nesting, device streams, launches.

use std::collections::BTreeMap;

use foretrain_core::{Ledger, Nanos, Severity};
use rustc_hash::FxHashMap;

use crate::category::Category;
use crate::table::{Trace, TrackId};

/// No row.
pub const NO_ROW: u32 = u32::MAX;

/// How far before its own launch a kernel may start without being called another clock's: device
/// and host stamps of one machine drift by microseconds, not by milliseconds.
const CLOCK_DRIFT: Nanos = Nanos::from_millis(1);

/// One host thread.
#[derive(Clone, Debug)]
pub struct ThreadRows {
    /// Its track.
    pub track: TrackId,
    /// Rows by start, enclosing rows before the rows they enclose.
    pub rows: Vec<u32>,
}

/// One device stream.
#[derive(Clone, Debug)]
pub struct StreamRows {
    /// Device index, -1 if not recorded.
    pub device: i16,
    /// Stream number, -1 if not recorded.
    pub stream: i32,
    /// Rows by start.
    pub rows: Vec<u32>,
}

/// Lookups over one trace.
#[derive(Clone, Debug, Default)]
pub struct TraceIndex {
    /// Host threads, in order of their first event.
    pub threads: Vec<ThreadRows>,
    /// Device streams, by device and number.
    pub streams: Vec<StreamRows>,
    /// For each row, the innermost host row of the same thread that encloses it, or [`NO_ROW`].
    pub parent: Vec<u32>,
    /// For each device row, the runtime call that launched it, or [`NO_ROW`].
    pub launch: Vec<u32>,
    /// `(launching call, device row)`, sorted by call, then by start of the device row.
    launched: Vec<(u32, u32)>,
    /// For each row that `cuda_sync` describes, the row of that description.
    pub sync_of_call: FxHashMap<u32, u32>,
    /// Device rows that cannot be placed on this clock, sorted.
    pub rejected: Vec<u32>,
}

impl TraceIndex {
    /// Indexes a trace. What cannot be used is rejected with a line in the ledger.
    pub fn new(trace: &Trace, ledger: &mut Ledger) -> Self {
        let mut index = Self {
            parent: vec![NO_ROW; trace.len()],
            launch: vec![NO_ROW; trace.len()],
            ..Self::default()
        };
        index.collect_threads(trace);
        index.collect_launches(trace, ledger);
        index.collect_streams(trace);
        index
    }

    /// Whether a device row was rejected.
    pub fn is_rejected(&self, row: u32) -> bool {
        self.rejected.binary_search(&row).is_ok()
    }

    /// The thread with this track.
    pub fn thread(&self, track: TrackId) -> Option<&ThreadRows> {
        self.threads.iter().find(|thread| thread.track == track)
    }

    /// Device rows that a runtime call launched, by start.
    pub fn launched_by(&self, call: u32) -> impl Iterator<Item = u32> + '_ {
        let from = self.launched.partition_point(|&(c, _)| c < call);
        self.launched[from..].iter().take_while(move |&&(c, _)| c == call).map(|&(_, row)| row)
    }

    /// All usable device rows.
    pub fn device_rows(&self) -> impl Iterator<Item = u32> + '_ {
        self.streams.iter().flat_map(|stream| stream.rows.iter().copied())
    }

    fn collect_threads(&mut self, trace: &Trace) {
        let mut by_track: BTreeMap<TrackId, Vec<u32>> = BTreeMap::new();
        for row in 0..trace.len() {
            if trace.category[row].is_host_work() {
                by_track.entry(trace.track[row]).or_default().push(row as u32);
            }
        }
        for (track, mut rows) in by_track {
            rows.sort_by_key(|&row| {
                let row = row as usize;
                (trace.start[row], std::cmp::Reverse(trace.end(row)), row)
            });
            self.nest(trace, &rows);
            self.threads.push(ThreadRows { track, rows });
        }
        self.threads.sort_by_key(|thread| (trace.start[thread.rows[0] as usize], thread.track));
    }

    /// Finds each row's innermost enclosing row. Rows that cross instead of nesting get the
    /// innermost row that is still open at their start.
    fn nest(&mut self, trace: &Trace, rows: &[u32]) {
        let mut open: Vec<u32> = Vec::new();
        for &row in rows {
            let start = trace.start[row as usize];
            while open.last().is_some_and(|&top| trace.end(top as usize) <= start) {
                open.pop();
            }
            if let Some(&top) = open.last() {
                self.parent[row as usize] = top;
            }
            open.push(row);
        }
    }

    fn collect_launches(&mut self, trace: &Trace, ledger: &mut Ledger) {
        let mut call_of: FxHashMap<u64, u32> = FxHashMap::default();
        for row in 0..trace.len() {
            let correlation = trace.correlation[row];
            if trace.category[row] == Category::Runtime && correlation != 0 {
                call_of.entry(correlation).or_insert(row as u32);
            }
        }
        let mut answered = vec![false; trace.len()];
        let (mut paired, mut total) = (0, 0);
        for row in 0..trace.len() {
            let category = trace.category[row];
            let call = call_of.get(&trace.correlation[row]).copied();
            if category == Category::DeviceSync {
                if let Some(call) = call {
                    self.sync_of_call.insert(call, row as u32);
                }
                continue;
            }
            if !category.is_device_work() {
                continue;
            }
            total += 1;
            let Some(call) = call else { continue };
            answered[call as usize] = true;
            if self.place_on_clock(trace, row, call, ledger) {
                paired += 1;
                self.launch[row] = call;
                self.launched.push((call, row as u32));
            }
        }
        self.launched.sort_by_key(|&(call, row)| (call, trace.start[row as usize], row));
        if total > 0 {
            let silent = report_silent_launches(trace, &answered, ledger);
            let orphans = total - paired - self.rejected.len() as u64;
            ledger.record_many(
                Severity::Note,
                "kernel-without-launch",
                "device event has no launch call; placed by its stream order",
                orphans,
                None,
            );
            ledger.cover("launch pairs", paired, total + silent);
        } else {
            report_silent_graphs(trace, &answered, ledger);
        }
    }

    /// Whether a device row's stamp fits its launch; rejects it otherwise.
    fn place_on_clock(
        &mut self,
        trace: &Trace,
        row: usize,
        call: u32,
        ledger: &mut Ledger,
    ) -> bool {
        let launch_start = trace.start[call as usize];
        if trace.start[row] + CLOCK_DRIFT < launch_start {
            self.rejected.push(row as u32);
            ledger.record_at(
                Severity::Dropped,
                "kernel-before-launch",
                "device event starts before its own launch; its clock cannot be trusted",
                || format!("{} at {}", short(trace.name_of(row)), trace.start[row]),
            );
            return false;
        }
        if trace.start[row] < launch_start {
            ledger.record(
                Severity::Note,
                "kernel-start-drift",
                "device event starts a little before its launch call (clock drift)",
            );
        }
        true
    }

    fn collect_streams(&mut self, trace: &Trace) {
        let mut by_stream: BTreeMap<(i16, i32), Vec<u32>> = BTreeMap::new();
        for row in 0..trace.len() {
            if trace.category[row].is_device_work() && !self.is_rejected(row as u32) {
                let key = (trace.device[row], trace.stream[row]);
                by_stream.entry(key).or_default().push(row as u32);
            }
        }
        for ((device, stream), mut rows) in by_stream {
            rows.sort_by_key(|&row| (trace.start[row as usize], trace.end(row as usize), row));
            self.streams.push(StreamRows { device, stream, rows });
        }
    }
}

/// Counts launch calls that no device event answers.
fn report_silent_launches(trace: &Trace, answered: &[bool], ledger: &mut Ledger) -> u64 {
    let silent = (0..trace.len())
        .filter(|&row| {
            trace.category[row] == Category::Runtime
                && !answered[row]
                && is_launch_name(trace.name_of(row))
        })
        .count() as u64;
    ledger.record_many(
        Severity::Dropped,
        "launch-without-kernel",
        "launch call has no kernel record",
        silent,
        None,
    );
    report_silent_graphs(trace, answered, ledger);
    silent
}

fn report_silent_graphs(trace: &Trace, answered: &[bool], ledger: &mut Ledger) {
    let silent = (0..trace.len())
        .filter(|&row| {
            trace.category[row] == Category::Runtime
                && !answered[row]
                && is_graph_launch(trace.name_of(row))
        })
        .count() as u64;
    ledger.record_many(
        Severity::Warning,
        "graph-launch-without-kernels",
        "graph launch without kernel records, idle not measurable",
        silent,
        None,
    );
}

/// Whether a runtime call puts work on a device.
pub fn is_launch_name(name: &str) -> bool {
    let name = name.strip_prefix("cuda").or(name.strip_prefix("hip")).unwrap_or(name);
    name.contains("LaunchKernel")
        || name.contains("ModuleLaunch")
        || name.contains("GraphLaunch")
        || name.starts_with("LaunchCooperative")
        || (name.contains("Memcpy") || name.contains("Memset"))
}

/// Whether a runtime call launches a captured graph.
pub fn is_graph_launch(name: &str) -> bool {
    name.contains("GraphLaunch")
}

/// The first 60 characters of a name.
pub(crate) fn short(name: &str) -> String {
    let mut text: String = name.chars().take(60).collect();
    if text.len() < name.len() {
        text.push('…');
    }
    text
}
