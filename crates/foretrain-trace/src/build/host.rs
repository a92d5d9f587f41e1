//! Host threads of one step: cut into segments between the points where a thread touches the
//! rest of the system. Segments are contiguous, so the gaps between events stay.

use foretrain_core::Nanos;

use super::blocks::{Block, blocks_of_thread, messages};
use super::context::Context;
use super::joins::joins;
use super::sync::{Wait, wait_of_call};
use crate::category::Category;
use crate::index::NO_ROW;
use crate::steps::{Step, StepSource};
use crate::table::TrackId;

/// What a thread does from `start` to `end`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// Runs code.
    Run,
    /// Waits; then `work` is what the call costs beyond the wait.
    Wait { targets: Vec<Target>, overhead: Nanos },
    /// Performs a host-side collective (position in the recognised list).
    Collective { row: u32 },
}

/// What a host thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Target {
    /// A device row.
    Device(u32),
    /// A device row that must leave the launch queue.
    QueueSlot(u32),
    /// The end of a piece of another thread: (thread position, piece position).
    Thread(usize, usize),
}

/// A piece of a host thread: becomes one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) start: Nanos,
    pub(super) end: Nanos,
    pub(super) work: Work,
    /// Row that explains the piece, for its name and phase; [`NO_ROW`] if none.
    pub(super) row: u32,
    /// Whether it begins a block: not continuous with the piece before.
    pub(super) begins_block: bool,
}

/// A host thread's pieces, in order of time.
#[derive(Clone, Debug, Default)]
pub(super) struct ThreadPieces {
    pub(super) track: TrackId,
    /// Whether these are messages of the thread that are under way, and not the thread itself.
    pub(super) is_messages: bool,
    pub(super) pieces: Vec<Piece>,
}

/// Why a thread is cut at a point.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Cut {
    /// Something else hangs off the segment that ends here, or attribution changes.
    Here,
    /// The thread waits until the given time.
    Wait(Wait),
    /// A host-side collective runs until the given time.
    Collective { row: u32, end: Nanos },
}

/// A host thread, or a list of messages under way, to be cut.
struct Uncut {
    track: TrackId,
    blocks: Vec<Block>,
    cuts: Vec<(Nanos, u32, Cut)>,
}

/// All host threads that matter in one step, main thread first, then the others, then the main
/// thread's messages under way.
pub(super) fn host_threads(context: &Context<'_>, step: &Step) -> Vec<ThreadPieces> {
    let index = context.index;
    let Some(main) = context.steps.main else { return Vec::new() };
    let whole = Block { start: step.start, end: main_end(context, step), collective: None };
    let mut threads = vec![Uncut {
        track: main,
        blocks: vec![whole],
        cuts: call_cuts(context, step, main, CutOperations::No),
    }];
    for thread in index.threads.iter().filter(|thread| thread.track != main) {
        let blocks = blocks_of_thread(context, step, thread, main);
        if !blocks.is_empty() {
            let cuts = call_cuts(context, step, thread.track, CutOperations::Yes);
            threads.push(Uncut { track: thread.track, blocks, cuts });
        }
    }
    let messages = messages(context, step, main);
    let n_threads = threads.len();
    threads.extend(messages.into_iter().map(|blocks| {
        let cuts = blocks.iter().filter_map(message_cut).collect();
        Uncut { track: main, blocks, cuts }
    }));
    add_forks(context, &mut threads);
    add_joins(context, step, &mut threads);
    let mut threads: Vec<ThreadPieces> = threads
        .into_iter()
        .enumerate()
        .map(|(i, thread)| ThreadPieces {
            track: thread.track,
            is_messages: i >= n_threads,
            pieces: pieces(&thread.blocks, thread.cuts),
        })
        .collect();
    resolve_joins(&mut threads);
    threads
}

fn message_cut(block: &Block) -> Option<(Nanos, u32, Cut)> {
    let row = block.collective?;
    Some((block.start, row, Cut::Collective { row, end: block.end }))
}

/// Where the main thread's part of a step ends. A mark belongs to the thread, and so does the time
/// up to it; a window without marks ends with whatever ends last, and the thread with its own last
/// event.
fn main_end(context: &Context<'_>, step: &Step) -> Nanos {
    if context.steps.source != StepSource::WholeWindow {
        return step.end;
    }
    let rows = context.steps.main.and_then(|main| context.index.thread(main));
    let ends = rows.iter().flat_map(|thread| &thread.rows);
    let last = ends.map(|&row| context.trace.end(row as usize)).max();
    last.map_or(step.end, |end| end.clamp(step.start, step.end))
}

/// Whether records of communication are work of the thread that holds them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CutOperations {
    Yes,
    No,
}

/// Cuts that a thread's own calls and operators make.
fn call_cuts(
    context: &Context<'_>,
    step: &Step,
    track: TrackId,
    operations: CutOperations,
) -> Vec<(Nanos, u32, Cut)> {
    let (trace, index) = (context.trace, context.index);
    let mut cuts = Vec::new();
    let Some(thread) = index.thread(track) else { return cuts };
    let has_device = !index.streams.is_empty();
    let from = thread.rows.partition_point(|&row| trace.start[row as usize] < step.start);
    for &row in &thread.rows[from..] {
        let at = trace.start[row as usize];
        if at >= step.end {
            break;
        }
        let end = trace.end(row as usize);
        if let Some(op) = context.op(row) {
            if !op.on_device && operations == CutOperations::Yes {
                cuts.push((at, row, Cut::Collective { row, end }));
            }
        } else if trace.category[row as usize] == Category::Runtime {
            if index.launched_by(row).next().is_some() {
                cuts.push((at, row, Cut::Here));
            }
            if let Some(wait) = wait_of_call(context, row) {
                cuts.push((wait.start, row, Cut::Wait(wait)));
            }
        } else {
            attribution_cuts(context, row, has_device, &mut cuts);
        }
    }
    cuts
}

/// Cuts that only serve attribution: input, optimizer and gradient boundaries everywhere, and
/// outermost operators where no device work cuts the thread finely.
fn attribution_cuts(
    context: &Context<'_>,
    row: u32,
    has_device: bool,
    cuts: &mut Vec<(Nanos, u32, Cut)>,
) {
    let trace = context.trace;
    let (at, end) = (trace.start[row as usize], trace.end(row as usize));
    let name = trace.name_of(row as usize);
    let is_boundary = name.contains("DataLoader") || name.starts_with("Optimizer.");
    if is_boundary {
        cuts.push((at, parent(context, row), Cut::Here));
        cuts.push((end, row, Cut::Here));
    } else if is_accumulate_grad(name)
        || (!has_device
            && trace.category[row as usize] == Category::CpuOp
            && outermost_operator(context, row) == row)
    {
        cuts.push((end, row, Cut::Here));
    }
}

/// Whether an operator accumulates one parameter's gradient.
pub(super) fn is_accumulate_grad(name: &str) -> bool {
    name == "torch::autograd::AccumulateGrad"
        || name == "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"
}

fn parent(context: &Context<'_>, row: u32) -> u32 {
    context.index.parent[row as usize]
}

/// The outermost operator around a row (itself if none), annotations and frames aside.
pub(super) fn outermost_operator(context: &Context<'_>, row: u32) -> u32 {
    let (mut best, mut at) = (row, row);
    while at != NO_ROW {
        if context.trace.category[at as usize] == Category::CpuOp {
            best = at;
        }
        at = parent(context, at);
    }
    best
}

/// The innermost operator around a row, [`NO_ROW`] if none.
pub(super) fn innermost_operator(context: &Context<'_>, row: u32) -> u32 {
    let mut at = row;
    while at != NO_ROW && context.trace.category[at as usize] != Category::CpuOp {
        at = parent(context, at);
    }
    at
}

/// The main thread (or the issuing one) is cut where a block of another begins, so that the block
/// can hang off that point.
fn add_forks(context: &Context<'_>, threads: &mut [Uncut]) {
    let Some(main) = threads.first().map(|thread| thread.track) else { return };
    let mut forks: Vec<(usize, Nanos)> = Vec::new();
    for (t, thread) in threads.iter().enumerate().skip(1) {
        for block in &thread.blocks {
            let (at, by) = fork_point(context, block, main);
            let by = threads.iter().position(|thread| thread.track == by);
            forks.extend(by.filter(|&by| by != t).map(|by| (by, at)));
        }
    }
    for (by, at) in forks {
        threads[by].cuts.push((at, NO_ROW, Cut::Here));
    }
}

/// When and by which thread a block was set off: the operator that issued a host collective, else
/// the main thread at the block's start.
pub(super) fn fork_point(context: &Context<'_>, block: &Block, main: TrackId) -> (Nanos, TrackId) {
    let issue = block
        .collective
        .and_then(|row| context.op(row))
        .and_then(|op| op.issue_row)
        .filter(|&row| context.trace.start[row as usize] <= block.start);
    match issue {
        Some(row) => {
            let end = context.trace.end(row as usize);
            (end.min(block.start), context.trace.track[row as usize])
        }
        None => (block.start, main),
    }
}

/// Main-thread gaps that are waits for others.
fn add_joins(context: &Context<'_>, step: &Step, threads: &mut [Uncut]) {
    let blocks: Vec<(TrackId, &[Block])> =
        threads.iter().map(|thread| (thread.track, thread.blocks.as_slice())).collect();
    let waits: Vec<Wait> = joins(context, step, &blocks)
        .into_iter()
        .map(|join| Wait {
            start: join.start,
            end: join.end,
            targets: join
                .ended
                .iter()
                .map(|&(thread, block)| Target::Thread(thread, block))
                .collect(),
            last_end: join.end,
            most: Nanos::MAX,
        })
        .collect();
    if let Some(main) = threads.first_mut() {
        main.cuts.extend(waits.into_iter().map(|wait| (wait.start, NO_ROW, Cut::Wait(wait))));
    }
}

/// Cuts blocks into pieces.
fn pieces(blocks: &[Block], mut cuts: Vec<(Nanos, u32, Cut)>) -> Vec<Piece> {
    // Waits after plain cuts of the same time: what hangs off a point hangs off the segment.
    cuts.sort_by_key(|(at, row, cut)| (*at, !matches!(cut, Cut::Here), *row));
    let mut pieces = Vec::with_capacity(cuts.len() + blocks.len());
    let mut next = 0;
    for block in blocks {
        let mut cursor = block.start;
        let mut fresh = true;
        let mut push = |start: Nanos, end: Nanos, work: Work, row: u32, fresh: &mut bool| {
            pieces.push(Piece { start, end, work, row, begins_block: *fresh });
            *fresh = false;
        };
        while next < cuts.len() && cuts[next].0 < block.start {
            next += 1;
        }
        while next < cuts.len() && cuts[next].0 < block.end {
            let (at, row, cut) = cuts[next].clone();
            next += 1;
            if at < cursor && !matches!(cut, Cut::Here) {
                // Inside a longer wait (a call seen from two sides).
                continue;
            }
            if at > cursor || fresh {
                push(cursor, at.max(cursor), Work::Run, row, &mut fresh);
                cursor = at.max(cursor);
            }
            match cut {
                Cut::Here => {}
                Cut::Wait(wait) => {
                    let end = wait.end.min(block.end);
                    let overhead = (end - cursor.max(wait.last_end.min(end))).min(wait.most);
                    let work = Work::Wait { targets: wait.targets, overhead };
                    push(cursor, end, work, row, &mut fresh);
                    cursor = end;
                }
                Cut::Collective { row, end } => {
                    push(cursor, end.min(block.end), Work::Collective { row }, row, &mut fresh);
                    cursor = end.min(block.end);
                }
            }
        }
        if cursor < block.end || fresh {
            push(cursor, block.end, Work::Run, NO_ROW, &mut fresh);
        }
    }
    pieces
}

/// Joins name blocks; nodes are pieces. Points every join at the last piece of its block.
fn resolve_joins(threads: &mut [ThreadPieces]) {
    let last_piece: Vec<Vec<usize>> = threads
        .iter()
        .map(|thread| {
            let mut last = Vec::new();
            for (i, piece) in thread.pieces.iter().enumerate() {
                if piece.begins_block {
                    last.push(i);
                } else if let Some(end) = last.last_mut() {
                    *end = i;
                }
            }
            last
        })
        .collect();
    let mut clipped: Vec<(usize, usize, Nanos)> = Vec::new();
    for thread in threads.iter_mut() {
        for piece in &mut thread.pieces {
            let Work::Wait { targets, .. } = &mut piece.work else { continue };
            for target in targets {
                if let Target::Thread(thread, block) = target
                    && let Some(&last) = last_piece.get(*thread).and_then(|t| t.get(*block))
                {
                    clipped.push((*thread, last, piece.end));
                    *target = Target::Thread(*thread, last);
                }
            }
        }
    }
    // The waiting thread goes on at the wait's end, so what it waited for was over by then.
    for (thread, piece, end) in clipped {
        let piece = &mut threads[thread].pieces[piece];
        piece.end = piece.end.min(end.max(piece.start));
    }
}

#[cfg(test)]
mod tests {
    use foretrain_core::Ledger;

    use super::*;
    use crate::collectives::recognise;
    use crate::collectives::testing::Builder;
    use crate::index::TraceIndex;
    use crate::steps::find_steps;

    /// Starts and ends in microseconds.
    type Spans = Vec<(i64, i64)>;

    /// Where a send from 1 to 5 ms is under way, and where the main thread waits, with an operator
    /// at the given time (in microseconds).
    fn send(operator: i64) -> (Spans, Spans) {
        let mut b = Builder::new();
        b.row(Category::UserAnnotation, "ProfilerStep#1", 0, (0, 10_000));
        b.row(Category::UserAnnotation, "gloo:send", 0, (1000, 4000));
        b.row(Category::CpuOp, "aten::mm", 0, (operator, 1500));
        let mut ledger = Ledger::new();
        let index = TraceIndex::new(&b.trace, &mut ledger);
        let collectives = recognise(&b.trace, &mut ledger);
        let steps = find_steps(&b.trace, &index, None, &mut ledger);
        let context = Context::new(&b.trace, &index, &collectives, &steps);
        let threads = host_threads(&context, &steps.steps[0]);
        assert_eq!((threads.len(), threads[1].is_messages), (2, true));
        let spans = |thread: &ThreadPieces, wanted: fn(&Work) -> bool| {
            let pieces = thread.pieces.iter().filter(|piece| wanted(&piece.work));
            pieces.map(|p| (p.start.nanos() / 1000, p.end.nanos() / 1000)).collect()
        };
        (
            spans(&threads[1], |work| matches!(work, Work::Collective { .. })),
            spans(&threads[0], |work| !matches!(work, Work::Run)),
        )
    }

    #[test]
    fn a_send_holds_its_thread_up_until_it_is_over() {
        assert_eq!(send(5100), (vec![(1000, 5000)], vec![(1000, 5000)]));
    }

    #[test]
    fn a_send_under_which_the_thread_computes_holds_nobody_up() {
        assert_eq!(send(3600), (vec![(1000, 5000)], vec![]));
    }
}
