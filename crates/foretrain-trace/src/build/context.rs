//! What the build of every step of one trace shares.

use foretrain_core::{NameId, Nanos};
use rustc_hash::{FxHashMap, FxHashSet};

use super::phase::Phases;
use super::typical::{Typical, queue_depths};
use crate::collectives::{CollectiveOp, Collectives};
use crate::index::{NO_ROW, TraceIndex};
use crate::steps::Steps;
use crate::table::Trace;

/// Everything known about one trace before any step graph is built.
pub struct Context<'a> {
    pub(crate) trace: &'a Trace,
    pub(crate) index: &'a TraceIndex,
    pub(crate) recognised: &'a Collectives,
    pub(crate) steps: &'a Steps,
    pub(super) phases: Phases,
    /// Typical latencies of the trace.
    pub typical: Typical,
    /// Position in `recognised.ops` by the row that carries the communication.
    op_of_row: FxHashMap<u32, u32>,
    /// Depth of the launch queue when each launch call returned, by call.
    depth_of_call: FxHashMap<u32, u32>,
    /// Device rows that were launched before the recording began.
    before_recording: FxHashSet<u32>,
    /// Per stream of the index: `(launch time, row)` in launch order.
    launch_order: Vec<Vec<(Nanos, u32)>>,
    /// Rows that enclose no other row.
    is_leaf: Vec<bool>,
    /// Rows inside which host-side communication is issued.
    issuing: FxHashSet<u32>,
}

impl<'a> Context<'a> {
    /// Prepares a trace.
    pub fn new(
        trace: &'a Trace,
        index: &'a TraceIndex,
        recognised: &'a Collectives,
        steps: &'a Steps,
    ) -> Self {
        let mut is_leaf = vec![true; trace.len()];
        for &parent in index.parent.iter().filter(|&&parent| parent != NO_ROW) {
            is_leaf[parent as usize] = false;
        }
        let typical = Typical::measure(trace, index);
        let before_recording = launched_before_recording(trace, index, typical.queue_capacity);
        let launch_order = index
            .streams
            .iter()
            .map(|stream| {
                let at = |row| launch_time(trace, index, &before_recording, row);
                let mut order: Vec<(Nanos, u32)> =
                    stream.rows.iter().map(|&row| (at(row), row)).collect();
                order.sort_by_key(|&(at, row)| (at, trace.start[row as usize], row));
                order
            })
            .collect();
        let mut issuing = FxHashSet::default();
        for op in recognised.ops.iter().filter(|op| !op.on_device) {
            let mut around = op.issue_row.map_or(NO_ROW, |row| index.parent[row as usize]);
            while around != NO_ROW && issuing.insert(around) {
                around = index.parent[around as usize];
            }
        }
        let ops = recognised.ops.iter().enumerate();
        Self {
            trace,
            index,
            recognised,
            steps,
            phases: Phases::new(trace, index),
            typical,
            op_of_row: ops.map(|(i, op)| (op.row, i as u32)).collect(),
            depth_of_call: queue_depths(trace, index).into_iter().collect(),
            before_recording,
            launch_order,
            is_leaf,
            issuing,
        }
    }

    /// The collective that a row carries.
    pub(super) fn op(&self, row: u32) -> Option<&CollectiveOp> {
        self.op_of_row.get(&row).map(|&i| &self.recognised.ops[i as usize])
    }

    /// Whether a row is the record of communication by a host backend.
    pub(super) fn is_host_operation(&self, row: u32) -> bool {
        self.op(row).is_some_and(|op| !op.on_device)
    }

    /// Launch-queue depth when a call returned, 0 if it launches no kernel.
    pub(super) fn queue_depth(&self, call: u32) -> u32 {
        self.depth_of_call.get(&call).copied().unwrap_or(0)
    }

    /// Whether host-side communication is issued inside a row.
    pub(super) fn issues_inside(&self, row: u32) -> bool {
        self.issuing.contains(&row)
    }

    pub(super) fn is_leaf(&self, row: u32) -> bool {
        self.is_leaf[row as usize]
    }

    /// When a device row was launched: before everything if that was before the recording, its
    /// start if there is no launch call.
    pub(super) fn launched_at(&self, row: u32) -> Nanos {
        launch_time(self.trace, self.index, &self.before_recording, row)
    }

    /// The last device row launched on a stream (position in the index) before `at`.
    pub(super) fn last_launched(&self, stream: usize, at: Nanos) -> Option<u32> {
        let order = &self.launch_order[stream];
        let before = order.partition_point(|&(launched, _)| launched < at);
        before.checked_sub(1).map(|i| order[i].1)
    }

    /// The first device row launched on a stream at or after `at`.
    pub(super) fn first_launched(&self, stream: usize, at: Nanos) -> Option<u32> {
        let order = &self.launch_order[stream];
        order.get(order.partition_point(|&(launched, _)| launched < at)).map(|&(_, row)| row)
    }

    /// Position in the index of the stream with this number, on the device if that is known.
    pub(super) fn stream_numbered(&self, device: i16, stream: i64) -> Option<usize> {
        self.index
            .streams
            .iter()
            .position(|s| i64::from(s.stream) == stream && (device < 0 || s.device == device))
    }
}

fn launch_time(
    trace: &Trace,
    index: &TraceIndex,
    before_recording: &FxHashSet<u32>,
    row: u32,
) -> Nanos {
    let launch = index.launch[row as usize];
    if launch != NO_ROW {
        trace.start[launch as usize]
    } else if before_recording.contains(&row) {
        Nanos::MIN
    } else {
        trace.start[row as usize]
    }
}

/// Device work that was queued when a recording began in mid-run. Streams run in order, so rows
/// before a stream's first launched one were issued earlier than that; where the launches of their
/// like are recorded otherwise, only the recording's late start can have lost theirs. More rows
/// than can be queued have another cause.
fn launched_before_recording(
    trace: &Trace,
    index: &TraceIndex,
    queue_capacity: u32,
) -> FxHashSet<u32> {
    let is_launched = |row: u32| index.launch[row as usize] != NO_ROW;
    let name = |row: u32| trace.name[row as usize];
    let launched: FxHashSet<NameId> =
        index.device_rows().filter(|&row| is_launched(row)).map(name).collect();
    let mut before = FxHashSet::default();
    for stream in &index.streams {
        let Some(first) = stream.rows.iter().position(|&row| is_launched(row)) else { continue };
        let leading = &stream.rows[..first];
        let last = leading.iter().rposition(|&row| launched.contains(&name(row)));
        if let Some(last) = last.filter(|&last| last < queue_capacity as usize) {
            before.extend(leading[..=last].iter().copied());
        }
    }
    before
}

#[cfg(test)]
mod tests {
    use foretrain_core::Ledger;

    use super::*;
    use crate::category::Category;
    use crate::collectives::testing::Builder;

    /// A kernel that ran before the first launch, one launched, and one of a kind that never has
    /// a launch.
    fn began_in_mid_run() -> (Trace, TraceIndex) {
        let mut b = Builder::new();
        b.kernel("gemm", 7, (0, 50));
        b.kernel("Memset", 7, (50, 5));
        b.kernel("relu", 7, (55, 5));
        b.kernel("Memset", 7, (60, 5));
        let call = b.row(Category::Runtime, "cudaLaunchKernel", 1, (10, 4));
        let kernel = b.kernel("gemm", 7, (70, 50));
        b.correlate(&[call, kernel], 1);
        let call = b.row(Category::Runtime, "cudaLaunchKernel", 1, (15, 4));
        let kernel = b.kernel("relu", 7, (120, 5));
        b.correlate(&[call, kernel], 2);
        b.kernel("gemm", 7, (130, 5));
        let index = TraceIndex::new(&b.trace, &mut Ledger::new());
        (b.trace, index)
    }

    #[test]
    fn what_runs_ahead_of_the_first_launch_was_queued_before_the_recording() {
        let (trace, index) = began_in_mid_run();
        let mut before: Vec<u32> =
            launched_before_recording(&trace, &index, 1024).into_iter().collect();
        before.sort_unstable();
        // The last memset need not have been: nothing behind it was.
        assert_eq!(before, [0, 1, 2]);
    }

    #[test]
    fn more_than_a_full_queue_has_another_cause() {
        let (trace, index) = began_in_mid_run();
        assert!(launched_before_recording(&trace, &index, 2).is_empty());
    }

    #[test]
    fn streams_without_launches_tell_nothing() {
        let mut b = Builder::new();
        b.kernel("gemm", 7, (0, 50));
        let index = TraceIndex::new(&b.trace, &mut Ledger::new());
        assert!(launched_before_recording(&b.trace, &index, 1024).is_empty());
    }
}
