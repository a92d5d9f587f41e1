//! Primitives of a machine as a page.

use foretrain_core::units::significant;
use foretrain_core::{Bytes, Ledger};
use foretrain_predict::primitives::PrimitivesAnswer;

use super::TextStyle;
use super::ledger;
use super::sheet::Sheet;
use super::table::{Side, Table};
use super::units::{name, percent, plain, whole_size};
use crate::json::{CalibratePrimitivesReport, PrimitiveLineReport};

/// The page for a calibration of primitives. `kept_in` is the file it was written to, `ledger`
/// what reading tables met.
pub fn calibrate_primitives(
    answer: &PrimitivesAnswer,
    kept_in: Option<&str>,
    ledger: &Ledger,
    style: TextStyle,
) -> String {
    let report = CalibratePrimitivesReport::new(answer, kept_in, ledger);
    let mut sheet = Sheet::new(style);
    sheet.heading("Synchronisation primitives");
    sheet.field("source", &name(&report.source, 400));
    match kept_in {
        Some(file) => sheet.field("written to", file),
        None => sheet.field("kept", "nowhere; add -o FILE.toml"),
    }
    sheet.blank();
    lines(&report.lines, &mut sheet);
    sheet.heading("By size");
    points(&report.lines, &mut sheet);
    sheet.heading("What the figures are good for");
    for sentence in &report.advice {
        sheet.paragraph("- ", sentence);
    }
    ledger::ledger(&report.ledger, &mut sheet);
    sheet.finish()
}

fn lines(lines: &[PrimitiveLineReport], sheet: &mut Sheet) {
    use Side::{Left, Right};
    let mut table = Table::new(&[
        ("Primitive", Left),
        ("Points", Right),
        ("Offset us", Right),
        ("GB/s", Right),
        ("Floor us", Right),
        ("Median error", Right),
        ("Worst error", Right),
    ]);
    for line in lines {
        table.row(vec![
            line.operation.clone(),
            line.points.len().to_string(),
            plain(line.offset_us),
            line.gb_per_s.map_or_else(|| "-".into(), |rate| significant(rate, 4)),
            if line.floor_us > 0.0 { plain(line.floor_us) } else { "-".into() },
            percent(line.median_error),
            percent(line.worst_error),
        ]);
    }
    sheet.table(table);
}

/// What was measured, one row for each primitive and a column for each size, in microseconds; of many
/// sizes some.
fn points(lines: &[PrimitiveLineReport], sheet: &mut Sheet) {
    const MOST: usize = 6;
    let all = lines.iter().flat_map(|line| &line.points).map(|point| point.size_bytes);
    let mut sizes: Vec<u64> = all.collect();
    sizes.sort_unstable();
    sizes.dedup();
    let step = sizes.len().div_ceil(MOST).max(1);
    let sizes: Vec<u64> = sizes.into_iter().rev().step_by(step).collect();
    let titles: Vec<String> =
        sizes.iter().rev().map(|size| format!("us at {}", whole_size(Bytes::new(*size)))).collect();
    let mut columns = vec![("Primitive", Side::Left)];
    columns.extend(titles.iter().map(|title| (title.as_str(), Side::Right)));
    let mut table = Table::new(&columns);
    for line in lines {
        let cell = |size: &u64| {
            let point = line.points.iter().find(|point| point.size_bytes == *size);
            point.map_or_else(|| "-".into(), |point| plain(point.median_us))
        };
        let mut row = vec![line.operation.clone()];
        row.extend(sizes.iter().rev().map(cell));
        table.row(row);
    }
    sheet.table(table);
}
