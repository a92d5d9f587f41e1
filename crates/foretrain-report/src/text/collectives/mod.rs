//! The answer of `collectives` as tables.

mod compared;
mod explained;
mod what_ifs;

use foretrain_core::{Bandwidth, Bytes, Ledger, Nanos};
use foretrain_cost::CollectiveTime;
use foretrain_predict::collectives::{
    CollectivesAnswer, Point, Setting, Sweep, dominating_term, latency_share,
};

use super::TextStyle;
use super::evidence::evidence;
use super::ledger::{self, warnings};
use super::sheet::Sheet;
use super::table::{Side, Table};
use super::units::{counted, name, plain, whole_size, whole_time};

/// What to show of collectives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CollectivesView {
    /// Show which term dominates, and which algorithm is chosen from which size on.
    pub explain: bool,
}

/// Sweeps that are shown row by row; of more, the bus bandwidths stand side by side.
const IN_FULL: usize = 4;

/// The page for collectives. `ledger` is what reading the logs met.
pub fn collectives(
    answer: &CollectivesAnswer,
    ledger: &Ledger,
    view: CollectivesView,
    style: TextStyle,
) -> String {
    let mut sheet = Sheet::new(style);
    about(answer, &mut sheet);
    let shown_in_full = answer.sweeps.len() <= IN_FULL;
    if shown_in_full {
        for sweep in &answer.sweeps {
            in_full(sweep, view, &mut sheet);
            what_ifs::rows(sweep, &mut sheet);
        }
    } else {
        for sweeps in answer.sweeps.chunk_by(|a, b| a.setting.kind == b.setting.kind) {
            side_by_side(sweeps, style, &mut sheet);
        }
        sheet.blank();
        let more = format!(
            "Of up to {IN_FULL} curves each row is shown with its interval and algorithm; --json has \
             them of all."
        );
        sheet.paragraph("", &more);
        what_ifs::summary(&answer.sweeps, &mut sheet);
    }
    curves(&answer.sweeps, &mut sheet);
    if view.explain {
        explained::terms(&answer.sweeps, &mut sheet);
        what_ifs::explained(&answer.sweeps, &mut sheet);
    } else if !shown_in_full {
        explained::algorithms(&answer.sweeps, &mut sheet);
    }
    compared::runs(answer, &mut sheet);
    evidence(&answer.evidence, &mut sheet);
    let left_out = answer.left_out.iter();
    let left_out = left_out.map(|l| format!("{} left out: {}", gpus(l.ranks), l.why));
    warnings(&left_out.collect::<Vec<_>>(), &mut sheet);
    ledger::ledger(&ledger.into(), &mut sheet);
    sheet.finish()
}

fn about(answer: &CollectivesAnswer, sheet: &mut Sheet) {
    sheet.heading(&format!("Collectives on {}", answer.cluster));
    sheet.field("devices", &format!("{}, {} per node", answer.device, answer.devices_per_node));
    let latencies: Vec<String> = answer
        .sweeps
        .iter()
        .map(|sweep| sweep.setting.extra_latency)
        .filter(|latency| *latency > Nanos::ZERO)
        .map(whole_time)
        .collect();
    let mut what_if = Vec::new();
    if let Some(first) = latencies.first() {
        let last = latencies.last().filter(|last| *last != first);
        let range = last.map_or_else(|| first.clone(), |last| format!("{first} to {last}"));
        let links_with_it = match answer.late_links {
            Some(links) => {
                format!("on {} of a ring between nodes", counted(links as usize, "link"))
            }
            None => "per hop between nodes".into(),
        };
        what_if.push(format!("{range} more {links_with_it}"));
    }
    if let Some(window) = answer.window {
        what_if.push(format!("at most {} in flight per NIC", whole_size(window)));
    }
    if !what_if.is_empty() {
        sheet.field("what-if", &what_if.join(", "));
    }
}

fn gpus(ranks: u32) -> String {
    counted(ranks as usize, "GPU")
}

/// `16 GPUs on 2 nodes`, and the added latency.
fn place(setting: &Setting) -> String {
    let nodes = counted(setting.nodes as usize, "node");
    let latency = match setting.extra_latency {
        Nanos::ZERO => String::new(),
        latency => format!(", +{}", whole_time(latency)),
    };
    format!("{} on {nodes}{latency}", gpus(setting.ranks))
}

/// `Ring LL128`.
fn way(predicted: &CollectiveTime) -> String {
    let protocol = predicted.protocol.map_or("", |protocol| protocol.as_str());
    format!("{} {protocol}", predicted.algorithm.as_str()).trim_end().to_owned()
}

fn micros(time: Nanos) -> String {
    plain(time.micros_f64())
}

/// Gigabytes per second; small messages need no more than four decimals.
fn rate(rate: Bandwidth) -> String {
    plain(rate.gb_per_sec())
}

fn interval(predicted: &CollectiveTime) -> String {
    format!("{}-{}", micros(predicted.time.low), micros(predicted.time.high))
}

fn in_full(sweep: &Sweep, view: CollectivesView, sheet: &mut Sheet) {
    use Side::{Left, Right};
    sheet.heading(&format!("{}, {}", sweep.setting.kind, place(&sweep.setting)));
    let mut columns = vec![
        ("Size", Right),
        ("us", Right),
        ("80 % interval", Right),
        ("algbw GB/s", Right),
        ("busbw GB/s", Right),
        ("Algorithm", Left),
    ];
    if view.explain {
        columns.extend([("Latency", Right), ("Dominates", Left)]);
    }
    let mut table = Table::new(&columns);
    for Point { size, predicted } in &sweep.points {
        let mut cells = vec![
            whole_size(*size),
            micros(predicted.time.value),
            interval(predicted),
            rate(predicted.algorithm_bandwidth),
            rate(predicted.bus_bandwidth),
            way(predicted),
        ];
        if view.explain {
            cells.push(format!("{:.0} %", latency_share(&predicted.terms) * 100.0));
            cells.push(dominating_term(&predicted.terms).as_str().into());
        }
        table.row(cells);
    }
    table.keep_whole(0..columns.len());
    sheet.table(table);
}

/// Bus bandwidths and times of one operation by size and ranks.
fn side_by_side(sweeps: &[Sweep], style: TextStyle, sheet: &mut Sheet) {
    /// Columns of the sizes, and of a number with its distance to the next.
    const SIZES: usize = 10;
    const NUMBER: usize = 9;
    let fit = (style.width.saturating_sub(SIZES) / NUMBER).max(4);
    let Some(kind) = sweeps.first().map(|sweep| sweep.setting.kind) else { return };
    let bus = |point: &Point| rate(point.predicted.bus_bandwidth);
    let time = |point: &Point| micros(point.predicted.time.value);
    for (title, cell) in
        [("bus bandwidth, GB/s", &bus as &dyn Fn(&Point) -> String), ("time, us", &time)]
    {
        for sweeps in sweeps.chunks(fit) {
            sheet.heading(&format!("{kind}, {title}, by GPUs"));
            matrix(sweeps, cell, sheet);
        }
    }
}

fn matrix(sweeps: &[Sweep], cell: &dyn Fn(&Point) -> String, sheet: &mut Sheet) {
    let titles: Vec<String> = sweeps.iter().map(|sweep| column(&sweep.setting)).collect();
    let mut columns = vec![("Size", Side::Right)];
    columns.extend(titles.iter().map(|title| (title.as_str(), Side::Right)));
    let mut table = Table::new(&columns);
    let sizes = sweeps.first().map_or(&[][..], |sweep| &sweep.points);
    for (row, Point { size, .. }) in sizes.iter().enumerate() {
        let mut cells = vec![whole_size(*size)];
        cells
            .extend(sweeps.iter().map(|sweep| sweep.points.get(row).map(cell).unwrap_or_default()));
        table.row(cells);
    }
    table.keep_whole([0]);
    sheet.table(table);
}

/// `64`, with an added latency `64 +20 us`.
fn column(setting: &Setting) -> String {
    match setting.extra_latency {
        Nanos::ZERO => setting.ranks.to_string(),
        latency => format!("{} +{}", setting.ranks, whole_time(latency)),
    }
}

/// What holds for the whole of each curve.
fn curves(sweeps: &[Sweep], sheet: &mut Sheet) {
    use Side::{Left, Right};
    if sweeps.is_empty() {
        return;
    }
    sheet.heading("Large messages");
    let mut table = Table::new(&[
        ("Operation", Left),
        ("GPUs", Right),
        ("Nodes", Right),
        ("busbw GB/s up to", Right),
        ("Limit", Left),
        ("Latency < 10 % from", Right),
    ]);
    for sweep in sweeps {
        table.row(vec![
            sweep.setting.kind.to_string(),
            column(&sweep.setting),
            sweep.setting.nodes.to_string(),
            rate(sweep.plateau.bus_bandwidth),
            sweep.plateau.limit.describe().into(),
            sweep.latency_minor_from.map_or_else(|| "never".into(), about_size),
        ]);
    }
    table.keep_whole(0..6);
    sheet.table(table);
    notes(sweeps, sheet);
}

/// Each note once, with the places it holds for.
fn notes(sweeps: &[Sweep], sheet: &mut Sheet) {
    let mut said: Vec<(&String, Vec<String>)> = Vec::new();
    for (sweep, note) in sweeps.iter().flat_map(|s| s.notes.iter().map(move |note| (s, note))) {
        let place = place(&sweep.setting);
        match said.iter_mut().find(|(known, _)| *known == note) {
            Some((_, places)) => places.push(place),
            None => said.push((note, vec![place])),
        }
    }
    for (note, places) in said {
        sheet.blank();
        sheet.paragraph("", &format!("{}: {}.", places.join("; "), name(note, 400)));
    }
}

/// A size that was solved for: three digits.
fn about_size(size: Bytes) -> String {
    let digits = (size.get().max(1)).ilog10();
    let step = 10_u64.pow(digits.saturating_sub(3));
    whole_size(Bytes::new(size.get().div_ceil(step).saturating_mul(step)))
}
