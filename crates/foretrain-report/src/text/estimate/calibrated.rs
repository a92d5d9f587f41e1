//! Measured steps that estimates rest on.

use foretrain_plan::calibrate::{Calibrated, MeasuredRow};
use foretrain_plan::times::Factors;

use crate::text::sheet::Sheet;
use crate::text::table::{Side, Table};
use crate::text::units::{counted, ms, name, percent, plain};

/// Steps that are listed; of more, those that are missed most.
const LISTED: usize = 12;

/// The steps beside their estimates, and the factors.
pub(in crate::text) fn calibrated(calibrated: &Calibrated, sheet: &mut Sheet) {
    let rows = &calibrated.rows;
    let steps = counted(rows.len(), "step");
    let source = name(&calibrated.source, 60);
    sheet.heading(&format!("Calibrated by {steps} measured on {} ({source})", calibrated.cluster));
    let mut table = Table::new(&[
        ("Layout", Side::Left),
        ("Model", Side::Left),
        ("Batch", Side::Right),
        ("Measured ms", Side::Right),
        ("Estimate before", Side::Right),
        ("After", Side::Right),
    ]);
    let mut listed: Vec<&MeasuredRow> = rows.iter().collect();
    if listed.len() > LISTED {
        listed.sort_by(|a, b| b.after.abs().total_cmp(&a.after.abs()));
        listed.truncate(LISTED);
    }
    for row in &listed {
        table.row(vec![
            row.layout.replace(',', ", "),
            name(&row.model, 40),
            row.global_batch.to_string(),
            ms(row.measured),
            off(row.before),
            off(row.after),
        ]);
    }
    table.keep_whole([2, 3, 4, 5]);
    sheet.table(table);
    if listed.len() < rows.len() {
        let (some, all) = (listed.len(), rows.len());
        sheet.paragraph("", &format!("The {some} of {all} missed most; --json holds all."));
    }
    let Factors { products, memory, communication, host } = calibrated.factors;
    sheet.paragraph(
        "",
        &format!(
            "Times are multiplied by {} on products, {} on memory-bound kernels, {} on \
             communication and {} on the host's pace: of these, what is known least moves first. A \
             layout that spends its time as the measured ones do is known best.",
            plain(products),
            plain(memory),
            plain(communication),
            plain(host)
        ),
    );
}

/// An error with its sign.
fn off(error: f64) -> String {
    let sign = if error < 0.0 { "-" } else { "+" };
    format!("{sign}{}", percent(error.abs()))
}
