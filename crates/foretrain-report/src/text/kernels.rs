//! Corrections of kernel times as a page.

use foretrain_core::Ledger;
use foretrain_predict::kernels::KernelsAnswer;

use super::TextStyle;
use super::ledger;
use super::sheet::Sheet;
use super::table::{Side, Table};
use super::units::{name, percent, plain};
use crate::json::{CalibrateKernelsReport, KernelCorrectionReport, OddKernelReport};

/// The page for a calibration of kernel times. `kept_in` is the file it was written to, `ledger`
/// what reading recordings met.
pub fn calibrate_kernels(
    answer: &KernelsAnswer,
    kept_in: Option<&str>,
    ledger: &Ledger,
    style: TextStyle,
) -> String {
    let report = CalibrateKernelsReport::new(answer, kept_in, ledger);
    let mut sheet = Sheet::new(style);
    sheet.heading("Kernel times");
    sheet.field("device", &report.device);
    sheet.field("source", &name(&report.source, 400));
    match kept_in {
        Some(file) => sheet.field("written to", file),
        None => sheet.field("kept", "nowhere; add -o FILE.toml"),
    }
    sheet.field("products", &report.samples.to_string());
    let (before, after) = (percent(report.error_before), percent(report.error_after));
    sheet.field("error", &format!("{before} by the shipped curves, {after} corrected (medians)"));
    sheet.blank();
    corrections(&report.corrections, &mut sheet);
    if !report.odd.is_empty() {
        sheet.heading("Far off the curve");
        odd(&report.odd, &mut sheet);
    }
    for note in &report.notes {
        sheet.warning(note);
    }
    for left in &report.left_out {
        let (count, why) = (left.count, &left.why);
        sheet.warning(&format!("{count} left out, first {}: {why}", name(&left.first, 60)));
    }
    ledger::ledger(&report.ledger, &mut sheet);
    sheet.finish()
}

fn corrections(corrections: &[KernelCorrectionReport], sheet: &mut Sheet) {
    use Side::{Left, Right};
    let mut table = Table::new(&[
        ("Types", Left),
        ("Products", Right),
        ("Factor", Right),
        ("Offset us", Right),
        ("4 of 5 within", Right),
    ]);
    for correction in corrections {
        table.row(vec![
            correction.types.clone(),
            correction.products.to_string(),
            format!("{:.3}", correction.factor),
            plain(correction.offset_us),
            percent(correction.relative_spread),
        ]);
    }
    sheet.table(table);
}

fn odd(odd: &[OddKernelReport], sheet: &mut Sheet) {
    use Side::{Left, Right};
    let mut table = Table::new(&[("Where", Left), ("Measured us", Right), ("Expected us", Right)]);
    for kernel in odd {
        table.row(vec![
            name(&kernel.place, 60),
            plain(kernel.measured_us),
            plain(kernel.expected_us),
        ]);
    }
    sheet.table(table);
}
