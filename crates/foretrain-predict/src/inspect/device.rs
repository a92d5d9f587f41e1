//! How busy the device is, by union of intervals: no share of time exceeds 100 %.

use foretrain_core::Nanos;
use foretrain_trace::Category;

use crate::recording::Recording;

/// Device time within a stretch. All are unions: time when at least one such event runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Length of the stretch.
    pub window: Nanos,
    /// Any device work.
    pub busy: Nanos,
    /// Computation kernels.
    pub compute: Nanos,
    /// Communication.
    pub communication: Nanos,
    /// Computation and communication at once.
    pub overlap: Nanos,
    /// Communication while nothing computes.
    pub exposed_communication: Nanos,
    /// Copies and fills.
    pub copies: Nanos,
}

impl Activity {
    /// Busy share of the stretch, 0 to 1.
    pub fn busy_share(&self) -> f64 {
        if self.window > Nanos::ZERO {
            self.busy.nanos() as f64 / self.window.nanos() as f64
        } else {
            0.0
        }
    }
}

/// What is known of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceActivity {
    /// No device was recorded.
    NoDevice,
    /// Captured graphs were launched but their kernels not recorded.
    NotMeasurable,
    /// Measured.
    Measured(Activity),
}

impl DeviceActivity {
    /// Idle time, where it can be told.
    pub fn idle(&self) -> Option<Nanos> {
        match self {
            Self::Measured(a) => Some(a.window - a.busy),
            Self::NoDevice | Self::NotMeasurable => None,
        }
    }
}

type Intervals = Vec<(Nanos, Nanos)>;

/// Events further than this from the steps do not belong to them.
const FAR: Nanos = Nanos::from_millis(60_000);

/// First start and last end of the usable events near the steps, and how many are far off.
pub(super) fn span(recording: &Recording) -> ((Nanos, Nanos), usize) {
    let (trace, index) = (&recording.trace, &recording.index);
    let mut rows: Vec<(Nanos, Nanos)> = (0..trace.len())
        .filter(|&row| !index.is_rejected(row as u32) && trace.category[row] != Category::Span)
        .map(|row| (trace.start[row], trace.end(row)))
        .collect();
    rows.sort_unstable();
    // The stretch with the most events, stretches being a minute of nothing apart.
    let (mut best, mut from, mut reach) = ((0, 0), 0, Nanos::MIN);
    for i in 0..=rows.len() {
        if i == rows.len() || (i > from && rows[i].0 - reach > FAR) {
            if i - from > best.1 - best.0 {
                best = (from, i);
            }
            (from, reach) = (i, Nanos::MIN);
        }
        if let Some(row) = rows.get(i) {
            reach = reach.max(row.1);
        }
    }
    let dense = &rows[best.0..best.1];
    let first = dense.first().map_or(Nanos::ZERO, |row| row.0);
    let last = dense.iter().map(|row| row.1).max().unwrap_or(first);
    ((first, last), rows.len() - dense.len())
}

pub(crate) fn activity(recording: &Recording, span: (Nanos, Nanos)) -> DeviceActivity {
    if recording.ledger.count("graph-launch-without-kernels") > 0 {
        return DeviceActivity::NotMeasurable;
    }
    if recording.index.streams.is_empty() {
        return DeviceActivity::NoDevice;
    }
    let steps = &recording.steps.steps;
    let windows: Intervals = if steps.is_empty() {
        vec![span]
    } else {
        union(steps.iter().map(|step| (step.start, step.end)).collect())
    };
    let communication: std::collections::BTreeSet<u32> = recording
        .collectives
        .ops
        .iter()
        .chain(&recording.collectives.unclassified)
        .map(|op| op.row)
        .collect();
    let (mut compute, mut network, mut copies) = (Vec::new(), Vec::new(), Vec::new());
    for row in recording.index.device_rows() {
        let interval = (recording.trace.start[row as usize], recording.trace.end(row as usize));
        match recording.trace.category[row as usize] {
            _ if communication.contains(&row) => network.push(interval),
            Category::Kernel => compute.push(interval),
            _ => copies.push(interval),
        }
    }
    let inside = |list: Intervals| intersect(&union(list), &windows);
    let (compute, network, copies) = (inside(compute), inside(network), inside(copies));
    let overlap = total(&intersect(&compute, &network));
    let all = union(compute.iter().chain(&network).chain(&copies).copied().collect());
    DeviceActivity::Measured(Activity {
        window: total(&windows),
        busy: total(&all),
        compute: total(&compute),
        communication: total(&network),
        overlap,
        exposed_communication: total(&network) - overlap,
        copies: total(&copies),
    })
}

fn total(list: &[(Nanos, Nanos)]) -> Nanos {
    list.iter().map(|(start, end)| *end - *start).sum()
}

/// How long any of the intervals lasts.
pub(crate) fn covered(list: Intervals) -> Nanos {
    total(&union(list))
}

/// Sorted and disjoint intervals that cover the same time.
fn union(mut list: Intervals) -> Intervals {
    list.sort_unstable();
    let mut result: Intervals = Vec::new();
    for (start, end) in list {
        match result.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ if end > start => result.push((start, end)),
            _ => {}
        }
    }
    result
}

/// The common time of two lists of sorted and disjoint intervals.
fn intersect(a: &[(Nanos, Nanos)], b: &[(Nanos, Nanos)]) -> Intervals {
    let (mut i, mut j, mut result) = (0, 0, Vec::new());
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        let (start, end) = (x.0.max(y.0), x.1.min(y.1));
        if end > start {
            result.push((start, end));
        }
        if x.1 <= y.1 { i += 1 } else { j += 1 }
    }
    result
}
