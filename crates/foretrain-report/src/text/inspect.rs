//! What is in a job's traces, as tables.

use foretrain_core::{Bandwidth, Bytes, Nanos};

use super::TextStyle;
use super::capture::captures;
use super::ledger::{ledger, warnings};
use super::sheet::Sheet;
use super::table::{Side, Table};
use super::units::{counted, gb_per_s, ms, name, percent, percent_of, size};
use crate::json::{
    CollectiveUseReport, InspectReport, OwnerReport, RankReport, StepReport, TogetherReport,
};

/// Steps listed one by one; the rest is summed up.
const STEPS: usize = 12;
/// Ranks listed side by side.
pub(super) const SIDE_BY_SIDE: usize = 4;
/// Ranks listed one by one.
const RANKS: usize = 16;
/// Ranks whose collectives are listed.
const COLLECTIVE_RANKS: usize = 2;
/// Rows of collectives listed.
const COLLECTIVES: usize = 20;

/// The page for an inspection.
pub fn inspect(report: &InspectReport, style: TextStyle) -> String {
    let mut sheet = Sheet::new(style);
    ranks(report, &mut sheet);
    steps(report, &mut sheet);
    breakdown(report, &mut sheet);
    captures(report, &mut sheet);
    for rank in report.ranks.iter().take(COLLECTIVE_RANKS) {
        collectives(rank, &mut sheet);
    }
    if let Some(more) = more(report.ranks.len(), COLLECTIVE_RANKS) {
        let more = counted(more, "more rank");
        sheet.paragraph("", &format!("Collectives of {more} not shown; --json lists all."));
    }
    if let Some(together) = &report.together {
        stragglers(together, &mut sheet);
    }
    ledger(&report.ledger, &mut sheet);
    warnings(report.warnings.iter().chain(&report.cannot_merge), &mut sheet);
    sheet.finish()
}

pub(super) fn nanos(value: i64) -> Nanos {
    Nanos::from_nanos(value)
}

fn ranks(report: &InspectReport, sheet: &mut Sheet) {
    use Side::{Left, Right};
    let traces = counted(report.ranks.len(), "trace");
    sheet.heading(&format!("What is in {traces}"));
    // Nearly always all ranks have the same devices; then one line says it.
    let shared = report.ranks.first().map(devices);
    let shared = shared.filter(|d| report.ranks.iter().all(|rank| devices(rank) == *d));
    if let Some(shared) = &shared {
        sheet.field("devices", shared);
        sheet.blank();
    }
    let mut columns = vec![
        ("Rank", Right),
        ("Events", Right),
        ("Span ms", Right),
        ("Steps", Right),
        ("Median ms", Right),
        ("Shortest-longest", Right),
        ("Busy", Right),
        ("File", Left),
    ];
    if shared.is_none() {
        columns.push(("Devices", Left));
    }
    let mut table = Table::new(&columns);
    for rank in report.ranks.iter().take(RANKS) {
        let range = rank.shortest_step_ns.zip(rank.longest_step_ns);
        let mut cells = vec![
            rank.rank.to_string(),
            rank.events.to_string(),
            ms(nanos(rank.span_ns)),
            rank.steps.len().to_string(),
            rank.median_step_ns.map_or_else(|| "-".into(), |t| ms(nanos(t))),
            range.map_or_else(
                || "-".into(),
                |(low, high)| format!("{}-{}", ms(nanos(low)), ms(nanos(high))),
            ),
            busy(rank),
            file_name(&rank.path),
        ];
        if shared.is_none() {
            cells.push(devices(rank));
        }
        table.row(cells);
    }
    table.keep_whole(0..7);
    sheet.table(table);
    if let Some(more) = more(report.ranks.len(), RANKS) {
        sheet.paragraph("", &format!("and {}; --json lists all", counted(more, "more rank")));
    }
}

pub(super) fn more(all: usize, listed: usize) -> Option<usize> {
    all.checked_sub(listed).filter(|more| *more > 0)
}

fn devices(rank: &RankReport) -> String {
    if rank.device.is_empty() { "not named".into() } else { name(&rank.device, 60) }
}

/// Share of the steps in which the device works.
fn busy(rank: &RankReport) -> String {
    let share = |a: &crate::json::ActivityReport| percent_of(nanos(a.busy_ns), nanos(a.window_ns));
    rank.activity.as_ref().map_or_else(|| "n/a".into(), share)
}

pub(super) fn file_name(path: &str) -> String {
    name(path.rsplit(['/', '\\']).next().unwrap_or(path), 60)
}

/// Steps of the first ranks side by side.
fn steps(report: &InspectReport, sheet: &mut Sheet) {
    let with_steps: Vec<&RankReport> =
        report.ranks.iter().filter(|rank| !rank.steps.is_empty()).take(SIDE_BY_SIDE).collect();
    let Some(first) = with_steps.first() else {
        sheet.heading("Steps");
        sheet.line("No steps: the traces hold no work.");
        return;
    };
    sheet.heading(&format!("Steps, ms, by {}", name(&first.step_source, 80)));
    let heads: Vec<String> = with_steps.iter().map(|rank| format!("Rank {}", rank.rank)).collect();
    let mut columns = vec![("Step", Side::Left)];
    columns.extend(heads.iter().map(|head| (head.as_str(), Side::Right)));
    let mut table = Table::new(&columns);
    let cell = |step: &StepReport| {
        format!("{}{}", ms(nanos(step.time_ns)), if step.incomplete { " (incomplete)" } else { "" })
    };
    for (number, step) in first.steps.iter().enumerate().take(STEPS) {
        let mut cells = vec![name(&step.name, 40)];
        cells.extend(
            with_steps.iter().map(|r| r.steps.get(number).map_or_else(|| "-".into(), cell)),
        );
        table.row(cells);
    }
    sheet.table(table);
    if let Some(more) = more(first.steps.len(), STEPS) {
        sheet.paragraph("", &format!("and {}; --json lists all", counted(more, "more step")));
    }
}

fn breakdown(report: &InspectReport, sheet: &mut Sheet) {
    let ranks: Vec<&RankReport> =
        report.ranks.iter().filter(|rank| !rank.breakdown.is_empty()).take(SIDE_BY_SIDE).collect();
    if ranks.is_empty() {
        return;
    }
    sheet.heading("Where the step nearest the median goes, ms");
    let heads: Vec<String> = ranks.iter().map(|rank| format!("Rank {}", rank.rank)).collect();
    let mut columns = vec![("Owner", Side::Left)];
    columns.extend(heads.iter().map(|head| (head.as_str(), Side::Right)));
    let mut table = Table::new(&columns);
    let mut labels: Vec<&str> = Vec::new();
    for owner in ranks.iter().flat_map(|rank| &rank.breakdown) {
        if !labels.contains(&owner.label.as_str()) {
            labels.push(&owner.label);
        }
    }
    let cell = |owner: Option<&OwnerReport>| match owner {
        Some(o) => format!("{} {:>7}", ms(nanos(o.time_ns)), percent(o.share)),
        None => "-".into(),
    };
    for label in labels {
        let mut cells = vec![name(label, 60)];
        cells.extend(ranks.iter().map(|r| cell(r.breakdown.iter().find(|o| o.label == label))));
        table.row(cells);
    }
    table.keep_whole(1..=ranks.len());
    sheet.table(table);
    sheet.paragraph("", "Exposed communication includes waiting for the last rank.");
}

fn collectives(rank: &RankReport, sheet: &mut Sheet) {
    use Side::{Left, Right};
    if rank.collectives.is_empty() && rank.unclassified.is_empty() {
        return;
    }
    sheet.heading(&format!("Collectives of rank {}", rank.rank));
    let mut table = Table::new(&[
        ("Operation", Left),
        ("Group", Left),
        ("Ranks", Right),
        ("Size", Right),
        ("Per step", Right),
        ("Least ms", Right),
        ("Median ms", Right),
        ("algbw GB/s", Right),
        ("busbw GB/s", Right),
    ]);
    let mut by_time: Vec<&CollectiveUseReport> = rank.collectives.iter().collect();
    by_time.sort_by_key(|used| std::cmp::Reverse(used.median_ns.saturating_mul(used.count as i64)));
    for used in by_time.iter().take(COLLECTIVES) {
        table.row(collective_row(used));
    }
    sheet.table(table);
    if let Some(more) = more(by_time.len(), COLLECTIVES) {
        sheet.paragraph("", &format!("and {}; --json lists all", counted(more, "more row")));
    }
    sheet.paragraph(
        "",
        &format!(
            "Sizes known for {} of {} ({} of the time). Durations include waiting for the last rank; \
             bandwidths are those of the shortest.",
            rank.collective_sized,
            counted(rank.collective_count, "operation"),
            percent(rank.collective_time_share_sized),
        ),
    );
    for kernel in &rank.unclassified {
        let text = format!(
            "{} ({}, {} ms)",
            name(&kernel.name, 60),
            counted(kernel.count, "time"),
            ms(nanos(kernel.time_ns))
        );
        sheet.paragraph("looks like communication, unclassified: ", &text);
    }
}

/// A group's name with its role in short.
pub(super) fn group(group: &str, role: &str) -> String {
    let role = match role {
        "data-parallel" => " (DP)",
        "tensor-parallel" => " (TP)",
        "pipeline-parallel" => " (PP)",
        "expert-parallel" => " (EP)",
        _ => "",
    };
    format!("{}{role}", name(group, 24))
}

fn collective_row(used: &CollectiveUseReport) -> Vec<String> {
    let rate = |rate: Option<f64>| {
        rate.map_or_else(|| "n/a".into(), |r| gb_per_s(Bandwidth::from_bytes_per_sec(r)))
    };
    vec![
        used.collective.clone(),
        group(&used.group, &used.role),
        used.ranks.map_or_else(|| "?".into(), |n| n.to_string()),
        size(used.bytes.map(Bytes::new)),
        format!("{:.1}", used.per_step),
        ms(nanos(used.min_ns)),
        ms(nanos(used.median_ns)),
        rate(used.algorithm_bytes_per_s),
        rate(used.bus_bytes_per_s),
    ]
}

/// Who waits for whom.
fn stragglers(together: &TogetherReport, sheet: &mut Sheet) {
    use Side::Right;
    sheet.heading("Ranks against each other");
    let mut table = Table::new(&[
        ("Rank", Right),
        ("Came last", Right),
        ("Late by ms (median)", Right),
        ("Held up others ms", Right),
        ("Waited ms", Right),
        ("Clock ahead ms", Right),
    ]);
    for rank in together.ranks.iter().take(RANKS) {
        let late = ms(nanos(rank.lateness_ns));
        table.row(vec![
            rank.rank.to_string(),
            rank.times_last.to_string(),
            if rank.lateness_is_claimed { late } else { "not told apart".into() },
            ms(nanos(rank.held_up_ns)),
            ms(nanos(rank.waited_ns)),
            ms(nanos(rank.clock_offset_ns)),
        ]);
    }
    sheet.table(table);
    if let Some(more) = more(together.ranks.len(), RANKS) {
        sheet.paragraph("", &format!("and {}; --json lists all", counted(more, "more rank")));
    }
    sheet.paragraph(
        "",
        &format!(
            "{} seen by several ranks; clocks aligned ({}) to {} (median), less is not claimed. Of their \
             time {} ms is waiting and {} ms transfer, over all ranks.",
            counted(together.matched, "collective"),
            together.method,
            nanos(together.residual.median_ns),
            ms(nanos(together.waiting_ns)),
            ms(nanos(together.transfer_ns)),
        ),
    );
}
