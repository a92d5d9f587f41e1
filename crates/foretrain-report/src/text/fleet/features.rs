//! Rows of the feature table, for people.

use foretrain_core::units::significant;
use foretrain_core::{Bytes, Nanos};

use crate::json::{FleetFeaturesJobReport, FleetFeaturesReport, FleetFigureReport};
use crate::text::TextStyle;
use crate::text::sheet::Sheet;
use crate::text::table::{Side, Table};
use crate::text::units::percent;

/// Every figure with what it rests on.
pub fn fleet_features(report: &FleetFeaturesReport, style: TextStyle) -> String {
    let mut sheet = Sheet::new(style);
    for job in &report.jobs {
        features_of(job, &mut sheet);
    }
    sheet.finish()
}

fn features_of(job: &FleetFeaturesJobReport, sheet: &mut Sheet) {
    let trains = match job.model.as_str() {
        "" => String::new(),
        model if model == job.job => String::new(),
        model => format!(", trains {model}"),
    };
    sheet.heading(&format!("A step of one replica: {} (a {}{trains})", job.job, job.source));
    let mut table = Table::new(&[
        ("Figure", Side::Left),
        ("Value", Side::Right),
        ("Basis", Side::Left),
        ("How", Side::Left),
    ]);
    table.keep_whole([0, 1, 2]);
    for figure in &job.figures {
        let (name, value) = shown(figure);
        table.row(vec![name, value, figure.basis.clone(), figure.how.clone()]);
    }
    sheet.table(table);
    for note in &job.notes {
        sheet.paragraph("note: ", note);
    }
}

/// Name and value in the units of people.
fn shown(figure: &FleetFigureReport) -> (String, String) {
    let title = figure.column.replace('_', " ");
    let (name, say): (&str, fn(f64) -> String) = match title.as_str() {
        "flops" => ("FLOPs", |flops| format!("{} G", significant(flops / 1e9, 4))),
        "step time ms" => ("step time", |ms| Nanos::from_nanos_f64(ms * 1e6).to_string()),
        "utilisation" => ("utilisation", percent),
        title => match title.strip_suffix(" bytes") {
            Some(name) => (name, |bytes| Bytes::from_f64(bytes).to_string()),
            None => (title, |number| number.to_string()),
        },
    };
    let word = || figure.word.clone().unwrap_or_default();
    (name.to_owned(), figure.value.map_or_else(word, say))
}
