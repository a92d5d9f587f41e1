//! The scores of `validate` as a table.

use std::collections::BTreeMap;

use foretrain_predict::validate::{Row, Scores, SetReport, ValidationReport};

use super::TextStyle;
use super::sheet::Sheet;
use super::table::{Side, Table};
use super::units::{counted, name, plain};

/// Reasons for skipping listed per set.
const REASONS: usize = 8;

/// The page for a validation run.
pub fn validate(report: &ValidationReport, style: TextStyle) -> String {
    let mut sheet = Sheet::new(style);
    sheet.heading("Predicted against measured, errors in percent of the measured value");
    scores(&report.sets, &mut sheet);
    sheet.paragraph(
        "",
        "MAPE is the mean, Median, 90 % and Worst the quantiles of the absolute errors; Bias is the mean \
         signed error (above zero: predicted too long). In 80 %: share of measurements inside the \
         predicted 80 % interval, - where no interval is stated. Theirs: the MAPE of the set's reference \
         on the same rows.",
    );
    for set in &report.sets {
        details(set, &mut sheet);
    }
    sheet.finish()
}

/// The name of a set, with its data unless that is the data directory.
pub(crate) fn title(set: &SetReport) -> String {
    if set.on == "data" { set.name.clone() } else { format!("{}:{}", set.name, set.on) }
}

fn scores(sets: &[SetReport], sheet: &mut Sheet) {
    use Side::{Left, Right};
    let mut table = Table::new(&[
        ("Set", Left),
        ("n", Right),
        ("MAPE", Right),
        ("Median", Right),
        ("90 %", Right),
        ("Worst", Right),
        ("Bias", Right),
        ("In 80 %", Right),
        ("Theirs", Right),
        ("Skipped", Right),
    ]);
    for set in sets {
        let number = |get: fn(&Scores) -> f64| {
            set.scores.as_ref().map_or_else(|| "-".into(), |s| format!("{:.2}", get(s)))
        };
        let bias = set.scores.as_ref().map_or_else(|| "-".into(), |s| format!("{:+.2}", s.bias));
        let covered = set.scores.as_ref().and_then(|s| s.coverage80);
        let theirs = set.reference.as_ref().map(|r| format!("{:.2}", r.mape));
        table.row(vec![
            title(set),
            set.scores.as_ref().map_or(0, |s| s.n).to_string(),
            number(|s| s.mape),
            number(|s| s.median_ape),
            number(|s| s.p90_ape),
            number(|s| s.max_ape),
            bias,
            covered.map_or_else(|| "-".into(), |share| format!("{share:.1}")),
            theirs.unwrap_or_else(|| "-".into()),
            set.skipped.len().to_string(),
        ]);
    }
    table.keep_whole(0..8);
    sheet.table(table);
}

fn details(set: &SetReport, sheet: &mut Sheet) {
    sheet.heading(&title(set));
    sheet.paragraph("", &set.about);
    if !set.rows.is_empty() {
        rows(set, sheet);
    }
    let worst =
        set.groups.iter().max_by(|a, b| a.worst_error.abs().total_cmp(&b.worst_error.abs()));
    if let Some(median) = set.group_median() {
        let text = format!("{median:.2} % over {}", counted(set.groups.len(), "file or machine"));
        sheet.paragraph("median MAPE: ", &text);
    }
    if let Some(worst) = worst {
        let text = format!("{:+.2} %, {} of {}", worst.worst_error, worst.worst, worst.what);
        sheet.paragraph("worst: ", &name(&text, 200));
    }
    if let Some(reference) = &set.reference {
        let text = format!("{}, MAPE {:.2} %", reference.who, reference.mape);
        sheet.paragraph("reference: ", &name(&text, 200));
    }
    for note in &set.notes {
        sheet.paragraph("note: ", note);
    }
    skipped(set, sheet);
}

/// What was left out, by reason, the most frequent first.
fn skipped(set: &SetReport, sheet: &mut Sheet) {
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for skipped in &set.skipped {
        reasons.entry(&skipped.why).or_default().push(&skipped.what);
    }
    let mut reasons: Vec<(&str, Vec<&str>)> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, items)| std::cmp::Reverse(items.len()));
    for (why, items) in reasons.iter().take(REASONS) {
        let text = match items[..] {
            [only] => format!("{only}: {why}"),
            _ => format!("{}: {why}, first {}", counted(items.len(), "item"), items[0]),
        };
        sheet.paragraph("skipped: ", &name(&text, 300));
    }
    if let Some(more) = reasons.len().checked_sub(REASONS).filter(|more| *more > 0) {
        sheet.paragraph(
            "skipped: ",
            &format!("{}; --json lists all", counted(more, "further reason")),
        );
    }
}

fn rows(set: &SetReport, sheet: &mut Sheet) {
    let predicted = format!("Predicted {}", set.unit);
    let measured = format!("Measured {}", set.unit);
    let mut table = Table::new(&[
        ("File or run", Side::Left),
        ("What", Side::Left),
        (&predicted, Side::Right),
        (&measured, Side::Right),
        ("Error %", Side::Right),
    ]);
    let error = |row: &Row| (row.predicted - row.measured) / row.measured * 100.0;
    for row in &set.rows {
        table.row(vec![
            name(&row.group, 60),
            name(&row.what, 40),
            plain(row.predicted),
            plain(row.measured),
            format!("{:+.2}", error(row)),
        ]);
    }
    table.keep_whole(2..5);
    sheet.table(table);
}
