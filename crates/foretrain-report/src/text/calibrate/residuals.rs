//! What was measured and how far the fitted constants are off, by size and number of ranks.

use std::collections::BTreeMap;

use foretrain_core::Bytes;
use foretrain_cost::calibrate::{Report, Residual};

use super::super::TextStyle;
use super::super::sheet::Sheet;
use super::super::table::{Side, Table};
use super::super::units::{plain, whole_size};

/// A table per operation: sizes down, ranks across.
pub(super) fn residuals(report: &Report, style: TextStyle, sheet: &mut Sheet) {
    for rows in report.residuals.chunk_by(|a, b| a.kind == b.kind) {
        let Some(first) = rows.first() else { continue };
        let title = format!(
            "{}, bus bandwidth in GB/s and measured over fitted time less one, by GPUs",
            first.kind
        );
        let columns: Vec<&[Residual]> =
            rows.chunk_by(|a, b| (a.ranks, a.nodes) == (b.ranks, b.nodes)).collect();
        for columns in columns.chunks(fitting(style)) {
            sheet.heading(&title);
            sheet.table(table(columns));
        }
    }
    if report.residuals.iter().any(|row| !row.kept) {
        sheet.blank();
        sheet.paragraph("", "An asterisk marks rows that are kept out of the fit.");
    }
}

/// Columns of numbers that fit beside the sizes.
fn fitting(style: TextStyle) -> usize {
    const SIZES: usize = 10;
    const NUMBER: usize = 15;
    (style.width.saturating_sub(SIZES) / NUMBER).max(3)
}

fn table(columns: &[&[Residual]]) -> Table {
    let titles: Vec<String> = columns
        .iter()
        .filter_map(|rows| rows.first())
        .map(|row| {
            // The same ranks may have been spread over more or fewer nodes.
            let alone = columns.iter().filter(|c| c[0].ranks == row.ranks).count() == 1;
            if alone { row.ranks.to_string() } else { format!("{}/{}", row.ranks, row.nodes) }
        })
        .collect();
    let mut heads = vec![("Size", Side::Right)];
    heads.extend(titles.iter().map(|title| (title.as_str(), Side::Right)));
    let mut table = Table::new(&heads);
    let mut cells: BTreeMap<Bytes, Vec<Option<String>>> = BTreeMap::new();
    for (at, rows) in columns.iter().enumerate() {
        for same in rows.chunk_by(|a, b| a.bytes == b.bytes) {
            let Some(row) = same.first() else { continue };
            let line = cells.entry(row.bytes).or_insert_with(|| vec![None; columns.len()]);
            line[at] = Some(cell(same));
        }
    }
    for (size, line) in cells {
        let cells = line.into_iter().map(|cell| cell.unwrap_or_else(|| "-".into()));
        table.row([whole_size(size)].into_iter().chain(cells).collect());
    }
    table.keep_whole(0..heads.len());
    table
}

/// The best rate and the mean deviation of rows of one size; an asterisk if none of them is kept.
fn cell(rows: &[Residual]) -> String {
    let off =
        |row: &Residual| row.measured.nanos() as f64 / (row.modelled.nanos().max(1)) as f64 - 1.0;
    let kept = rows.iter().any(|row| row.kept);
    let counted: Vec<f64> = rows.iter().filter(|row| row.kept || !kept).map(off).collect();
    let mean = foretrain_core::stats::mean(&counted).unwrap_or(0.0);
    let best = rows.iter().map(|row| row.bus_bandwidth().gb_per_sec()).fold(0.0, f64::max);
    let mark = if kept { "" } else { "*" };
    format!("{} {:>5} %{mark}", plain(best), format!("{:+.0}", mean * 100.0))
}
