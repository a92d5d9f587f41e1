//! Predicted utilisation as tables.

use foretrain_core::Bytes;
use foretrain_core::words::{counted, of_number};

use crate::json::{FleetUtilisationPredictReport, FleetUtilisationReport};
use crate::text::TextStyle;
use crate::text::sheet::Sheet;
use crate::text::table::{Side, Table};
use crate::text::units::plain;

/// How far off predictions are.
pub fn fleet_utilisation(report: &FleetUtilisationReport, style: TextStyle) -> String {
    let mut sheet = Sheet::new(style);
    sheet.heading("Utilisation predicted from graphs");
    sheet.field("measured", &of_families(report.jobs, report.families, "job"));
    if let Some(file) = &report.kept_in {
        sheet.field("written to", file);
    }
    if report.splits.is_empty() {
        sheet.warning(
            "all jobs are of one family, so nothing is known of the error on others; name the \
             families of the jobs in a column family",
        );
        return sheet.finish();
    }
    sheet.blank();
    let mut table = Table::new(&[
        ("Held out", Side::Left),
        ("Jobs", Side::Right),
        ("RMSLE", Side::Right),
        ("of the mean", Side::Right),
        ("Points off", Side::Right),
        ("of the mean", Side::Right),
        ("Memory off", Side::Right),
    ]);
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".into());
    for split in &report.splits {
        table.row(vec![
            split.what.clone(),
            split.jobs.to_string(),
            format!("{:.3}", split.rmsle),
            or_dash(split.mean_rmsle.map(|rmsle| format!("{rmsle:.3}"))),
            format!("{:.2}", split.mae_points),
            or_dash(split.mean_mae_points.map(|points| format!("{points:.2}"))),
            or_dash(split.memory_mape.map(|mape| format!("{mape:.1} %"))),
        ]);
    }
    sheet.table(table);
    sheet.finish()
}

/// What to expect of a job.
pub fn fleet_utilisation_predict(
    report: &FleetUtilisationPredictReport,
    style: TextStyle,
) -> String {
    let mut sheet = Sheet::new(style);
    sheet.heading(&format!("{} at a batch of {}", report.model, report.batch));
    let busy = &report.utilisation_percent;
    let high = busy.high.unwrap_or(100.0);
    sheet.field(
        "utilisation",
        &format!("{:.1} % ({:.1} to {high:.1} % in 8 of 10 jobs)", busy.value, busy.low),
    );
    if let Some(memory) = &report.memory_bytes {
        let size = |bytes: f64| Bytes::from_f64(bytes);
        let range = memory.high.map_or_else(
            || "; how far off that is, nothing tells".into(),
            |high| format!(" ({} to {})", size(memory.low), size(high)),
        );
        sheet.field("memory", &format!("{}{range}", size(memory.value)));
    }
    let about = match report.trained_on.as_str() {
        "" => String::new(),
        about => format!(": {about}"),
    };
    let (jobs, families) = (report.trained_jobs, report.trained_families);
    sheet.field("learnt from", &format!("{}{about}", of_families(jobs, families, "measured job")));
    if report.is_inside {
        return sheet.finish();
    }
    sheet.warning(
        "extrapolation: the job is unlike those that were measured, and trees say the same beyond \
         their range as at its end. Any utilisation is possible. `foretrain estimate` times the step \
         from its shapes instead.",
    );
    sheet.blank();
    let mut table =
        Table::new(&[("Outside", Side::Left), ("Job", Side::Right), ("Measured", Side::Right)]);
    for feature in &report.outside {
        let range = format!("{} to {}", short(feature.least), short(feature.most));
        table.row(vec![feature.feature.clone(), short(feature.value), range]);
    }
    sheet.table(table);
    sheet.finish()
}

fn of_families(jobs: usize, families: usize, noun: &str) -> String {
    format!("{} of {families} {}", counted(jobs, noun), of_number(families, "family", "families"))
}

fn short(value: f64) -> String {
    if value >= 1e6 { format!("{value:.2e}") } else { plain(value) }
}
