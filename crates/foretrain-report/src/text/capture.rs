//! What captures say, as a section of `inspect`.

use foretrain_core::Bytes;

use super::inspect::{SIDE_BY_SIDE, more, nanos};
use super::sheet::Sheet;
use super::table::{Side, Table};
use super::units::{counted, ms, name, percent, size};
use crate::json::{
    CaptureReport, CapturedEnvironmentReport, CapturedLayoutReport, CapturedStepsReport,
    InspectReport, MomentsReport,
};

/// Notes listed.
const NOTES: usize = 8;
/// Buckets whose sizes are listed.
const BUCKETS: usize = 6;

/// The section, if there are captures.
pub(super) fn captures(report: &InspectReport, sheet: &mut Sheet) {
    let captures: Vec<(u32, &CaptureReport)> = report
        .ranks
        .iter()
        .filter_map(|rank| rank.capture.as_ref().map(|capture| (rank.rank, capture)))
        .collect();
    if captures.is_empty() {
        return;
    }
    sheet.heading("Capture");
    let shown = &captures[..captures.len().min(SIDE_BY_SIDE)];
    let heads: Vec<String> = shown.iter().map(|(rank, _)| format!("Rank {rank}")).collect();
    let mut columns = vec![("Measured by foretrain.capture", Side::Left)];
    columns.extend(heads.iter().map(|head| (head.as_str(), Side::Right)));
    let mut table = Table::new(&columns);
    for (what, tell) in ROWS {
        let cells: Vec<String> = shown.iter().map(|(_, capture)| tell(capture)).collect();
        if cells.iter().any(|cell| !cell.is_empty()) {
            let told =
                cells.into_iter().map(|cell| if cell.is_empty() { "-".into() } else { cell });
            table.row(std::iter::once((*what).to_owned()).chain(told).collect());
        }
    }
    sheet.table(table);
    if let Some(more) = more(captures.len(), shown.len()) {
        let more = counted(more, "more capture");
        sheet.paragraph("", &format!("{more} not shown; --json lists all."));
    }
    said(&captures, sheet);
}

/// A row's title and its cell, empty if not known.
type Row = (&'static str, fn(&CaptureReport) -> String);

const ROWS: &[Row] = &[
    ("step without profiler, ms", |c| step(&c.unprofiled)),
    ("spread of such steps", |c| maybe(c.unprofiled.relative_spread, percent)),
    ("step with profiler, ms", |c| {
        let factor = maybe(c.profiler_factor, |factor| format!(", x{factor:.2}"));
        format!("{}{factor}", step(&c.profiled))
    }),
    ("step with hooks, ms", |c| step(&c.hooked)),
    ("recorder's own time", |c| {
        maybe(c.unprofiled.recorder_share, |part| format!("{:.3} %", part * 100.0))
    }),
    ("wait for input, ms", |c| time(c.unprofiled.input_wait_ns)),
    ("forward ends after, ms", |c| moment(c, |m| m.forward_end_ns)),
    ("gradients ready after, ms", gradients),
    ("optimizer after, ms", |c| {
        let (start, end) = (moment(c, |m| m.optimizer_start_ns), moment(c, |m| m.optimizer_end_ns));
        if start.is_empty() { start } else { format!("{start}-{end}") }
    }),
    ("forward passes per step", passes),
    ("samples per replica and step", |c| maybe(c.replica_batch, |batch| batch.to_string())),
    ("model", |c| name(&c.model, 40)),
    ("parameters", |c| {
        if c.model.is_empty() {
            String::new()
        } else {
            format!("{}, {}", c.parameters, sized(c.parameter_bytes))
        }
    }),
    ("gradients", |c| bytes(c.gradient_bytes)),
    ("buffers", |c| bytes(c.buffer_bytes)),
    ("optimizer state", |c| bytes(c.optimizer_state_bytes)),
    ("layout", |c| layout(&c.layout)),
    ("buckets or units", |c| buckets(&c.layout.bytes)),
    ("memory peak", |c| {
        let device = c.memory.reserved_bytes.or(c.memory.allocated_bytes);
        maybe(device.or(c.memory.resident_bytes), sized)
    }),
    ("device", |c| device(&c.environment)),
    ("cores", |c| cores(&c.environment)),
    ("PyTorch", |c| name(&c.environment.torch, 24)),
    ("backend", |c| name(&c.environment.backend, 24)),
];

fn maybe<T>(value: Option<T>, tell: impl FnOnce(T) -> String) -> String {
    value.map_or_else(String::new, tell)
}

fn time(ns: Option<i64>) -> String {
    maybe(ns, |ns| ms(nanos(ns)))
}

fn sized(bytes: u64) -> String {
    size(Some(Bytes::new(bytes)))
}

fn bytes(count: u64) -> String {
    if count == 0 { String::new() } else { sized(count) }
}

fn step(steps: &CapturedStepsReport) -> String {
    let clock = if steps.on_device { ", device" } else { "" };
    maybe(steps.median_ns, |ns| format!("{} (n={}{clock})", ms(nanos(ns)), steps.steps))
}

fn moment(capture: &CaptureReport, pick: fn(&MomentsReport) -> Option<i64>) -> String {
    time(capture.moments.as_ref().and_then(pick))
}

fn gradients(capture: &CaptureReport) -> String {
    let first = moment(capture, |moments| moments.first_gradient_ns);
    let last = moment(capture, |moments| moments.last_gradient_ns);
    if first.is_empty() { first } else { format!("{first}-{last}") }
}

fn passes(capture: &CaptureReport) -> String {
    let Some(moments) = &capture.moments else { return String::new() };
    match (moments.forwards_per_step, moments.synchronised_per_step) {
        (Some(all), Some(some)) if some < all => format!("{all}, {some} synchronised"),
        (Some(all), _) => all.to_string(),
        _ => String::new(),
    }
}

fn layout(layout: &CapturedLayoutReport) -> String {
    let mut text = layout.kind.clone();
    if let Some(cap) = layout.bucket_cap_bytes {
        text += &format!(", cap {}", sized(cap));
    }
    if layout.gradient_as_bucket_view == Some(true) {
        text += ", gradients in buckets";
    }
    if layout.broadcast_buffers == Some(true) {
        text += ", buffers broadcast";
    }
    for hook in layout.hooks.iter().take(2) {
        text += &format!(", {}", name(hook, 30));
    }
    text
}

fn buckets(sizes: &[u64]) -> String {
    let listed: Vec<String> = sizes.iter().take(BUCKETS).map(|&bytes| sized(bytes)).collect();
    match more(sizes.len(), BUCKETS) {
        Some(more) => format!("{} and {more} more", listed.join(", ")),
        None => listed.join(", "),
    }
}

fn device(environment: &CapturedEnvironmentReport) -> String {
    let device = if environment.device.is_empty() { &environment.cpu } else { &environment.device };
    name(device, 40)
}

fn cores(environment: &CapturedEnvironmentReport) -> String {
    let Some(cores) = environment.usable_cores else { return String::new() };
    let quota = maybe(environment.quota_cores, |quota| format!(", quota {quota:.2}"));
    let threads =
        maybe(environment.threads, |threads| format!(", {}", counted(threads as usize, "thread")));
    format!("{cores}{quota}{threads}")
}

/// What is missing and what went wrong, the same of several ranks once.
fn said(captures: &[(u32, &CaptureReport)], sheet: &mut Sheet) {
    let mut lines: Vec<(String, Vec<u32>)> = Vec::new();
    for (rank, capture) in captures {
        let missing = capture.missing.iter().map(|what| format!("incomplete: {what}"));
        for line in missing.chain(capture.notes.iter().cloned()) {
            match lines.iter_mut().find(|(known, _)| *known == line) {
                Some((_, ranks)) => ranks.push(*rank),
                None => lines.push((line, vec![*rank])),
            }
        }
    }
    for (line, ranks) in lines.iter().take(NOTES) {
        let who = match ranks.as_slice() {
            [one] => format!("rank {one}"),
            [..] if ranks.len() == captures.len() => "all ranks".into(),
            [..] => counted(ranks.len(), "rank"),
        };
        sheet.paragraph("", &format!("{who}: {}", name(line, 400)));
    }
    if let Some(more) = more(lines.len(), NOTES) {
        sheet.paragraph("", &format!("and {}; --json lists all", counted(more, "more note")));
    }
}
