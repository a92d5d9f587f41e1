//! Measurements beside predictions.

use foretrain_predict::collectives::{CollectivesAnswer, Comparison};

use super::super::sheet::Sheet;
use super::super::table::{Side, Table};
use super::super::units::{name, whole_size};
use super::{interval, micros, place, rate, way};

/// All runs of the logs, and those that have no prediction.
pub(super) fn runs(answer: &CollectivesAnswer, sheet: &mut Sheet) {
    for run in &answer.comparisons {
        rows(run, sheet);
    }
    summary(&answer.comparisons, sheet);
    for (number, run) in answer.uncompared.iter().enumerate() {
        if number == 0 {
            sheet.blank();
        }
        sheet.warning(&format!("{} not compared: {}", file(&run.source), name(&run.why, 300)));
    }
}

/// A log's name, short enough for a line.
fn file(path: &str) -> String {
    name(path.rsplit(['/', '\\']).next().unwrap_or(path), 72)
}

fn rows(run: &Comparison, sheet: &mut Sheet) {
    use Side::{Left, Right};
    sheet.heading(&format!("Measured {}, {}", run.setting.kind, place(&run.setting)));
    let lines = match run.lines {
        (_, 0) => String::new(),
        (first, last) => format!(", lines {first} to {last}"),
    };
    sheet.field("log", &format!("{}{lines}", name(&run.source, 400)));
    sheet.blank();
    let columns = [
        ("Size", Right),
        ("Measured us", Right),
        ("Predicted", Right),
        ("80 % interval", Right),
        ("Error", Right),
        ("Inside", Left),
        ("Measured GB/s", Right),
        ("Predicted", Right),
        ("Algorithm", Left),
    ];
    let mut table = Table::new(&columns);
    for row in &run.rows {
        table.row(vec![
            whole_size(row.size),
            micros(row.measured),
            micros(row.predicted.time.value),
            interval(&row.predicted),
            format!("{:+.0} %", row.error_percent),
            if row.inside { "yes" } else { "no" }.into(),
            rate(row.measured_bus_bandwidth),
            rate(row.predicted.bus_bandwidth),
            way(&row.predicted),
        ]);
    }
    table.keep_whole([0, 3, 4, 5]);
    sheet.table(table);
    for note in &run.notes {
        sheet.blank();
        sheet.paragraph("note: ", &name(note, 400));
    }
}

fn summary(runs: &[Comparison], sheet: &mut Sheet) {
    use Side::{Left, Right};
    if runs.is_empty() {
        return;
    }
    sheet.heading("Predicted against measured times");
    let mut table = Table::new(&[
        ("Log", Left),
        ("Operation", Left),
        ("GPUs", Right),
        ("Nodes", Right),
        ("Rows", Right),
        ("Median", Right),
        ("Mean", Right),
        ("Worst", Right),
        ("Bias", Right),
        ("Inside", Right),
    ]);
    for run in runs {
        let mut cells = vec![
            file(&run.source),
            run.setting.kind.to_string(),
            run.setting.ranks.to_string(),
            run.setting.nodes.to_string(),
        ];
        match &run.scores {
            Some(scores) => cells.extend([
                scores.n.to_string(),
                format!("{:.0} %", scores.median_ape),
                format!("{:.0} %", scores.mape),
                format!("{:.0} %", scores.max_ape),
                format!("{:+.0} %", scores.bias),
                scores.coverage80.map_or_else(|| "-".into(), |share| format!("{share:.0} %")),
            ]),
            None => cells.extend(["0", "-", "-", "-", "-", "-"].map(Into::into)),
        }
        table.row(cells);
    }
    table.keep_whole(1..10);
    sheet.table(table);
    sheet.paragraph(
        "",
        "Errors are absolute, in per cent of the measured time; bias keeps their sign and is above \
         zero where predictions are too long. Inside is the share of measured times in the 80 % \
         interval. Bus bandwidths are recomputed from times, the shorter of in and out of place.",
    );
}
