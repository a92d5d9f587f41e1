//! When the main thread waits for work of other threads and for messages under way.
//!
//! A recording shows no such wait; it shows a gap in which the main thread ran nothing and
//! something else ended. Whether the gap was a wait follows from what the program may do there:
//! an operator that runs waits for nobody, a reducer's futures are waited for when the backward
//! pass is over, and a thread that waits goes on promptly.

use foretrain_core::Nanos;
use foretrain_graph::{CollectiveKind, Phase};

use super::blocks::Block;
use super::context::Context;
use super::host::is_accumulate_grad;
use crate::category::Category;
use crate::index::NO_ROW;
use crate::steps::Step;
use crate::table::TrackId;

/// Main-thread gaps shorter than this are never waits for another thread.
const SHORTEST_WAIT: Nanos = Nanos::from_micros(100);

/// A stretch of the main thread in which nothing ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Gap {
    start: Nanos,
    end: Nanos,
    /// Phases, as far as names tell, of what ran last before it and first after it.
    before: Phase,
    after: Phase,
}

impl Gap {
    /// Whether a reducer may wait for its all-reduces here. It does so at the end of the backward
    /// pass that issued them, so not between two operators of that pass, and the optimizer only
    /// begins when it has.
    fn may_be_of_reducer(&self) -> bool {
        let inside = |phase| self.before == phase && self.after == phase;
        !inside(Phase::Backward) && self.before != Phase::Optimizer
    }
}

/// A wait of the main thread for others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Join {
    pub(super) start: Nanos,
    pub(super) end: Nanos,
    /// `(thread position, block position)` of everything that had ended by then and was open.
    pub(super) ended: Vec<(usize, usize)>,
}

/// What somebody else does while the main thread goes on.
struct Other<'a> {
    block: &'a Block,
    track: TrackId,
    /// Whether it is a message of the main thread's own, whose record ends with its wait.
    is_message: bool,
    /// Whether it is an all-reduce of a gradient reducer.
    is_reducers: bool,
}

/// The waits of the main thread, the first of `threads`: gaps in which blocks of the others ended
/// that it waited for. A block is waited for once, in the gap that shares most time with it: later
/// gaps of which its record's tail makes a candidate are the main thread's own.
pub(super) fn joins(
    context: &Context<'_>,
    step: &Step,
    threads: &[(TrackId, &[Block])],
) -> Vec<Join> {
    let Some(&(main, _)) = threads.first() else { return Vec::new() };
    let gaps = main_gaps(context, step, main);
    let mut ended: Vec<Vec<(usize, usize)>> = vec![Vec::new(); gaps.len()];
    let mut closed_late = Vec::new();
    for (t, (track, blocks)) in threads.iter().enumerate().skip(1) {
        for (b, block) in blocks.iter().enumerate() {
            let other = Other {
                block,
                track: *track,
                is_message: *track == main,
                is_reducers: is_reducers(context, block),
            };
            let candidates = overlapping(&gaps, block)
                .filter(|&i| !other.is_reducers || gaps[i].may_be_of_reducer());
            let best = longest(
                &gaps,
                block,
                candidates.clone().filter(|&i| is_waited_for(context, &gaps[i], &other)),
            );
            match best {
                Some(best) => ended[best].push((t, b)),
                None if other.is_reducers => {
                    closed_late.push((t, b, candidates.collect::<Vec<usize>>()));
                }
                None => {}
            }
        }
    }
    // The optimizer does not begin before the reducer is done. Where a record lasts longer, the
    // thread that completed the operation woke the main one and got no processor to close its
    // record: the wait is then a gap that nothing else explains.
    for (t, b, candidates) in closed_late {
        let open = candidates.into_iter().filter(|&i| ended[i].is_empty());
        if let Some(best) = longest(&gaps, &threads[t].1[b], open) {
            ended[best].push((t, b));
        }
    }
    gaps.iter().zip(ended).filter_map(|(gap, ended)| join(gap, ended, threads)).collect()
}

/// Stretches of the main thread in which it ran nothing. The library's own operators run from
/// their beginning to their end whatever the recording shows inside them; a pause there is one of
/// the processor's. Records of operations under way are no work of the thread.
fn main_gaps(context: &Context<'_>, step: &Step, main: TrackId) -> Vec<Gap> {
    let trace = context.trace;
    let Some(thread) = context.index.thread(main) else { return Vec::new() };
    let from = thread.rows.partition_point(|&row| trace.start[row as usize] < step.start);
    let mut gaps = Vec::new();
    let mut gap =
        Gap { start: step.start, end: step.start, before: Phase::Unknown, after: Phase::Unknown };
    let mut close = |gap: Gap| {
        if gap.end - gap.start >= SHORTEST_WAIT {
            gaps.push(gap);
        }
    };
    for &row in &thread.rows[from..] {
        let start = trace.start[row as usize];
        if start >= step.end {
            break;
        }
        let runs = context.is_leaf(row) || is_library_operator(context, row);
        if !runs || context.is_host_operation(row) {
            continue;
        }
        let phase = context.phases.named(row);
        close(Gap { end: start, after: phase, ..gap });
        if trace.end(row as usize) >= gap.start {
            gap = Gap { start: trace.end(row as usize), before: phase, ..gap };
        }
    }
    close(Gap { end: step.end, ..gap });
    gaps
}

/// Whether a row is an operator that blocks on no process group: it computes, or it only issues.
/// One on a distributed tensor communicates inside, and may wait there.
fn is_library_operator(context: &Context<'_>, row: u32) -> bool {
    let name = context.trace.name_of(row as usize);
    context.trace.category[row as usize] == Category::CpuOp
        && (name.starts_with("aten::") || name.starts_with("c10d::"))
        && !name.contains("barrier")
        && !context.issues_inside(row)
}

/// Whether a block is an all-reduce that a gradient reducer issued: from the hook of a parameter's
/// gradient.
fn is_reducers(context: &Context<'_>, block: &Block) -> bool {
    let Some(op) = block.collective.and_then(|row| context.op(row)) else { return false };
    let mut row = op.issue_row.unwrap_or(NO_ROW);
    while row != NO_ROW && !is_accumulate_grad(context.trace.name_of(row as usize)) {
        row = context.index.parent[row as usize];
    }
    op.kind == CollectiveKind::AllReduce && row != NO_ROW
}

/// Positions of the gaps that share time with a block; gaps are sorted and disjoint.
fn overlapping<'a>(gaps: &'a [Gap], block: &'a Block) -> impl Iterator<Item = usize> + Clone + 'a {
    let from = gaps.partition_point(|gap| gap.end <= block.start);
    (from..gaps.len()).take_while(|&i| gaps[i].start < block.end)
}

/// The gap that shares most time with a block, the first of equals.
fn longest(gaps: &[Gap], block: &Block, among: impl Iterator<Item = usize>) -> Option<usize> {
    let overlap = |i: usize| gaps[i].end.min(block.end) - gaps[i].start.max(block.start);
    among.max_by_key(|&i| (overlap(i), std::cmp::Reverse(i)))
}

/// Whether a gap of the main thread may be a wait for a block that ends in it.
///
/// Backward work on its own thread is always waited for, and so is a message of the thread's own.
/// A host-side collective is waited for if the main thread goes on promptly after its end. The
/// record of a collective may end a little after the main thread goes on, for it includes its own
/// completion callback; the wait then ends at the record's end or the gap's, whichever is earlier.
fn is_waited_for(context: &Context<'_>, gap: &Gap, other: &Other<'_>) -> bool {
    let block = other.block;
    let late = (block.end - gap.end).clamp_positive();
    if other.is_message {
        return late == Nanos::ZERO;
    }
    if block.collective.is_none() {
        return late == Nanos::ZERO && is_backward(context, block, other.track);
    }
    let tolerated = Nanos::from_millis(1).max((block.end - block.start).scale(0.02));
    let prompt = gap.end - block.end.min(gap.end);
    let soon = Nanos::from_micros(300).max((gap.end - gap.start).scale(0.05));
    late <= tolerated && prompt <= soon
}

/// The wait in a gap for the blocks that ended in it.
fn join(gap: &Gap, ended: Vec<(usize, usize)>, threads: &[(TrackId, &[Block])]) -> Option<Join> {
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
        .any(|&row| context.phases.named(row) == Phase::Backward)
}

#[cfg(test)]
mod tests {
    use foretrain_core::Ledger;

    use super::*;
    use crate::build::blocks::{blocks_of_thread, messages};
    use crate::collectives::recognise;
    use crate::collectives::testing::Builder;
    use crate::index::TraceIndex;
    use crate::steps::find_steps;

    const MAIN: u32 = 0;
    const GLOO: u32 = 1;

    /// A step of 10 ms.
    fn step() -> Builder {
        let mut b = Builder::new();
        b.row(Category::UserAnnotation, "ProfilerStep#1", MAIN, (0, 10_000));
        b
    }

    fn add(b: &mut Builder, category: Category, name: &str, track: u32, at: (i64, i64)) -> u32 {
        b.row(category, name, track, (at.0, at.1 - at.0))
    }

    /// `(start, end, what ended)` of the main thread's waits, in microseconds.
    fn waits_of(b: &Builder) -> Vec<(i64, i64, usize)> {
        let mut ledger = Ledger::new();
        let index = TraceIndex::new(&b.trace, &mut ledger);
        let collectives = recognise(&b.trace, &mut ledger);
        let steps = find_steps(&b.trace, &index, None, &mut ledger);
        let context = Context::new(&b.trace, &index, &collectives, &steps);
        let (main, step) = (steps.main.expect("main thread"), &steps.steps[0]);
        let mut threads: Vec<(TrackId, Vec<Block>)> = vec![(main, Vec::new())];
        for thread in index.threads.iter().filter(|thread| thread.track != main) {
            threads.push((thread.track, blocks_of_thread(&context, step, thread, main)));
        }
        threads.extend(messages(&context, step, main).into_iter().map(|lane| (main, lane)));
        let threads: Vec<(TrackId, &[Block])> =
            threads.iter().map(|(track, blocks)| (*track, blocks.as_slice())).collect();
        let micros = |time: Nanos| time.nanos() / 1000;
        joins(&context, step, &threads)
            .iter()
            .map(|join| (micros(join.start), micros(join.end), join.ended.len()))
            .collect()
    }

    /// The waits of a main thread with these operators and these all-reduces on a gloo thread.
    fn waits(main: &[(i64, i64)], gloo: &[(i64, i64)]) -> Vec<(i64, i64, usize)> {
        let mut b = step();
        for &at in main {
            add(&mut b, Category::CpuOp, "aten::mm", MAIN, at);
        }
        for &at in gloo {
            add(&mut b, Category::UserAnnotation, "gloo:all_reduce", GLOO, at);
        }
        waits_of(&b)
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

    #[test]
    fn an_operator_that_pauses_does_not_wait() {
        let mut b = step();
        add(&mut b, Category::CpuOp, "aten::convolution_backward", MAIN, (0, 10_000));
        add(&mut b, Category::CpuOp, "aten::copy_", MAIN, (100, 2000));
        add(&mut b, Category::CpuOp, "aten::copy_", MAIN, (6000, 9000));
        add(&mut b, Category::UserAnnotation, "gloo:all_reduce", GLOO, (1000, 5990));
        assert_eq!(waits_of(&b), []);
    }

    #[test]
    fn an_operator_on_a_distributed_tensor_waits_inside() {
        let mut b = step();
        add(&mut b, Category::CpuOp, "aten::mm", MAIN, (0, 10_000));
        let issue = add(&mut b, Category::CpuOp, "c10d::allreduce_", MAIN, (100, 200));
        b.shape(issue, "[[[64]], []]", r#"["TensorList", ""]"#);
        add(&mut b, Category::CpuOp, "aten::addmm", MAIN, (6000, 9000));
        let row = add(&mut b, Category::UserAnnotation, "gloo:all_reduce", GLOO, (150, 5990));
        b.shape(row, "[[64]]", r#"["float"]"#);
        assert_eq!(waits_of(&b), [(200, 5990, 1)]);
    }

    /// Backward operators with a pause, of which the first issues a reducer's all-reduce, then a
    /// gap, then the optimizer from 7 ms on. The all-reduce ends at `end`.
    fn reducer(end: i64) -> Builder {
        let mut b = step();
        let accumulate = "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad";
        add(&mut b, Category::CpuOp, accumulate, MAIN, (0, 1000));
        let issue = add(&mut b, Category::CpuOp, "c10d::allreduce_", MAIN, (800, 900));
        b.shape(issue, "[[[64]], []]", r#"["TensorList", ""]"#);
        let backward = "autograd::engine::evaluate_function: MmBackward0";
        add(&mut b, Category::CpuOp, backward, MAIN, (3000, 4000));
        add(&mut b, Category::UserAnnotation, "Optimizer.step#SGD.step", MAIN, (7000, 10_000));
        add(&mut b, Category::CpuOp, "aten::add_", MAIN, (7000, 8000));
        add(&mut b, Category::CpuOp, "aten::add_", MAIN, (9500, 10_000));
        let row = add(&mut b, Category::UserAnnotation, "gloo:all_reduce", GLOO, (850, end));
        b.shape(row, "[[64]]", r#"["float"]"#);
        b
    }

    #[test]
    fn a_reducer_waits_at_the_end_of_the_backward_pass() {
        assert_eq!(waits_of(&reducer(6990)), [(4000, 6990, 1)]);
        assert_eq!(waits_of(&reducer(2990)), [], "the pause between two backward operators");
    }

    #[test]
    fn a_record_that_is_closed_under_the_optimizer_was_waited_for_before_it() {
        for closed in [7900, 9300, 9900] {
            assert_eq!(waits_of(&reducer(closed)), [(4000, 7000, 1)], "closed at {closed} us");
        }
    }

    #[test]
    fn messages_are_waited_for_where_their_records_end() {
        let mut b = step();
        add(&mut b, Category::CpuOp, "aten::mm", MAIN, (0, 1000));
        add(&mut b, Category::UserAnnotation, "gloo:send", MAIN, (1000, 4000));
        add(&mut b, Category::UserAnnotation, "gloo:recv", MAIN, (1100, 4050));
        // One under which the thread goes on computing.
        add(&mut b, Category::UserAnnotation, "gloo:send", MAIN, (4500, 8000));
        add(&mut b, Category::CpuOp, "aten::mm", MAIN, (5000, 10_000));
        assert_eq!(waits_of(&b), [(1100, 4050, 2)]);
    }
}
