//! Measured runs beside the model.

use foretrain_core::Bandwidth;
use foretrain_cost::{CollectiveCall, Fabric, bus_factor, collective_time};
use foretrain_ingest::collective_log::{CollectiveLog, Row, Run};

use super::answer::{ComparedRow, Comparison, Setting, Sweep, Uncompared};
use super::notes;
use super::runs::{Machine, fastest, no_hosts, other_device, placed};
use super::setting::Place;
use crate::validate::{self, error_percent, scores};

/// Every run of `logs`: beside the model, or with the reason why not.
pub(super) fn compare(
    machine: &Machine<'_>,
    sweeps: &[Sweep],
    logs: &[CollectiveLog],
) -> (Vec<Comparison>, Vec<Uncompared>) {
    let (mut compared, mut uncompared) = (Vec::new(), Vec::new());
    for log in logs {
        for run in &log.runs {
            match placed(machine, run) {
                Ok(place) => {
                    let mut comparison = comparison(machine, &place, &log.source, run);
                    comparison.asked =
                        sweeps.iter().any(|s| alike(&s.setting, &comparison.setting));
                    compared.push(comparison);
                }
                Err(why) => uncompared.push(Uncompared {
                    source: log.source.clone(),
                    lines: run.lines,
                    rows: run.rows.len(),
                    why,
                }),
            }
        }
    }
    (compared, uncompared)
}

fn alike(a: &Setting, b: &Setting) -> bool {
    (a.kind, a.ranks, a.nodes, a.extra_latency) == (b.kind, b.ranks, b.nodes, b.extra_latency)
}

fn comparison(machine: &Machine<'_>, place: &Place, source: &str, run: &Run) -> Comparison {
    let setting = place.setting(run.kind.value);
    let rows: Vec<ComparedRow> =
        run.rows.iter().filter_map(|row| compared(&place.fabric, &setting, row)).collect();
    let scored: Vec<validate::Row> = rows.iter().filter(|r| r.size.get() > 0).map(scored).collect();
    let best = rows.iter().map(|row| row.measured_bus_bandwidth.get()).fold(0.0, f64::max);
    let best = Bandwidth::from_bytes_per_sec(best);
    Comparison {
        source: source.to_owned(),
        lines: run.lines,
        setting,
        asked: false,
        scores: scores(&scored),
        notes: [
            notes::of_measurement(&setting, best, machine.cluster),
            other_device(machine, run).map(|other| {
                let here = &machine.cluster.node.device.name;
                format!("measured on {}, predicted for {here}", other.named)
            }),
            no_hosts(&setting, run),
        ]
        .into_iter()
        .flatten()
        .collect(),
        rows,
    }
}

fn compared(fabric: &Fabric, setting: &Setting, row: &Row) -> Option<ComparedRow> {
    let measured = fastest(row, |_| true)?;
    let predicted = collective_time(&CollectiveCall::new(setting.kind, row.size), fabric);
    let rate = Bandwidth::of(row.size, measured).unwrap_or(Bandwidth::ZERO);
    Some(ComparedRow {
        line: row.line,
        size: row.size,
        measured,
        measured_bus_bandwidth: rate * bus_factor(setting.kind, setting.ranks),
        error_percent: error_percent(predicted.time.value.micros_f64(), measured.micros_f64())?,
        inside: predicted.time.covers(measured),
        predicted,
    })
}

fn scored(row: &ComparedRow) -> validate::Row {
    let time = row.predicted.time;
    validate::Row {
        predicted: time.value.micros_f64(),
        measured: row.measured.micros_f64(),
        low: Some(time.low.micros_f64()),
        high: Some(time.high.micros_f64()),
        ..validate::Row::default()
    }
}
