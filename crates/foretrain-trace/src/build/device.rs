//! Device work of one step: which rows belong to it, on which queue each runs, and what held
//! each one back.

use foretrain_core::{Ledger, Nanos, Severity};
use foretrain_graph::EdgeOrigin;
use rustc_hash::FxHashMap;

use super::context::Context;
use crate::category::Category;
use crate::index::NO_ROW;
use crate::steps::Step;
use crate::table::TrackId;

/// Device stamps of old traces are rounded to microseconds, so neighbours may overlap by one.
const ROUNDING: Nanos = Nanos::from_micros(1);

/// Work that starts this soon after an event on another stream was waiting for it.
const EVENT_SLACK: Nanos = Nanos::from_micros(20);

/// One piece of device work.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DeviceWork {
    pub(super) row: u32,
    /// Position of the stream in the index.
    pub(super) stream: usize,
    /// 0, or higher for work that overlaps earlier work of its own stream.
    pub(super) lane: usize,
    pub(super) start: Nanos,
    pub(super) end: Nanos,
    /// Launch call, [`NO_ROW`] if none.
    pub(super) call: u32,
    /// Launched before the step.
    pub(super) carry_in: bool,
    /// Incoming constraints.
    pub(super) holds: Vec<Hold>,
}

/// One constraint on the start of device work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    /// Earlier work of the same stream (position in the list).
    Stream { from: usize, lag: Nanos },
    /// The launch call; the lag counts from the start of the call.
    Launch { lag: Nanos },
    /// Work of another stream (position in the list).
    Event { from: usize, lag: Nanos, origin: EdgeOrigin },
    /// Nothing else: released this long after the step's start.
    Release { after: Nanos },
}

/// All device work of a step, sorted by start, with the constraints that the recording shows.
pub(super) fn device_work(
    context: &Context<'_>,
    step: &Step,
    ledger: &mut Ledger,
) -> Vec<DeviceWork> {
    let mut work = select(context, step);
    assign_lanes(&mut work, ledger);
    let position: FxHashMap<u32, usize> =
        work.iter().enumerate().map(|(i, w)| (w.row, i)).collect();
    let mut events = recorded_waits(context, step, &work, &position);
    rule_waits(context, step, &work, &position, &mut events, ledger);
    hold_all(context, step, &mut work, &events);
    work
}

fn select(context: &Context<'_>, step: &Step) -> Vec<DeviceWork> {
    let (trace, index) = (context.trace, context.index);
    let mut work = Vec::new();
    for (stream, rows) in index.streams.iter().enumerate() {
        for &row in &rows.rows {
            let (start, end) = (trace.start[row as usize], trace.end(row as usize));
            let launched = context.launched_at(row).min(start.max(step.start));
            let belongs = launched >= step.start && launched < step.end;
            let carry_in = launched < step.start && end > step.start;
            if belongs || carry_in {
                work.push(DeviceWork {
                    row,
                    stream,
                    lane: 0,
                    start: start.max(step.start),
                    end,
                    call: if carry_in { NO_ROW } else { index.launch[row as usize] },
                    carry_in,
                    holds: Vec::new(),
                });
            }
        }
    }
    work.sort_by_key(|w| (w.start, w.end, w.stream, w.row));
    work
}

/// Work that overlaps its predecessor on the same stream goes to a lane of its own (programmatic
/// dependent launch, graph branches); overlaps by stamp rounding are cut off the predecessor.
fn assign_lanes(work: &mut [DeviceWork], ledger: &mut Ledger) {
    let mut last: FxHashMap<(usize, usize), usize> = FxHashMap::default();
    for i in 0..work.len() {
        let (stream, start) = (work[i].stream, work[i].start);
        let mut lane = 0;
        while let Some(&previous) = last.get(&(stream, lane)) {
            let overlap = work[previous].end - start;
            if overlap <= Nanos::ZERO {
                break;
            }
            if overlap <= ROUNDING && start > work[previous].start {
                work[previous].end = start;
                break;
            }
            lane += 1;
        }
        if lane > 0 {
            ledger.record(
                Severity::Note,
                "stream-overlap",
                "work overlaps earlier work of its own stream; given a lane of its own",
            );
        }
        work[i].lane = lane;
        last.insert((stream, lane), i);
    }
}

/// An event wait between two pieces of device work.
struct EventWait {
    from: usize,
    to: usize,
    origin: EdgeOrigin,
}

/// Waits of streams for events of other streams, where the profiler recorded them.
fn recorded_waits(
    context: &Context<'_>,
    step: &Step,
    work: &[DeviceWork],
    position: &FxHashMap<u32, usize>,
) -> Vec<EventWait> {
    let trace = context.trace;
    let mut waits = Vec::new();
    let calls: FxHashMap<u64, u32> = trace
        .sync_args
        .iter()
        .map(|args| args.wait_on_record_correlation)
        .filter(|&correlation| correlation != 0)
        .map(|correlation| (correlation, NO_ROW))
        .collect();
    if calls.is_empty() {
        return waits;
    }
    let record_time: FxHashMap<u64, Nanos> = (0..trace.len())
        .filter(|&row| {
            trace.category[row] == Category::Runtime && calls.contains_key(&trace.correlation[row])
        })
        .map(|row| (trace.correlation[row], trace.start[row]))
        .collect();
    let call_time: FxHashMap<u32, Nanos> = sorted_pairs(&context.index.sync_of_call)
        .into_iter()
        .map(|(call, sync)| (sync, trace.start[call as usize]))
        .collect();
    for args in &trace.sync_args {
        let Some(&called) = call_time.get(&args.row) else { continue };
        if called < step.start || called >= step.end || args.wait_on_stream < 0 {
            continue;
        }
        let Some(&recorded) = record_time.get(&args.wait_on_record_correlation) else { continue };
        let device = trace.device[args.row as usize];
        let source = context
            .stream_numbered(device, args.wait_on_stream)
            .and_then(|stream| context.last_launched(stream, recorded));
        let target = context
            .stream_numbered(device, i64::from(trace.stream[args.row as usize]))
            .and_then(|stream| context.first_launched(stream, called));
        let pair = source.and_then(|s| position.get(&s)).zip(target.and_then(|t| position.get(&t)));
        if let Some((&from, &to)) = pair
            && from != to
            && work[from].end <= work[to].start
        {
            waits.push(EventWait { from, to, origin: EdgeOrigin::Recorded });
        }
    }
    waits
}

fn sorted_pairs(map: &FxHashMap<u32, u32>) -> Vec<(u32, u32)> {
    let mut pairs: Vec<(u32, u32)> = map.iter().map(|(&a, &b)| (a, b)).collect();
    pairs.sort_unstable();
    pairs
}

/// The ordering rules of PyTorch's process groups, where nothing was recorded: a collective waits
/// for the work issued before it by the same thread, and the work issued after `wait` (a
/// stream-wait call that no collective follows) waits for the collectives that are out.
fn rule_waits(
    context: &Context<'_>,
    step: &Step,
    work: &[DeviceWork],
    position: &FxHashMap<u32, usize>,
    waits: &mut Vec<EventWait>,
    ledger: &mut Ledger,
) {
    let recorded = waits.len();
    let trace = context.trace;
    for thread in &context.index.threads {
        let mut last_compute: Option<usize> = None;
        let mut out: Vec<usize> = Vec::new();
        let mut wait_pending = false;
        let from = thread.rows.partition_point(|&row| trace.start[row as usize] < step.start);
        for &row in &thread.rows[from..] {
            if trace.start[row as usize] >= step.end {
                break;
            }
            if trace.category[row as usize] != Category::Runtime {
                continue;
            }
            if trace.name_of(row as usize).contains("StreamWaitEvent") {
                wait_pending = true;
                continue;
            }
            for device_row in context.index.launched_by(row) {
                let Some(&at) = position.get(&device_row) else { continue };
                if context.op(device_row).is_some() {
                    waits.extend(
                        last_compute
                            .filter(|&c| {
                                work[c].stream != work[at].stream && work[c].end <= work[at].start
                            })
                            .map(|from| EventWait { from, to: at, origin: EdgeOrigin::Inferred }),
                    );
                    out.push(at);
                } else {
                    if wait_pending {
                        // A collective that still runs here was not what the call waited for.
                        let over = |c: &usize| work[*c].end <= work[at].start;
                        waits.extend(out.iter().filter(|c| over(c)).map(|&from| EventWait {
                            from,
                            to: at,
                            origin: EdgeOrigin::Inferred,
                        }));
                        out.retain(|c| !over(c));
                    }
                    last_compute = Some(at);
                }
                wait_pending = false;
            }
        }
    }
    ledger.record_many(
        Severity::Inferred,
        "process-group-order",
        "stream waits of collectives deduced from PyTorch's process-group rules",
        (waits.len() - recorded) as u64,
        None,
    );
}

/// Decides, for each piece of work, what held it back, and adds the other constraints with a
/// typical delay, so that all of them hold in the recording and one is tight.
fn hold_all(context: &Context<'_>, step: &Step, work: &mut [DeviceWork], events: &[EventWait]) {
    let mut events_of: FxHashMap<usize, Vec<(usize, EdgeOrigin)>> = FxHashMap::default();
    for event in events {
        events_of.entry(event.to).or_default().push((event.from, event.origin));
    }
    let mut by_end: Vec<usize> = (0..work.len()).collect();
    by_end.sort_by_key(|&i| (work[i].end, i));
    let ends: Vec<Nanos> = by_end.iter().map(|&i| work[i].end).collect();
    let mut last: FxHashMap<(usize, usize), usize> = FxHashMap::default();
    for i in 0..work.len() {
        let this = &work[i];
        let lane = (this.stream, this.lane);
        // Work in a lane of its own still follows the main lane of its stream.
        let previous = last.get(&lane).or_else(|| last.get(&(this.stream, 0))).copied();
        let mut known = events_of.remove(&i).unwrap_or_default();
        let explained = explained_start(context, work, i, previous, &known);
        if this.start - explained
            > context.typical.launch_latency.scale(0.5).max(ROUNDING.scale(4.0))
            && let Some(from) = event_that_fits(context, work, &by_end, &ends, i, explained)
            && !known.iter().any(|&(known, _)| known == from)
        {
            known.push((from, EdgeOrigin::Inferred));
        }
        let holds = holds_of(context, step, work, i, previous, &known);
        work[i].holds = holds;
        last.insert(lane, i);
    }
}

/// When work could have started by the constraints known so far, with typical delays.
fn explained_start(
    context: &Context<'_>,
    work: &[DeviceWork],
    i: usize,
    previous: Option<usize>,
    known: &[(usize, EdgeOrigin)],
) -> Nanos {
    let this = &work[i];
    let typical = &context.typical;
    let stream = previous.map(|p| work[p].end + typical.stream_gap);
    let launch = (this.call != NO_ROW)
        .then(|| context.trace.start[this.call as usize] + typical.launch_latency);
    let event = known.iter().map(|&(from, _)| work[from].end).max();
    [stream, launch, event].into_iter().flatten().max().unwrap_or(Nanos::MIN)
}

/// Work of another stream of the same device, launched earlier, that ended just before.
fn event_that_fits(
    context: &Context<'_>,
    work: &[DeviceWork],
    by_end: &[usize],
    ends: &[Nanos],
    i: usize,
    explained: Nanos,
) -> Option<usize> {
    let this = &work[i];
    let device = |w: &DeviceWork| context.index.streams[w.stream].device;
    let upto = ends.partition_point(|&end| end <= this.start);
    by_end[..upto]
        .iter()
        .rev()
        .take(16)
        .copied()
        .take_while(|&j| this.start - work[j].end <= EVENT_SLACK && work[j].end > explained)
        .find(|&j| {
            let other = &work[j];
            j != i
                && other.stream != this.stream
                && device(other) == device(this)
                && (this.call == NO_ROW || launched_before(context, other, this))
        })
}

fn launched_before(context: &Context<'_>, other: &DeviceWork, this: &DeviceWork) -> bool {
    other.carry_in || context.launched_at(other.row) < context.launched_at(this.row)
}

fn holds_of(
    context: &Context<'_>,
    step: &Step,
    work: &[DeviceWork],
    i: usize,
    previous: Option<usize>,
    known: &[(usize, EdgeOrigin)],
) -> Vec<Hold> {
    let this = &work[i];
    let typical = &context.typical;
    let start = this.start;
    let launch = (this.call != NO_ROW).then(|| context.trace.start[this.call as usize]);
    let last_event = known.iter().map(|&(from, _)| work[from].end).max();
    let stream_end = previous.map(|p| work[p].end);
    // The tight constraint is the one whose source came last.
    let latest = [
        stream_end.map(|t| (t + typical.stream_gap.min((start - t).clamp_positive()), 0)),
        launch.map(|t| (t + typical.launch_latency.min((start - t).clamp_positive()), 1)),
        last_event.map(|t| (t, 2)),
    ]
    .into_iter()
    .flatten()
    .max();
    let tight = latest.map(|(_, which)| which);
    let mut holds = Vec::with_capacity(2 + known.len());
    if let (Some(from), Some(end)) = (previous, stream_end) {
        let slack = start - end;
        let lag = if tight == Some(0) { slack } else { slack.min(typical.stream_gap) };
        holds.push(Hold::Stream { from, lag });
    }
    if let Some(call) = launch {
        let slack = start - call;
        let lag = if tight == Some(1) { slack } else { slack.min(typical.launch_latency) };
        holds.push(Hold::Launch { lag });
    }
    for &(from, origin) in known {
        let is_last = tight == Some(2) && Some(work[from].end) == last_event;
        let lag = if is_last { start - work[from].end } else { Nanos::ZERO };
        holds.push(Hold::Event { from, lag, origin });
    }
    if holds.is_empty() {
        holds.push(Hold::Release { after: start - step.start });
    }
    holds
}

/// The host thread that launched a piece of work, if any.
pub(super) fn launching_track(context: &Context<'_>, work: &DeviceWork) -> Option<TrackId> {
    (work.call != NO_ROW).then(|| context.trace.track[work.call as usize])
}
