//! Events written as a beginning and an end.

use foretrain_core::Nanos;
use foretrain_trace::{Trace, TrackId};
use rustc_hash::FxHashMap;

/// Beginnings that wait for their ends, innermost last, per track.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    open: FxHashMap<TrackId, Vec<Option<u32>>>,
    /// Ends without a beginning.
    pub(super) unmatched_ends: u64,
    /// Ends before their beginning.
    pub(super) negative: Vec<u32>,
}

impl Pairs {
    /// A row that has begun; none if it was left out on request.
    pub(super) fn begin(&mut self, track: TrackId, row: Option<u32>) {
        self.open.entry(track).or_default().push(row);
    }

    /// Ends the innermost open row of a track.
    pub(super) fn end(&mut self, trace: &mut Trace, track: TrackId, at: i64) {
        let Some(row) = self.open.get_mut(&track).and_then(Vec::pop) else {
            self.unmatched_ends += 1;
            return;
        };
        let Some(row) = row else { return };
        let duration = Nanos::from_nanos(at) - trace.start[row as usize];
        if duration < Nanos::ZERO {
            self.negative.push(row);
        }
        trace.duration[row as usize] = duration.clamp_positive();
    }

    /// Rows that never ended, in order.
    pub(super) fn unended(&self) -> Vec<u32> {
        let mut rows = Vec::new();
        let mut tracks: Vec<&TrackId> = self.open.keys().collect();
        tracks.sort_unstable();
        for track in tracks {
            rows.extend(self.open[track].iter().flatten());
        }
        rows.sort_unstable();
        rows
    }
}

/// Takes rows (sorted) out of the table.
pub(super) fn remove_rows(trace: &mut Trace, rows: &[u32]) {
    if rows.is_empty() {
        return;
    }
    fn keep<T>(column: &mut Vec<T>, rows: &[u32]) {
        let mut row = 0_u32;
        column.retain(|_| {
            row += 1;
            rows.binary_search(&(row - 1)).is_err()
        });
    }
    keep(&mut trace.category, rows);
    keep(&mut trace.name, rows);
    keep(&mut trace.start, rows);
    keep(&mut trace.duration, rows);
    keep(&mut trace.track, rows);
    keep(&mut trace.correlation, rows);
    keep(&mut trace.external_id, rows);
    keep(&mut trace.stream, rows);
    keep(&mut trace.device, rows);
    keep(&mut trace.shapes, rows);
    keep(&mut trace.types, rows);
    // A side-table row moves up by the number of rows taken out before it.
    let moved = |row: &mut u32| match rows.binary_search(row) {
        Ok(_) => false,
        Err(before) => {
            *row -= before as u32;
            true
        }
    };
    trace.comm_args.retain_mut(|args| moved(&mut args.row));
    trace.launch_args.retain_mut(|args| moved(&mut args.row));
    trace.copy_args.retain_mut(|args| moved(&mut args.row));
    trace.sync_args.retain_mut(|args| moved(&mut args.row));
}
