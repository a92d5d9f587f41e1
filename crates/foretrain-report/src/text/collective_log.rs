//! Logs of collective benchmarks, as tables.

use foretrain_core::{Bytes, Nanos};

use super::TextStyle;
use super::ledger::ledger;
use super::nccl::nccl;
use super::sheet::Sheet;
use super::table::{Side, Table};
use super::units::{counted, name, plain};
use crate::json::{CollectiveLogReport, CollectiveRowReport, CollectiveRunReport, TimingReport};

/// The page for logs of collective benchmarks.
pub fn collective_logs(report: &CollectiveLogReport, style: TextStyle) -> String {
    let mut sheet = Sheet::new(style);
    for run in &report.runs {
        sheet.heading(&title(run));
        about(run, &mut sheet);
        rows(run, &mut sheet);
    }
    for facts in &report.nccl {
        nccl(facts, &mut sheet);
    }
    if report.runs.is_empty() {
        sheet.line(if report.nccl.is_empty() {
            "No rows could be read."
        } else {
            "No table of a collective benchmark is in it."
        });
    }
    ledger(&report.ledger, &mut sheet);
    sheet.finish()
}

/// `all-reduce on 16 ranks`.
fn title(run: &CollectiveRunReport) -> String {
    let kind = if run.kind == "unknown" { "operation not known" } else { &run.kind };
    match run.ranks {
        Some(ranks) => format!("{kind}, {}", counted(ranks as usize, "rank")),
        None => format!("{kind}, ranks not known"),
    }
}

fn about(run: &CollectiveRunReport, sheet: &mut Sheet) {
    let lines = match run.last_line {
        0 => String::new(),
        last => format!(", lines {} to {last}", run.first_line),
    };
    sheet.field("file", &format!("{}{lines}", name(&run.path, 400)));
    sheet.field("operation", &format!("{} ({})", run.kind, run.kind_source));
    if let (Some(ranks), Some(source)) = (run.ranks, &run.ranks_source) {
        let nodes = run
            .nodes
            .map_or_else(String::new, |nodes| format!(" on {}", counted(nodes as usize, "node")));
        sheet.field("ranks", &format!("{ranks}{nodes} ({source})"));
    }
    if let Some(device) = &run.device {
        sheet.field("device", &name(device, 100));
    }
    let elements = run.dtype.iter().chain(&run.redop).cloned().collect::<Vec<_>>().join(", ");
    let root = run.root.map_or_else(String::new, |root| format!(", root {root}"));
    if !elements.is_empty() {
        sheet.field("elements", &name(&format!("{elements}{root}"), 100));
    }
    if run.cpu_time {
        sheet.field("times", "of the issuing thread, not of the operation");
    }
    if run.time_inferred {
        sheet.field("times", "not printed; computed from sizes and bandwidths");
    }
    sheet.blank();
}

/// The figures of one placement in a row.
type Placement = fn(&CollectiveRowReport) -> Option<&TimingReport>;

fn rows(run: &CollectiveRunReport, sheet: &mut Sheet) {
    use Side::Right;
    let placements: [(&str, Placement); 2] = [
        ("out of place", |row| row.out_of_place.as_ref()),
        ("in place", |row| row.in_place.as_ref()),
    ];
    let used: Vec<_> =
        placements.iter().filter(|(_, of)| run.rows.iter().any(|row| of(row).is_some())).collect();
    let mut columns = vec![("Size".to_owned(), Right)];
    for (placement, _) in &used {
        columns.push((format!("us {placement}"), Right));
        columns.extend(["algbw GB/s", "busbw GB/s"].map(|title| (title.to_owned(), Right)));
    }
    let columns: Vec<(&str, Side)> =
        columns.iter().map(|(title, side)| (title.as_str(), *side)).collect();
    let marks_wrong = run.rows.iter().any(is_wrong);
    let mut columns = columns;
    columns.extend(marks_wrong.then_some(("Results", Side::Left)));
    let mut table = Table::new(&columns);
    for row in &run.rows {
        let mut cells = vec![Bytes::new(row.size_bytes).to_string()];
        for (_, of) in &used {
            cells.extend(figures(of(row)));
        }
        cells.extend(marks_wrong.then(|| if is_wrong(row) { "wrong" } else { "" }.to_owned()));
        table.row(cells);
    }
    sheet.table(table);
}

/// Whether the tool found wrong results: then the row's times may mean nothing.
fn is_wrong(row: &CollectiveRowReport) -> bool {
    let placements = row.out_of_place.iter().chain(&row.in_place);
    placements.filter_map(|timing| timing.wrong).any(|elements| elements > 0)
}

fn figures(timing: Option<&TimingReport>) -> [String; 3] {
    let Some(timing) = timing else { return ["-", "-", "-"].map(Into::into) };
    let rate = |rate: Option<f64>| rate.map_or_else(|| "-".into(), |rate| format!("{rate:.2}"));
    let micros = Nanos::from_nanos(timing.time_ns).micros_f64();
    [plain(micros), rate(timing.algbw_gb_per_s), rate(timing.busbw_gb_per_s)]
}
