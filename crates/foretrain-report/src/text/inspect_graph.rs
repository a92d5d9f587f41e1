//! What is in a job's graphs, as tables.

use foretrain_core::{Bytes, Flops};

use super::TextStyle;
use super::inspect::{file_name, group, more, nanos};
use super::ledger::{ledger, warnings};
use super::sheet::Sheet;
use super::table::{Side, Table};
use super::units::{counted, ms, name, percent, size};
use crate::json::{GraphReport, InspectGraphReport, NodeTallyReport, OperationReport};

/// Graphs listed one by one.
const GRAPHS: usize = 16;
/// Graphs shown in detail.
const IN_DETAIL: usize = 2;
/// Rows of operations or groups listed.
const ROWS: usize = 20;

/// The page for an inspection of graphs.
pub fn inspect_graph(report: &InspectGraphReport, style: TextStyle) -> String {
    let mut sheet = Sheet::new(style);
    overview(report, &mut sheet);
    let shown = shown(&report.graphs);
    for graph in &report.graphs[..shown] {
        nodes(graph, &mut sheet);
        operations(graph, &mut sheet);
        groups(graph, &mut sheet);
    }
    if let Some(more) = more(report.graphs.len(), shown) {
        let more = counted(more, "more rank");
        sheet.blank();
        sheet.paragraph(
            "",
            &match shown {
                1 => format!("The same holds for {more}; --json lists all."),
                _ => format!("Details of {more} not shown; --json lists all."),
            },
        );
    }
    ledger(&report.ledger, &mut sheet);
    warnings(&report.warnings, &mut sheet);
    sheet.finish()
}

/// Graphs to show in detail: one, if the details of all are the same.
fn shown(graphs: &[GraphReport]) -> usize {
    let details =
        |graph: &GraphReport| (graph.kinds.clone(), graph.operations.clone(), graph.gradient_bytes);
    let Some(first) = graphs.first().map(details) else { return 0 };
    let same = graphs.iter().all(|graph| details(graph) == first);
    if same { 1 } else { graphs.len().min(IN_DETAIL) }
}

/// One line per graph.
fn overview(report: &InspectGraphReport, sheet: &mut Sheet) {
    use Side::{Left, Right};
    sheet.heading(&format!("What is in {}", counted(report.graphs.len(), "graph")));
    let Some(first) = report.graphs.first() else { return };
    sheet.field("files", &source(report, first));
    if let Some(made_from) = &first.made_from {
        sheet.field("made from", &name(made_from, 200));
    }
    sheet.field("step", &name(&first.step, 80));
    let device = if first.device.is_empty() { "not named" } else { &first.device };
    let ranks = counted(first.world_size as usize, "rank");
    sheet.field("job", &format!("{ranks}; device {}", name(device, 60)));
    sheet.blank();
    let times = || report.graphs.iter().filter_map(|graph| graph.times);
    let has_times = times().next().is_some();
    let has_recorded = times().any(|times| times.recorded_ns.is_some());
    let mut columns = vec![
        ("Rank", Right),
        ("Nodes", Right),
        ("Edges", Right),
        ("Queues", Right),
        ("Timed", Right),
    ];
    if has_times {
        columns.extend([("Longest path ms", Right), ("Serial ms", Right)]);
    }
    if has_recorded {
        columns.push(("Recorded ms", Right));
    }
    let numbers = columns.len();
    columns.push(("File", Left));
    let mut table = Table::new(&columns);
    for graph in report.graphs.iter().take(GRAPHS) {
        let counts = [graph.rank as usize, graph.total.nodes, graph.edges, graph.queues];
        let mut cells: Vec<String> = counts.iter().map(ToString::to_string).collect();
        cells.push(share(graph.total.timed, graph.total.nodes));
        if has_times {
            cells.push(time(graph.times.map(|times| times.longest_path_ns)));
            cells.push(time(graph.times.map(|times| times.serial_sum_ns)));
        }
        if has_recorded {
            cells.push(time(graph.times.and_then(|times| times.recorded_ns)));
        }
        cells.push(file_name(&graph.path));
        table.row(cells);
    }
    table.keep_whole(0..numbers);
    sheet.table(table);
    if let Some(more) = more(report.graphs.len(), GRAPHS) {
        sheet.paragraph("", &format!("and {}; --json lists all", counted(more, "more rank")));
    }
    sheet.paragraph("", duration_note(report, first, has_times));
}

/// What the durations are worth.
fn duration_note(
    report: &InspectGraphReport,
    first: &GraphReport,
    has_times: bool,
) -> &'static str {
    let all_timed = report.graphs.iter().all(|graph| graph.total.timed == graph.total.nodes);
    if !has_times {
        "No durations recorded: the files tell what is done and in which order, not how long it takes."
    } else if all_timed {
        "Timed nodes have a duration. Longest path: the longest chain of dependent work and delays; \
         serial: all work in turn. Waiting for other ranks is in neither, unless durations hold it."
    } else if first.kind == "chakra" {
        "Timed nodes have a duration; the others take no time here, so longest path and serial sum are \
         lower bounds. Chakra files count whole microseconds and leave zeros out."
    } else {
        "Timed nodes have a duration; the others take no time here, so longest path and serial sum are \
         lower bounds."
    }
}

fn time(nanoseconds: Option<i64>) -> String {
    nanoseconds.map_or_else(|| "-".into(), |time| ms(nanos(time)))
}

fn source(report: &InspectGraphReport, first: &GraphReport) -> String {
    let what = match first.kind.as_str() {
        "chakra" => "Chakra execution trace",
        "step-graph" => "saved step graph",
        _ => "PyTorch execution trace",
    };
    let mut schemas: Vec<&str> =
        report.graphs.iter().filter_map(|graph| graph.file_schema.as_deref()).collect();
    schemas.sort_unstable();
    schemas.dedup();
    let schema = match schemas[..] {
        [] if first.kind == "step-graph" => String::new(),
        [] => ", no schema named".into(),
        [one] => format!(", schema {}", name(one, 40)),
        _ => format!(", schemas {}", name(&schemas.join(", "), 120)),
    };
    format!("{}{schema}", counted(report.graphs.len(), what))
}

/// A share as per cent, or a word for all and none.
fn share(part: usize, of: usize) -> String {
    match part {
        0 => "none".into(),
        _ if part == of => "all".into(),
        _ => percent(part as f64 / of as f64),
    }
}

fn nodes(graph: &GraphReport, sheet: &mut Sheet) {
    use Side::{Left, Right};
    sheet.heading(&format!("Nodes of rank {}", graph.rank));
    let mut table = Table::new(&[
        ("Kind", Left),
        ("Nodes", Right),
        ("Timed", Right),
        ("Time ms", Right),
        ("Arithmetic", Right),
        ("known for", Right),
        ("Bytes", Right),
        ("known for", Right),
    ]);
    for row in &graph.kinds {
        table.row(node_row(&row.kind, &row.tally));
    }
    if graph.kinds.len() > 1 {
        table.row(node_row("all", &graph.total));
    }
    sheet.table(table);
    let mut text = String::from(
        "Bytes are the payload of copies and communication, else the size of all tensors named.",
    );
    if let Some(bytes) = graph.gradient_bytes {
        text.push_str(&format!(" Parameter gradients: {}.", Bytes::new(bytes)));
    }
    sheet.paragraph("", &text);
}

fn node_row(kind: &str, tally: &NodeTallyReport) -> Vec<String> {
    let dash = || "-".to_owned();
    let known = |count: usize| if count == 0 { dash() } else { count.to_string() };
    vec![
        kind.to_owned(),
        tally.nodes.to_string(),
        share(tally.timed, tally.nodes),
        time(tally.time_ns),
        tally.flops.map_or_else(dash, |flops| Flops::new(flops).to_string()),
        known(tally.with_flops),
        tally.bytes.map_or_else(dash, |bytes| Bytes::new(bytes).to_string()),
        known(tally.with_bytes),
    ]
}

fn operations(graph: &GraphReport, sheet: &mut Sheet) {
    use Side::{Left, Right};
    if graph.operations.is_empty() {
        return;
    }
    sheet.heading(&format!("Collectives of rank {}", graph.rank));
    let timed = graph.operations.iter().any(|row| row.timed > 0);
    let mut columns = vec![
        ("Operation", Left),
        ("Group", Left),
        ("Ranks", Right),
        ("Size", Right),
        ("Count", Right),
    ];
    if timed {
        columns.extend([("Least ms", Right), ("Median ms", Right)]);
    }
    let mut table = Table::new(&columns);
    let mut by_volume: Vec<&OperationReport> = graph.operations.iter().collect();
    by_volume.sort_by_key(|row| {
        let volume = row.bytes.unwrap_or(0).saturating_mul(row.count as u64);
        std::cmp::Reverse((volume, row.count))
    });
    for row in by_volume.iter().take(ROWS) {
        let mut cells = vec![
            row.collective.clone(),
            group(&row.group, &row.role),
            row.ranks.map_or_else(|| "?".into(), |n| n.to_string()),
            size(row.bytes.map(Bytes::new)),
            row.count.to_string(),
        ];
        if timed {
            cells.extend([time(row.min_ns), time(row.median_ns)]);
        }
        table.row(cells);
    }
    sheet.table(table);
    if let Some(more) = more(by_volume.len(), ROWS) {
        sheet.paragraph("", &format!("and {}; --json lists all", counted(more, "more row")));
    }
    let count = |rows: &mut dyn Iterator<Item = &OperationReport>| -> usize {
        rows.map(|row| row.count).sum()
    };
    let all = count(&mut graph.operations.iter());
    let sized = count(&mut graph.operations.iter().filter(|row| row.bytes.is_some()));
    let times = if timed { "" } else { " None has a duration." };
    let all = counted(all, "operation");
    sheet.paragraph("", &format!("Sizes known for {sized} of {all}.{times}"));
}

fn groups(graph: &GraphReport, sheet: &mut Sheet) {
    use Side::{Left, Right};
    if graph.groups.is_empty() {
        return;
    }
    sheet.heading(&format!("Groups of rank {}", graph.rank));
    let mut table = Table::new(&[
        ("Group", Left),
        ("Size", Right),
        ("Ranks", Left),
        ("Operations", Right),
        ("Role", Left),
        ("Because", Left),
    ]);
    let mut by_use: Vec<_> = graph.groups.iter().collect();
    by_use.sort_by_key(|group| std::cmp::Reverse(group.operations));
    for group in by_use.iter().take(ROWS) {
        table.row(vec![
            name(&group.name, 24),
            group.size.map_or_else(|| "?".into(), |size| size.to_string()),
            ranks(&group.ranks),
            group.operations.to_string(),
            group.role.clone(),
            name(&group.reason, 80),
        ]);
    }
    sheet.table(table);
    if let Some(more) = more(by_use.len(), ROWS) {
        sheet.paragraph("", &format!("and {}; --json lists all", counted(more, "more group")));
    }
}

/// `0-7`, `0,8,16` or the beginning of a long list.
fn ranks(ranks: &[u32]) -> String {
    const LISTED: usize = 8;
    let is_range = ranks.windows(2).all(|pair| pair[0].checked_add(1) == Some(pair[1]));
    match ranks {
        [] => "?".into(),
        [first, .., last] if is_range => format!("{first}-{last}"),
        _ => {
            let listed: Vec<String> = ranks.iter().take(LISTED).map(ToString::to_string).collect();
            let dots = if ranks.len() > LISTED { ",.." } else { "" };
            format!("{}{dots}", listed.join(","))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_short() {
        assert_eq!(ranks(&[0, 1, 2, 3]), "0-3");
        assert_eq!(ranks(&[5]), "5");
        assert_eq!(ranks(&[0, 8, 16]), "0,8,16");
        assert_eq!(ranks(&[]), "?");
        assert_eq!(ranks(&(0..20).map(|i| i * 2).collect::<Vec<_>>()), "0,2,4,6,8,10,12,14,..");
    }

    #[test]
    fn all_and_none_are_words() {
        assert_eq!([share(0, 3), share(3, 3), share(1, 4)], ["none", "all", "25.0 %"]);
    }
}
