//! What would help, and what other sizes do.

use foretrain_core::{Estimate, Nanos};
use foretrain_predict::scaling::SeriesAnswer;

use super::gb;
use crate::text::sheet::Sheet;
use crate::text::table::{Side, Table};
use crate::text::units::{ms, percent, plain};

pub(super) fn remedies(series: &SeriesAnswer, sheet: &mut Sheet) {
    if series.remedies.is_empty() {
        return;
    }
    let at = series.break_even.map_or(String::new(), |even| format!(" at {} GPUs", even.gpus));
    sheet.heading(&format!("What would help{at}"));
    let mut table = Table::new(&[
        ("Change", Side::Left),
        ("Efficiency", Side::Right),
        ("80 % interval", Side::Right),
        ("Gain", Side::Right),
        ("Condition", Side::Left),
    ]);
    table.keep_whole([1, 2, 3]);
    for remedy in &series.remedies {
        table.row(vec![
            remedy.what.clone(),
            percent(remedy.efficiency.value),
            shares(&remedy.efficiency),
            format!("{} x", plain(remedy.gain)),
            remedy.condition.clone(),
        ]);
    }
    sheet.table(table);
    sheet.paragraph("", "Efficiency is against one node's rate per GPU here.");
}

pub(super) fn strategies(series: &SeriesAnswer, sheet: &mut Sheet) {
    let Some(first) = series.strategies.first() else { return };
    sheet.heading(&format!("Strategies at {} GPUs, fewest bytes between nodes first", first.gpus));
    let mut columns = vec![("Strategy", Side::Left), ("Bytes x", Side::Right)];
    let has_bytes = first.node_bytes.is_some();
    if has_bytes {
        columns.push(("GB/node", Side::Right));
    }
    let has_rate = first.at_line_rate.is_some();
    let has_step = first.step.is_some();
    if has_rate {
        columns.push(("ms at line rate", Side::Right));
    }
    if has_step {
        columns.extend([("Step ms", Side::Right), ("80 % interval", Side::Right)]);
    }
    if first.efficiency.is_some() {
        columns.push(("Efficiency", Side::Right));
    }
    let mut table = Table::new(&columns);
    for one in &series.strategies {
        let mark = if one.is_present { " (present)" } else { "" };
        let mut row = vec![format!("{}{mark}", one.strategy.as_str()), plain(one.relative_bytes)];
        if has_bytes {
            row.push(one.node_bytes.map_or_else(|| "-".into(), |bytes| gb(bytes.total())));
        }
        if has_rate {
            row.push(one.at_line_rate.map_or_else(|| "-".into(), ms));
        }
        if has_step {
            row.push(one.step.map_or_else(|| "-".into(), |step| ms(step.value)));
            row.push(one.step.as_ref().map_or_else(|| "-".into(), times));
        }
        if first.efficiency.is_some() {
            row.push(one.efficiency.map_or_else(|| "-".into(), |e| percent(e.value)));
        }
        table.row(row);
    }
    sheet.table(table);
    sheet.paragraph("", "More sharding needs less memory: ddp keeps all states on each GPU.");
}

pub(super) fn predictions(series: &SeriesAnswer, sheet: &mut Sheet) {
    if series.predictions.is_empty() && series.unanswered.is_empty() {
        return;
    }
    sheet.heading("Predictions");
    let unit = series.unit.as_deref().unwrap_or_default();
    let has_rate = series.predictions.iter().any(|one| one.throughput.is_some());
    let has_step = series.predictions.iter().any(|one| one.step.is_some());
    let mut columns = vec![("GPUs", Side::Right), ("Nodes", Side::Right), ("Accum.", Side::Right)];
    if has_rate {
        columns.extend([(unit, Side::Right), ("80 %", Side::Right)]);
    }
    if has_step {
        columns.extend([("Step ms", Side::Right), ("80 %", Side::Right)]);
    }
    columns.extend([("Efficiency", Side::Right), ("80 %", Side::Right)]);
    columns.push(("From", Side::Left));
    let mut table = Table::new(&columns);
    table.keep_whole(0..columns.len() - 1);
    for one in &series.predictions {
        let mut row =
            vec![one.gpus.to_string(), one.nodes.to_string(), one.accumulation.to_string()];
        if has_rate {
            row.push(one.throughput.map_or_else(|| "-".into(), |rate| plain(rate.value)));
            let ends = |rate: Estimate<f64>| format!("{}-{}", plain(rate.low), plain(rate.high));
            row.push(one.throughput.map_or_else(|| "-".into(), ends));
        }
        if has_step {
            row.push(one.step.map_or_else(|| "-".into(), |step| ms(step.value)));
            row.push(one.step.as_ref().map_or_else(|| "-".into(), times));
        }
        row.push(percent(one.efficiency.value));
        row.push(shares(&one.efficiency));
        row.push(one.basis.clone());
        table.row(row);
    }
    if !table.is_empty() {
        sheet.table(table);
    }
    for why in &series.unanswered {
        sheet.warning(why);
    }
}

fn shares(share: &Estimate<f64>) -> String {
    let points = |share: f64| format!("{:.1}", share * 100.0);
    format!("{}-{}", points(share.low), points(share.high))
}

fn times(time: &Estimate<Nanos>) -> String {
    crate::text::units::ms_interval(time)
}
