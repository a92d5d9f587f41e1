//! What reading and analysing met, and what a reader must know.

use super::sheet::Sheet;
use super::table::{Side, Table};
use super::units::{name, percent};
use crate::json::LedgerReport;

/// Coverage and findings.
pub(super) fn ledger(ledger: &LedgerReport, sheet: &mut Sheet) {
    if !ledger.coverage.is_empty() {
        sheet.heading("Coverage");
        let mut table = Table::new(&[
            ("Of", Side::Left),
            ("Used", Side::Right),
            ("Seen", Side::Right),
            ("", Side::Right),
        ]);
        for line in &ledger.coverage {
            let share = match line.total {
                0 => "-".into(),
                total => percent(line.used as f64 / total as f64),
            };
            table.row(vec![
                name(&line.what, 60),
                line.used.to_string(),
                line.total.to_string(),
                share,
            ]);
        }
        sheet.table(table);
    }
    if ledger.findings.is_empty() {
        return;
    }
    sheet.heading("Findings");
    let mut table = Table::new(&[
        ("What", Side::Left),
        ("Times", Side::Right),
        ("Message", Side::Left),
        ("First place", Side::Left),
    ]);
    for finding in &ledger.findings {
        table.row(vec![
            finding.severity.clone(),
            finding.count.to_string(),
            name(&finding.message, 160),
            finding.places.first().map_or_else(String::new, |first| place(first)),
        ]);
    }
    table.keep_whole([0, 1]);
    sheet.table(table);
}

/// Warnings at the end of a page.
pub(super) fn warnings<'a>(warnings: impl IntoIterator<Item = &'a String>, sheet: &mut Sheet) {
    for (number, warning) in warnings.into_iter().enumerate() {
        if number == 0 {
            sheet.blank();
        }
        sheet.warning(&name(warning, 600));
    }
}

/// A place within the column: of a long path, which often leads a place, the file's name is enough.
fn place(place: &str) -> String {
    const MOST: usize = 80;
    let path = place.split([' ', ':']).next().unwrap_or(place);
    match path.rfind('/') {
        Some(slash) if place.chars().count() > MOST => {
            name(&format!("..{}", &place[slash..]), MOST)
        }
        _ => name(place, MOST),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_places_keep_the_file_s_name() {
        let short = "traces/rank0.json: line 2";
        assert_eq!(place(short), short);
        let long = format!("/{}/rank0.json: node 216 needs 3", "directory/".repeat(10));
        assert_eq!(place(&long), "../rank0.json: node 216 needs 3");
    }
}
