//! Measured runs beside the model.

use foretrain_core::{Bandwidth, Nanos};
use foretrain_cost::{CollectiveCall, Fabric, bus_factor, collective_time};
use foretrain_graph::CollectiveKind;
use foretrain_hardware::{Catalogue, Cluster};
use foretrain_ingest::collective_log::{CollectiveLog, Row, Run};

use super::answer::{ComparedRow, Comparison, Setting, Sweep, Uncompared};
use super::notes;
use super::setting::{Layout, Place, WhatIf, layout_on, situate};
use crate::validate::{self, error_percent, scores};

/// What runs are predicted for.
pub(super) struct Machine<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) catalogue: &'a Catalogue,
    /// Of runs whose log names no hosts.
    pub(super) layout: Layout,
    pub(super) what_if: WhatIf,
}

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

/// The fabric under a run, or why it has none.
fn placed(machine: &Machine<'_>, run: &Run) -> Result<Place, String> {
    if run.kind.value == CollectiveKind::Unknown {
        return Err("the log does not name the operation; name the file after it, as in \
                    all_reduce.log"
            .into());
    }
    if run.cpu_time {
        return Err("its times are those of the issuing thread, not of the operation".into());
    }
    let Some(ranks) = run.ranks.as_ref().map(|ranks| ranks.value) else {
        return Err("the log does not tell the number of ranks".into());
    };
    let layout = run.nodes.map_or(machine.layout, |hosts| layout(machine.cluster, ranks, hosts));
    situate(machine.cluster, ranks, layout, machine.what_if).map_err(|error| error.to_string())
}

/// Where the ranks of a log sit, from the hosts it names. A node of the catalogue may have several.
fn layout(cluster: &Cluster, ranks: u32, hosts: u32) -> Layout {
    layout_on(cluster, ranks, hosts.div_ceil(cluster.node.hosts.max(1)))
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
            other_device(machine, run),
            no_hosts(&setting, run),
        ]
        .into_iter()
        .flatten()
        .collect(),
        rows,
    }
}

fn compared(fabric: &Fabric, setting: &Setting, row: &Row) -> Option<ComparedRow> {
    let times = [row.out_of_place, row.in_place].into_iter().flatten().map(|timing| timing.time);
    let measured = times.filter(|time| *time > Nanos::ZERO).min()?;
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

/// A log of another device tells little of this cluster.
fn other_device(machine: &Machine<'_>, run: &Run) -> Option<String> {
    let named = run.device.as_deref().filter(|name| !name.trim().is_empty())?;
    let known = machine.catalogue.device_by_product_name(named)?;
    let here = &machine.cluster.node.device.name;
    (known.name != *here)
        .then(|| format!("measured on {} ({named}), predicted for {here}", known.name))
}

fn no_hosts(setting: &Setting, run: &Run) -> Option<String> {
    run.nodes.is_none().then(|| {
        let per_node = setting.ranks_per_node;
        format!("the log does not name its hosts; taken to have had {per_node} of its ranks each")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_tell_the_layout() {
        let cluster = |name| Catalogue::builtin().cluster(name).unwrap();
        let dgx = cluster("dgx-a100");
        assert_eq!(layout(&dgx, 16, 2), Layout::Packed);
        assert_eq!(layout(&dgx, 16, 4), Layout::PerNode(4));
        assert_eq!(layout(&dgx, 4, 1), Layout::Packed);
        assert_eq!(layout(&dgx, 2, 2), Layout::PerNode(1));
        // 18 hosts are one NVLink domain.
        assert_eq!(layout(&cluster("gb200-nvl72"), 72, 18), Layout::Packed);
        assert_eq!(layout(&cluster("gb200-nvl72"), 144, 36), Layout::Packed);
    }
}
