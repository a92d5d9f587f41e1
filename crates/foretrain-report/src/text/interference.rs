//! What fitting an interference model found.

use foretrain_core::Ledger;
use foretrain_predict::interference::calibrate::{Calibration, HeldOut};

use super::TextStyle;
use super::sheet::Sheet;
use super::table::{Side, Table};

/// The page of `calibrate interference`. `kept_in` names the file the model was written to.
pub fn calibrate_interference(
    calibration: &Calibration,
    kept_in: Option<&str>,
    ledger: &Ledger,
    style: TextStyle,
) -> String {
    let mut sheet = Sheet::new(style);
    sheet.heading(&format!("Slow-down of {}", calibration.domain));
    if let Some(domain) = &calibration.file.overlap {
        let rows = domain.trained_on.rows;
        sheet.field("fitted to", &format!("{rows} runs of kernels"));
        let delay = domain.model.formula().launch_delay();
        sheet.field("launches", &format!("{delay} later beside communication"));
    }
    if let Some(domain) = &calibration.file.colocation {
        let (sliced, mps) = (domain.model.time_sliced, domain.model.mps);
        sheet.field("fitted to", &format!("{} jobs in pairs", domain.trained_on.rows));
        sheet.field(
            "turns",
            &format!(
                "cost {:.2} (kernel length to the power of {:.2}) in slices of time, {:.2} ({:.2}) under MPS",
                sliced.cost, sliced.size_exponent, mps.cost, mps.size_exponent
            ),
        );
    }
    held_out(&mut sheet, calibration);
    for note in &calibration.notes {
        sheet.paragraph("- ", note);
    }
    match kept_in {
        Some(path) => sheet.field("written to", path),
        None => sheet.field("written to", "nothing; keep the model with -o FILE"),
    }
    super::ledger::ledger(&ledger.into(), &mut sheet);
    sheet.finish()
}

fn held_out(sheet: &mut Sheet, calibration: &Calibration) {
    let Some(overall) = &calibration.overall else {
        sheet.warning("one recording: nothing could be held out, so nobody knows how good it is");
        return;
    };
    sheet.heading("Error where it was not fitted (mean, % of the time)");
    let mut table = Table::new(&[
        ("Left out", Side::Left),
        ("Rows", Side::Right),
        ("None", Side::Right),
        ("1.3", Side::Right),
        ("Formula", Side::Right),
        ("Learned", Side::Right),
    ]);
    for row in calibration.held_out.iter().chain([overall]) {
        table.row(cells(row));
    }
    sheet.table(table);
}

fn cells(row: &HeldOut) -> Vec<String> {
    let percent = |error: f64| format!("{error:.1}");
    let errors = row.errors;
    vec![
        row.group.clone(),
        row.rows.to_string(),
        percent(errors.none),
        percent(errors.constant),
        percent(errors.formula),
        percent(errors.learned),
    ]
}
