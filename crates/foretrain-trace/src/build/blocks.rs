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
struct Gap {
    start: Nanos,
    end: Nanos,
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
fn main_gaps(context: &Context<'_>, step: &Step, main: TrackId) -> Vec<Gap> {
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

/// The waits of the main thread: gaps in which blocks ended that it waited for. A block is waited
/// for once, in the gap that shares most time with it: later gaps of which its record's tail makes
/// a candidate are the main thread's own.
pub(super) fn joins(
    context: &Context<'_>,
    step: &Step,
    main: TrackId,
    threads: &[(TrackId, Vec<Block>)],
) -> Vec<Join> {
    let gaps = main_gaps(context, step, main);
    let mut ended: Vec<Vec<(usize, usize)>> = vec![Vec::new(); gaps.len()];
    for (t, (track, blocks)) in threads.iter().enumerate().filter(|(_, (t, _))| *t != main) {
        for (b, block) in blocks.iter().enumerate() {
            let best = overlapping(&gaps, block)
                .filter(|&i| is_waited_for(context, &gaps[i], block, *track))
                .max_by_key(|&i| (overlap(&gaps[i], block), std::cmp::Reverse(i)));
            if let Some(best) = best {
                ended[best].push((t, b));
            }
        }
    }
    gaps.iter().zip(ended).filter_map(|(gap, ended)| join(gap, ended, threads)).collect()
}

/// Positions of the gaps that share time with a block; gaps are sorted and disjoint.
fn overlapping<'a>(gaps: &'a [Gap], block: &'a Block) -> impl Iterator<Item = usize> + 'a {
    let from = gaps.partition_point(|gap| gap.end <= block.start);
    (from..gaps.len()).take_while(|&i| gaps[i].start < block.end)
}

fn overlap(gap: &Gap, block: &Block) -> Nanos {
    gap.end.min(block.end) - gap.start.max(block.start)
}

/// Whether a gap of the main thread may be a wait for a block that ends in it.
///
/// Backward work on its own thread is always waited for. A host-side collective is waited for if
/// the main thread goes on promptly after its end. The record of a collective may end a little
/// after the main thread goes on, for it includes its own completion callback; the wait then ends
/// at the record's end or the gap's, whichever is earlier.
fn is_waited_for(context: &Context<'_>, gap: &Gap, block: &Block, track: TrackId) -> bool {
    let late = (block.end - gap.end).clamp_positive();
    if block.collective.is_none() {
        return late == Nanos::ZERO && is_backward(context, block, track);
    }
    let tolerated = Nanos::from_millis(1).max((block.end - block.start).scale(0.02));
    let prompt = gap.end - block.end.min(gap.end);
    let soon = Nanos::from_micros(300).max((gap.end - gap.start).scale(0.05));
    late <= tolerated && prompt <= soon
}

/// The wait in a gap for the blocks that ended in it.
fn join(gap: &Gap, ended: Vec<(usize, usize)>, threads: &[(TrackId, Vec<Block>)]) -> Option<Join> {
    let span = |&(t, b): &(usize, usize)| {
        let block = &threads[t].1[b];
        (block.end.min(gap.end), block.start)
    };
    // The first of equal ends.
    let (end, block_start) = ended.iter().map(span).reduce(|a, b| if b.0 > a.0 { b } else { a })?;
    let start = gap.start.max(block_start.min(end));
    Some(Join { start, end, ended })
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

#[cfg(test)]
mod tests {
    use foretrain_core::Ledger;

    use super::*;
    use crate::collectives::recognise;
    use crate::collectives::testing::Builder;
    use crate::index::TraceIndex;
    use crate::steps::find_steps;

    const MAIN: u32 = 0;
    const GLOO: u32 = 1;

    /// The waits of the main thread in a step of 10 ms with these operators on it and these
    /// all-reduces on a gloo thread; times in microseconds.
    fn waits(main: &[(i64, i64)], gloo: &[(i64, i64)]) -> Vec<(i64, i64, usize)> {
        let mut b = Builder::new();
        b.row(Category::UserAnnotation, "ProfilerStep#1", MAIN, (0, 10_000));
        for &(start, end) in main {
            b.row(Category::CpuOp, "aten::mm", MAIN, (start, end - start));
        }
        for &(start, end) in gloo {
            b.row(Category::UserAnnotation, "gloo:all_reduce", GLOO, (start, end - start));
        }
        let mut ledger = Ledger::new();
        let index = TraceIndex::new(&b.trace, &mut ledger);
        let collectives = recognise(&b.trace, &mut ledger);
        let steps = find_steps(&b.trace, &index, None, &mut ledger);
        let context = Context::new(&b.trace, &index, &collectives, &steps);
        let (main, step) = (steps.main.expect("main thread"), &steps.steps[0]);
        let threads: Vec<(TrackId, Vec<Block>)> = index
            .threads
            .iter()
            .map(|thread| (thread.track, blocks_of_thread(&context, step, thread, main)))
            .collect();
        let micros = |time: Nanos| time.nanos() / 1000;
        joins(&context, step, main, &threads)
            .iter()
            .map(|join| (micros(join.start), micros(join.end), join.ended.len()))
            .collect()
    }

    #[test]
    fn a_collective_is_waited_for_once_where_the_main_thread_stood_still_longest() {
        // The record ends 900 us after the main thread went on, in its second short pause.
        let main = [(0, 3000), (6000, 6300), (6500, 6750), (6950, 10_000)];
        assert_eq!(waits(&main, &[(2900, 6900)]), [(3000, 6000, 1)]);
    }

    #[test]
    fn each_of_several_collectives_is_waited_for_where_it_ended() {
        let main = [(0, 2000), (4000, 4200), (7000, 10_000)];
        assert_eq!(waits(&main, &[(1000, 3990), (4000, 6980)]), [(2000, 3990, 1), (4200, 6980, 1)]);
    }

    #[test]
    fn a_collective_that_ends_under_work_is_not_waited_for() {
        assert_eq!(waits(&[(0, 2000), (2200, 10_000)], &[(1000, 5000)]), []);
    }
}
