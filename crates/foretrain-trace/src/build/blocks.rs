//! When threads other than the main one work, and when the main thread waits for them.

use foretrain_core::Nanos;
use foretrain_graph::Phase;

use super::context::Context;
use crate::category::Category;
use crate::index::{NO_ROW, ThreadRows};
use crate::steps::Step;
use crate::table::TrackId;

/// A thread that pauses longer than this while the main thread works is waiting for it.
const PAUSE: Nanos = Nanos::from_micros(50);

/// Main-thread gaps shorter than this are never waits for another thread.
const SHORTEST_WAIT: Nanos = Nanos::from_micros(100);

/// A stretch of a thread without waiting for the main thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) start: Nanos,
    pub(super) end: Nanos,
    /// The host-side collective it consists of, if it is one.
    pub(super) collective: Option<u32>,
}

/// A stretch of the main thread without any event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gap {
    pub(super) start: Nanos,
    pub(super) end: Nanos,
}

/// A wait of the main thread for others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Join {
    pub(super) start: Nanos,
    pub(super) end: Nanos,
    /// `(thread position, block position)` of everything that had ended by then and was open.
    pub(super) ended: Vec<(usize, usize)>,
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

/// Stretches of the main thread without leaf events.
pub(super) fn main_gaps(context: &Context<'_>, step: &Step, main: TrackId) -> Vec<Gap> {
    let trace = context.trace;
    let Some(thread) = context.index.thread(main) else { return Vec::new() };
    let from = thread.rows.partition_point(|&row| trace.start[row as usize] < step.start);
    let mut gaps = Vec::new();
    let mut busy_until = step.start;
    for &row in &thread.rows[from..] {
        let start = trace.start[row as usize];
        if start >= step.end {
            break;
        }
        if !context.is_leaf(row) {
            continue;
        }
        if start - busy_until >= SHORTEST_WAIT {
            gaps.push(Gap { start: busy_until, end: start });
        }
        busy_until = busy_until.max(trace.end(row as usize));
    }
    if step.end - busy_until >= SHORTEST_WAIT {
        gaps.push(Gap { start: busy_until, end: step.end });
    }
    gaps
}

/// Decides whether a gap of the main thread is a wait for blocks that end in it.
///
/// Backward work on its own thread is always waited for. A host-side collective is waited for if
/// the main thread goes on promptly after its end. The record of a collective may end a little
/// after the main thread goes on, for it includes its own completion callback; the wait then ends
/// at the record's end or the gap's, whichever is earlier.
pub(super) fn join_in_gap(
    context: &Context<'_>,
    gap: &Gap,
    main: TrackId,
    threads: &[(TrackId, Vec<Block>)],
) -> Option<Join> {
    let length = gap.end - gap.start;
    let mut last: Option<(Nanos, Nanos)> = None;
    let mut ended = Vec::new();
    for (t, (track, blocks)) in threads.iter().enumerate() {
        if *track == main {
            continue;
        }
        for (b, block) in blocks.iter().enumerate() {
            if block.start >= gap.end || block.end <= gap.start {
                continue;
            }
            let block_length = block.end - block.start;
            let late = (block.end - gap.end).clamp_positive();
            let prompt = gap.end - block.end.min(gap.end);
            let tolerated = Nanos::from_millis(1).max(block_length.scale(0.02));
            let waited_for = if block.collective.is_some() {
                late <= tolerated
                    && length.nanos() * 2 >= (block_length.min(length)).nanos()
                    && prompt <= Nanos::from_micros(300).max(length.scale(0.05))
            } else {
                late == Nanos::ZERO && is_backward(context, block, *track)
            };
            if waited_for {
                ended.push((t, b));
                let end = block.end.min(gap.end);
                if last.is_none_or(|(e, _)| end > e) {
                    last = Some((end, block.start));
                }
            }
        }
    }
    let (end, block_start) = last?;
    let start = gap.start.max(block_start.min(end));
    Some(Join { start: if block_start > gap.start { start } else { gap.start }, end, ended })
}

fn is_backward(context: &Context<'_>, block: &Block, track: TrackId) -> bool {
    let trace = context.trace;
    let Some(thread) = context.index.thread(track) else { return false };
    let from = thread.rows.partition_point(|&row| trace.start[row as usize] < block.start);
    thread.rows[from..]
        .iter()
        .take_while(|&&row| trace.start[row as usize] < block.end)
        .take(64)
        .any(|&row| context.phases.of(row, Nanos::ZERO, None) == Phase::Backward && row != NO_ROW)
}
