//! When threads other than the main one work, and the messages that the main thread has under way.

use foretrain_core::Nanos;

use super::context::Context;
use crate::category::Category;
use crate::index::ThreadRows;
use crate::steps::Step;
use crate::table::TrackId;

/// A thread that pauses longer than this while the main thread works is waiting for it.
const PAUSE: Nanos = Nanos::from_micros(50);

/// A stretch of a thread without waiting for the main thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) start: Nanos,
    pub(super) end: Nanos,
    /// The host-side collective it consists of, if it is one.
    pub(super) collective: Option<u32>,
}

/// Blocks of a thread within a step. Threads that neither launch nor run operators nor
/// communicate (watchdogs, pollers) have none.
pub(super) fn blocks_of_thread(
    context: &Context<'_>,
    step: &Step,
    thread: &ThreadRows,
    main: TrackId,
) -> Vec<Block> {
    let (trace, index) = (context.trace, context.index);
    let from = thread.rows.partition_point(|&row| trace.start[row as usize] < step.start);
    let main_rows = index.thread(main).map_or(&[][..], |thread| &thread.rows);
    let mut blocks: Vec<Block> = Vec::new();
    let mut matters = false;
    for &row in &thread.rows[from..] {
        let (start, end) = (trace.start[row as usize], trace.end(row as usize));
        if start >= step.end {
            break;
        }
        let collective = context.op(row).filter(|op| !op.on_device).map(|op| op.row);
        matters |= collective.is_some()
            || trace.category[row as usize] == Category::CpuOp
            || index.launched_by(row).next().is_some();
        let end = end.min(step.end);
        match blocks.last_mut() {
            Some(block) if start < block.end && block.collective.is_none() => {
                block.end = block.end.max(end);
            }
            Some(block) if start < block.end => {}
            Some(block)
                if collective.is_none()
                    && block.collective.is_none()
                    && !is_pause(context, main_rows, block.end, start) =>
            {
                block.end = end;
            }
            _ => blocks.push(Block { start, end, collective }),
        }
    }
    if matters { blocks } else { Vec::new() }
}

/// Whether a thread's gap is long and the main thread was active in it.
fn is_pause(context: &Context<'_>, main_rows: &[u32], from: Nanos, to: Nanos) -> bool {
    if to - from <= PAUSE {
        return false;
    }
    let first = main_rows.partition_point(|&row| context.trace.start[row as usize] < from);
    main_rows[first..]
        .iter()
        .take_while(|&&row| context.trace.start[row as usize] < to)
        .any(|&row| context.is_leaf(row))
}

/// Host-side operations that are recorded on the main thread itself. Such a record lasts from the
/// call that issued the operation until somebody waited for it, and the thread may compute or
/// issue others meanwhile: the operation is under way elsewhere. One list for each that is under
/// way at the same time.
pub(super) fn messages(context: &Context<'_>, step: &Step, main: TrackId) -> Vec<Vec<Block>> {
    let trace = context.trace;
    let rows = context.index.thread(main).map_or(&[][..], |thread| &thread.rows);
    let from = rows.partition_point(|&row| trace.start[row as usize] < step.start);
    let mut lanes: Vec<Vec<Block>> = Vec::new();
    let within = rows[from..].iter().take_while(|&&row| trace.start[row as usize] < step.end);
    for &row in within.filter(|&&row| context.is_host_operation(row)) {
        let start = trace.start[row as usize];
        let block =
            Block { start, end: trace.end(row as usize).min(step.end), collective: Some(row) };
        let is_free = |lane: &&mut Vec<Block>| lane.last().is_none_or(|last| last.end <= start);
        match lanes.iter_mut().find(is_free) {
            Some(lane) => lane.push(block),
            None => lanes.push(vec![block]),
        }
    }
    lanes
}
