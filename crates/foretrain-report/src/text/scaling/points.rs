//! Measured points and the rates behind them.

use foretrain_predict::scaling::{PointAnswer, SeriesAnswer};

use super::{both, gb};
use crate::text::sheet::Sheet;
use crate::text::table::{Side, Table};
use crate::text::units::{counted, ms_unit, percent, plain};

type Column<'a> = (&'a str, Box<dyn Fn(&PointAnswer) -> Option<String> + 'a>);

/// Columns that no point fills are not shown; ratios of steps stand where there are no times.
pub(super) fn points(series: &SeriesAnswer, sheet: &mut Sheet) {
    let unit = series.unit.as_deref().map(|unit| format!("{unit}/GPU")).unwrap_or_default();
    let varies = |of: fn(&PointAnswer) -> String| {
        series.points.windows(2).any(|pair| of(&pair[0]) != of(&pair[1]))
    };
    let has_micro = varies(|point| point.accumulation.to_string())
        || series.points.iter().any(|point| point.accumulation > 1);
    let has_times = series.points.iter().any(|point| point.step.is_some());
    let has_strategy = varies(|point| point.strategy.as_str().into());
    let columns: Vec<Column<'_>> = vec![
        ("GPUs", Box::new(|p| Some(p.gpus.to_string()))),
        ("Nodes", Box::new(|p| Some(p.nodes.to_string()))),
        ("Accum.", Box::new(move |p| has_micro.then(|| p.accumulation.to_string()))),
        ("Strategy", Box::new(move |p| has_strategy.then(|| p.strategy.as_str().into()))),
        (unit.as_str(), Box::new(|p| p.per_gpu.map(plain))),
        ("ms/step", Box::new(|p| p.step.map(|step| plain(step.millis_f64())))),
        ("Step x", Box::new(move |p| p.step_ratio.filter(|_| !has_times).map(plain))),
        ("Speed-up", Box::new(|p| Some(plain(p.speed_up)))),
        ("Efficiency", Box::new(|p| Some(percent(p.efficiency)))),
        ("GB/rank", Box::new(|p| p.rank_bytes.map(|bytes| gb(bytes.total())))),
        ("GB/node", Box::new(|p| p.node_bytes.map(|bytes| gb(bytes.total())))),
        ("Implied", Box::new(|p| p.effective.map(|rate| plain(rate.get() * 8e-9)))),
        ("Average", Box::new(|p| p.average.map(|rate| plain(rate.get() * 8e-9)))),
    ];
    let filled =
        |column: &Column<'_>| series.points.iter().any(|point| (column.1)(point).is_some());
    let columns: Vec<&Column<'_>> = columns.iter().filter(|column| filled(column)).collect();
    let heads: Vec<(&str, Side)> = columns.iter().map(|column| (column.0, Side::Right)).collect();
    let mut table = Table::new(&heads);
    table.keep_whole(0..heads.len());
    for point in &series.points {
        let cell = |column: &&Column<'_>| (column.1)(point).unwrap_or_else(|| "-".into());
        table.row(columns.iter().map(cell).collect());
    }
    sheet.table(table);
}

pub(super) fn rates(series: &SeriesAnswer, sheet: &mut Sheet) {
    for segment in &series.segments {
        let text = format!(
            "{} grew by {} at {} GPUs while {} GB leave a node: {}",
            segment.part,
            ms_unit(segment.growth),
            segment.gpus,
            gb(segment.node_bytes),
            both(segment.rate)
        );
        sheet.field("growth", &text);
    }
    if let Some(rate) = series.effective {
        let ends = |low: f64| plain(low * 8e-9);
        let text = format!(
            "{}, {}-{} Gbit/s",
            both(rate.value),
            ends(rate.low.get()),
            ends(rate.high.get())
        );
        sheet.field("effective", &text);
    }
    if !series.effective_by_batch.is_empty() {
        let each = series.effective_by_batch.iter();
        let each: Vec<String> =
            each.map(|(batch, rate)| format!("{} at {batch}", both(*rate))).collect();
        let text = format!(
            "depends on the batch per GPU, which is unknown: {}; give batch_per_gpu or base_step",
            each.join(", ")
        );
        sheet.field("effective", &text);
    }
    if let Some(even) = &series.break_even {
        let rate =
            |rate: Option<_>| rate.map_or(String::new(), |rate| format!(" = {}", both(rate)));
        // Of what is hidden already nobody knows; what shows may be less than there is room for.
        let hiding = if even.times_to_hide > 1.0 {
            format!("{} x{} to hide behind", plain(even.times_to_hide), rate(even.rate_to_hide))
        } else {
            "and what shows would fit as it is, if it overlapped, behind".to_owned()
        };
        let text = format!(
            "at {}: {} x the effective rate{} for 80 % of one node's rate per GPU, {hiding} the backward pass (two thirds of the computation)",
            counted(even.gpus as usize, "GPU"),
            plain(even.times_for_80),
            rate(even.rate_for_80),
        );
        sheet.field("break-even", &text);
    }
}

pub(super) fn accumulation(series: &SeriesAnswer, sheet: &mut Sheet) {
    let Some(answer) = &series.accumulation else { return };
    let measured: Vec<String> = answer.measured.iter().map(ToString::to_string).collect();
    let ceiling = match (answer.ceiling, &series.unit) {
        (Some(ceiling), Some(unit)) => format!("; without it {} {unit}", plain(ceiling)),
        _ => String::new(),
    };
    let sync = answer.sync.map_or(String::new(), |sync| format!(" ({})", ms_unit(sync)));
    let misfit = if answer.misfit > 0.0 {
        format!(" (points within {})", percent(answer.misfit))
    } else {
        String::new()
    };
    let text = format!(
        "{} micro-batches at {} GPUs: a synchronisation costs {} micro-steps{sync}{ceiling}{misfit}. 80 % of that from {} micro-batches on, 90 % from {}",
        measured.join(", "),
        answer.gpus,
        plain(answer.sync_micro_steps),
        answer.knee_80,
        answer.knee_90
    );
    sheet.field("accumulate", &text);
}
