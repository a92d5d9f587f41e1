//! Launches of device events that carry no correlation id: from arrows, else from the order of
//! launches under the same external id.

use std::collections::BTreeMap;

use foretrain_core::{Ledger, Severity};
use foretrain_trace::{Category, Trace, TrackId};
use rustc_hash::FxHashMap;

use super::flows::{Flows, LaunchEnd};

/// Marks ids made up here, so that they never meet a recorded one.
const MADE_UP: u64 = 1 << 63;

/// Fills in correlation ids of device rows that have none, and of the rows that launched them.
pub(super) fn recover(trace: &mut Trace, flows: &mut Flows, ledger: &mut Ledger) {
    let lacking = |trace: &Trace| -> Vec<usize> {
        let lacks =
            |&row: &usize| trace.category[row].is_device_work() && trace.correlation[row] == 0;
        (0..trace.len()).filter(lacks).collect()
    };
    let before = lacking(trace);
    let mut launches = std::mem::take(&mut flows.launches);
    if before.is_empty() {
        return;
    }
    let mut next_id = MADE_UP;
    // Arrows between the driver and the device come before those from operators.
    launches.sort_by_key(|end| end.kind);
    let by_arrow = from_arrows(trace, &launches, &mut next_id);
    record(
        ledger,
        "correlation-from-flow",
        "launch of a device event taken from an arrow",
        by_arrow,
    );
    let by_order = from_external_ids(trace, &lacking(trace), &mut next_id);
    record(
        ledger,
        "correlation-from-external-id",
        "launch of a device event taken from the order of launches under its operator",
        by_order,
    );
    let left = before.len() as u64 - by_arrow - by_order;
    ledger.record_many(
        Severity::Warning,
        "no-correlation",
        "device event whose launch is not known",
        left,
        None,
    );
}

fn record(ledger: &mut Ledger, code: &str, message: &str, count: u64) {
    ledger.record_many(Severity::Inferred, code, message, count, None);
}

/// Rows by track and start. Of rows that start together the last one is the innermost.
struct Places(BTreeMap<(TrackId, i64), u32>);

impl Places {
    fn of(trace: &Trace, wanted: impl Fn(Category) -> bool) -> Self {
        let rows = (0..trace.len()).filter(|&row| wanted(trace.category[row]));
        Self(rows.map(|row| ((trace.track[row], trace.start[row].nanos()), row as u32)).collect())
    }

    /// The row that starts at a time on a track, else the nearest earlier one that spans it.
    fn at(&self, trace: &Trace, track: TrackId, at: i64) -> Option<usize> {
        let (_, &row) = self.0.range((track, i64::MIN)..=(track, at)).next_back()?;
        (trace.end(row as usize).nanos() >= at).then_some(row as usize)
    }
}

/// Pairs the ends of arrows. Gives how many device rows got an id.
fn from_arrows(trace: &mut Trace, ends: &[LaunchEnd], next_id: &mut u64) -> u64 {
    if ends.is_empty() {
        return 0;
    }
    let hosts = Places::of(trace, |category| !category.is_device_work());
    let devices = Places::of(trace, Category::is_device_work);
    let mut starts: FxHashMap<(u8, u64), &LaunchEnd> = FxHashMap::default();
    for end in ends.iter().filter(|end| end.is_start) {
        starts.entry((end.kind, end.id)).or_insert(end);
    }
    let mut found = 0;
    for end in ends.iter().filter(|end| !end.is_start) {
        let Some(start) = starts.get(&(end.kind, end.id)) else { continue };
        let host = hosts.at(trace, start.track, start.at);
        let device = devices.at(trace, end.track, end.at);
        if let (Some(host), Some(device)) = (host, device)
            && trace.correlation[device] == 0
        {
            found += 1;
            tie(trace, host, device, next_id);
        }
    }
    found
}

/// Gives a launch and its device row the same id.
fn tie(trace: &mut Trace, host: usize, device: usize, next_id: &mut u64) {
    if trace.correlation[host] == 0 {
        trace.correlation[host] = *next_id;
        *next_id += 1;
    }
    trace.correlation[device] = trace.correlation[host];
}

fn is_launch(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    ["launch", "memcpy", "memset"].iter().any(|word| lower.contains(word))
}

/// Ties the n-th device row of an external id to its n-th launch. Gives how many were tied.
fn from_external_ids(trace: &mut Trace, lacking: &[usize], next_id: &mut u64) -> u64 {
    let mut launches: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for row in 0..trace.len() {
        let is_call = trace.category[row] == Category::Runtime && trace.external_id[row] != 0;
        if is_call && is_launch(trace.name_of(row)) {
            launches.entry(trace.external_id[row]).or_default().push(row);
        }
    }
    for rows in launches.values_mut() {
        // Latest first, so that the earliest is at the end to be taken.
        rows.sort_by_key(|&row| std::cmp::Reverse((trace.start[row], row)));
    }
    let mut order: Vec<usize> = lacking.to_vec();
    order.sort_by_key(|&row| (trace.start[row], row));
    let mut found = 0;
    for device in order {
        let host = launches.get_mut(&trace.external_id[device]).and_then(Vec::pop);
        if let Some(host) = host {
            found += 1;
            tie(trace, host, device, next_id);
        }
    }
    found
}
