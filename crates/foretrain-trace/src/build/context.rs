//! What the build of every step of one trace shares.

use foretrain_core::Nanos;
use rustc_hash::FxHashMap;

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
    /// Per stream of the index: `(launch time, row)` in launch order.
    launch_order: Vec<Vec<(Nanos, u32)>>,
    /// Rows that enclose no other row.
    is_leaf: Vec<bool>,
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
        let launch_order = index
            .streams
            .iter()
            .map(|stream| {
                let mut order: Vec<(Nanos, u32)> =
                    stream.rows.iter().map(|&row| (launch_time(trace, index, row), row)).collect();
                order.sort_by_key(|&(at, row)| (at, trace.start[row as usize], row));
                order
            })
            .collect();
        let ops = recognised.ops.iter().enumerate();
        Self {
            trace,
            index,
            recognised,
            steps,
            phases: Phases::new(trace, index),
            typical: Typical::measure(trace, index),
            op_of_row: ops.map(|(i, op)| (op.row, i as u32)).collect(),
            depth_of_call: queue_depths(trace, index).into_iter().collect(),
            launch_order,
            is_leaf,
        }
    }

    /// The collective that a row carries.
    pub(super) fn op(&self, row: u32) -> Option<&CollectiveOp> {
        self.op_of_row.get(&row).map(|&i| &self.recognised.ops[i as usize])
    }

    /// Launch-queue depth when a call returned, 0 if it launches no kernel.
    pub(super) fn queue_depth(&self, call: u32) -> u32 {
        self.depth_of_call.get(&call).copied().unwrap_or(0)
    }

    pub(super) fn is_leaf(&self, row: u32) -> bool {
        self.is_leaf[row as usize]
    }

    /// When a device row was launched; its start if there is no launch call.
    pub(super) fn launched_at(&self, row: u32) -> Nanos {
        launch_time(self.trace, self.index, row)
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

fn launch_time(trace: &Trace, index: &TraceIndex, row: u32) -> Nanos {
    let launch = index.launch[row as usize];
    if launch == NO_ROW { trace.start[row as usize] } else { trace.start[launch as usize] }
}
