//! Which runtime calls wait, for what, and until when.

use foretrain_core::Nanos;

use super::context::Context;
use super::host::Target;
use crate::index::is_graph_launch;

/// A call longer than this that frees or allocates memory may have waited for the device.
const LONG_CALL: Nanos = Nanos::from_micros(100);

/// Slack between the end of device work and the return of the call that waited for it.
const RETURN_SLACK: Nanos = Nanos::from_micros(50);

/// Device stamps may lie this much behind host stamps.
const STAMP_SLACK: Nanos = Nanos::from_micros(5);

/// A wait of a host thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wait {
    pub(super) start: Nanos,
    pub(super) end: Nanos,
    pub(super) targets: Vec<Target>,
    /// When the last target was over.
    pub(super) last_end: Nanos,
    /// What the call costs at most when it need not wait; the rest of its tail belongs to the wait.
    pub(super) most: Nanos,
}

/// What a runtime call synchronises with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    /// Everything launched before.
    Device,
    /// One stream, or the one that fits if the number is not recorded.
    Stream(Option<i64>),
    /// The copy that the call itself launched.
    OwnCopy,
    /// Nothing by contract, but drivers may drain the device.
    Maybe,
    /// The launch queue, if full.
    Queue,
}

/// The wait in a runtime call, if there was one.
pub(super) fn wait_of_call(context: &Context<'_>, call: u32) -> Option<Wait> {
    let trace = context.trace;
    let (start, end) = (trace.start[call as usize], trace.end(call as usize));
    let targets = match scope(context, call)? {
        Scope::Device => (0..context.index.streams.len())
            .filter_map(|stream| context.last_launched(stream, start))
            .collect(),
        Scope::Stream(Some(number)) => {
            let stream = context.stream_numbered(-1, number)?;
            context.last_launched(stream, start).into_iter().collect()
        }
        Scope::Stream(None) => stream_that_fits(context, call).into_iter().collect(),
        Scope::OwnCopy => context.index.launched_by(call).collect(),
        Scope::Maybe => drained_in(context, start, end).into_iter().collect(),
        Scope::Queue => return queue_wait(context, call),
    };
    let targets: Vec<u32> = targets;
    let over: Vec<u32> =
        targets.into_iter().filter(|&row| trace.end(row as usize) <= end + STAMP_SLACK).collect();
    let last_end = over.iter().map(|&row| trace.end(row as usize)).max()?;
    Some(Wait {
        start,
        end,
        targets: over.into_iter().map(Target::Device).collect(),
        last_end: last_end.min(end),
        most: Nanos::MAX,
    })
}

fn scope(context: &Context<'_>, call: u32) -> Option<Scope> {
    let trace = context.trace;
    let name = trace.name_of(call as usize);
    let duration = trace.duration[call as usize];
    let recorded_stream = || {
        let sync = context.index.sync_of_call.get(&call)?;
        let stream = trace.stream[*sync as usize];
        (stream >= 0).then_some(i64::from(stream))
    };
    if name.contains("DeviceSynchronize") || name.contains("CtxSynchronize") {
        Some(Scope::Device)
    } else if name.contains("StreamSynchronize") || name == "synchronizeStream" {
        Some(Scope::Stream(recorded_stream()))
    } else if name.contains("EventSynchronize") {
        Some(Scope::Stream(None))
    } else if name.contains("Memcpy") && context.index.launched_by(call).next().is_some() {
        own_copy_ends_inside(context, call).then_some(Scope::OwnCopy)
    } else if name.contains("Launch") && !is_graph_launch(name) {
        Some(Scope::Queue)
    } else if (name.contains("Free") || name.contains("Alloc") || name.contains("Malloc"))
        && duration >= LONG_CALL
    {
        Some(Scope::Maybe)
    } else {
        None
    }
}

/// Whether a copy call returned only after its copy: pageable memory makes it so.
fn own_copy_ends_inside(context: &Context<'_>, call: u32) -> bool {
    let end = context.trace.end(call as usize);
    context
        .index
        .launched_by(call)
        .all(|row| context.trace.end(row as usize) <= end + Nanos::from_micros(1))
}

/// The stream a synchronisation waited for, when its number is not recorded: the one whose last
/// launched work ended last within the call; else the one launched on last, if it was idle.
fn stream_that_fits(context: &Context<'_>, call: u32) -> Option<u32> {
    let trace = context.trace;
    let (start, end) = (trace.start[call as usize], trace.end(call as usize));
    let ends = |row: &u32| trace.end(*row as usize);
    let candidates: Vec<u32> = (0..context.index.streams.len())
        .filter_map(|stream| context.last_launched(stream, start))
        .filter(|row| ends(row) <= end + STAMP_SLACK)
        .collect();
    let inside = candidates.iter().copied().filter(|row| ends(row) > start).max_by_key(ends);
    inside.or_else(|| candidates.iter().copied().max_by_key(|&row| context.launched_at(row)))
}

/// Device work that ended right before a long call returned, after which nothing launched before
/// the call was left running: the call drained the device.
fn drained_in(context: &Context<'_>, start: Nanos, end: Nanos) -> Option<u32> {
    let trace = context.trace;
    let last = (0..context.index.streams.len())
        .filter_map(|stream| context.last_launched(stream, start))
        .max_by_key(|&row| trace.end(row as usize))?;
    let ended = trace.end(last as usize);
    let drained = ended > start && ended <= end;
    (drained && end - ended <= RETURN_SLACK.max((end - start).scale(0.1))).then_some(last)
}

/// A launch call that blocked because the launch queue was full waits for the device work that
/// was at the head of the queue when it returned.
fn queue_wait(context: &Context<'_>, call: u32) -> Option<Wait> {
    let (trace, typical) = (context.trace, &context.typical);
    let (start, end) = (trace.start[call as usize], trace.end(call as usize));
    let full = typical.queue_was_full
        && f64::from(context.queue_depth(call)) >= 0.97 * f64::from(typical.queue_capacity);
    if !full || end - start <= typical.launch_call.scale(2.0) {
        return None;
    }
    let own = context.index.launched_by(call).next()?;
    let stream = context
        .stream_numbered(trace.device[own as usize], i64::from(trace.stream[own as usize]))?;
    let rows = &context.index.streams[stream].rows;
    let ended = rows.partition_point(|&row| trace.end(row as usize) <= end);
    let head = *rows.get(ended.checked_sub(1)?)?;
    let last_end = trace.end(head as usize);
    (last_end > start && end - last_end <= RETURN_SLACK.scale(4.0)).then_some(Wait {
        start,
        end,
        targets: vec![Target::QueueSlot(head)],
        last_end,
        most: typical.launch_call,
    })
}
