//! What-ifs of the network beside the cluster as it is.

use foretrain_predict::collectives::{Step, StepKind, StepPoint, Sweep};

use super::super::sheet::Sheet;
use super::super::table::{Side, Table};
use super::super::units::{name, whole_size};
use super::{column, micros, place};

/// A change of the time that is not worth a word.
const SLIGHT: f64 = 0.01;

const fn label(kind: StepKind) -> &'static str {
    match kind {
        StepKind::Topology => "topology",
        StepKind::Scatter => "scattered",
        StepKind::Concurrent => "at once",
        StepKind::Degrade => "degraded",
    }
}

fn times(point: &StepPoint) -> String {
    format!("{:.2}x", point.times)
}

fn held_back(point: &StepPoint) -> String {
    name(point.bottleneck.as_deref().unwrap_or("-"), 60)
}

/// Every size of a sweep under each step.
pub(super) fn rows(sweep: &Sweep, sheet: &mut Sheet) {
    use Side::{Left, Right};
    let Some(last) = sweep.steps.last() else { return };
    sheet.heading(&format!("What if, {}, {}", sweep.setting.kind, place(&sweep.setting)));
    changes(std::slice::from_ref(sweep), sheet);
    sheet.blank();
    let mut columns = vec![("Size", Right), ("as is us", Right)];
    columns.extend(sweep.steps.iter().map(|step| (label(step.kind), Right)));
    columns.extend([("then us", Right), ("Held back by", Left)]);
    let mut table = Table::new(&columns);
    for (at, point) in sweep.points.iter().enumerate() {
        let mut cells = vec![whole_size(point.size), micros(point.predicted.time.value)];
        cells.extend(sweep.steps.iter().map(|step| times(&step.points[at])));
        let now = &last.points[at];
        cells.extend([micros(now.time.value), held_back(now)]);
        table.row(cells);
    }
    table.keep_whole(0..columns.len() - 1);
    sheet.table(table);
}

/// What each step changes, once: the topology may depend on the number of nodes.
fn changes(sweeps: &[Sweep], sheet: &mut Sheet) {
    let mut said: Vec<(StepKind, Vec<&str>)> = Vec::new();
    for step in sweeps.iter().flat_map(|sweep| &sweep.steps) {
        match said.iter_mut().find(|(kind, _)| *kind == step.kind) {
            Some((_, known)) if known.contains(&step.what.as_str()) => {}
            Some((_, known)) => known.push(&step.what),
            None => said.push((step.kind, vec![&step.what])),
        }
    }
    for (kind, what) in said {
        sheet.field(label(kind), &name(&what.join(" or "), 400));
    }
}

/// One size of each sweep, where rows are too many to show.
pub(super) fn summary(sweeps: &[Sweep], sheet: &mut Sheet) {
    use Side::{Left, Right};
    let Some(first) = sweeps.first().filter(|sweep| !sweep.steps.is_empty()) else { return };
    sheet.heading("What if, at the size that changes most");
    changes(sweeps, sheet);
    sheet.blank();
    let mut columns = vec![("Operation", Left), ("GPUs", Right), ("Size", Right)];
    columns.extend(first.steps.iter().map(|step| (label(step.kind), Right)));
    columns.push(("Held back by", Left));
    let mut table = Table::new(&columns);
    for sweep in sweeps {
        let Some(at) = sweep.steps.last().and_then(most_changed) else { continue };
        let mut cells = vec![sweep.setting.kind.to_string(), column(&sweep.setting)];
        cells.push(whole_size(sweep.points[at].size));
        cells.extend(sweep.steps.iter().map(|step| times(&step.points[at])));
        cells.extend(sweep.steps.last().map(|step| held_back(&step.points[at])));
        table.row(cells);
    }
    table.keep_whole(0..columns.len() - 1);
    sheet.table(table);
}

/// The size whose time changes most; the smallest of equals.
fn most_changed(step: &Step) -> Option<usize> {
    let change = |point: &StepPoint| point.times.ln().abs();
    let points = step.points.iter().enumerate();
    points.rev().max_by(|a, b| change(a.1).total_cmp(&change(b.1))).map(|(at, _)| at)
}

/// A paragraph for each sweep: from when on it matters, and how much.
pub(super) fn explained(sweeps: &[Sweep], sheet: &mut Sheet) {
    if sweeps.iter().all(|sweep| sweep.steps.is_empty()) {
        return;
    }
    sheet.heading("What the what-ifs do");
    for (number, sweep) in sweeps.iter().enumerate() {
        if number > 0 {
            sheet.blank();
        }
        let steps: Vec<String> = sweep.steps.iter().map(|step| effect(sweep, step)).collect();
        let setting = &sweep.setting;
        let text = format!("{}, {}: {}.", setting.kind, place(setting), steps.join("; "));
        sheet.paragraph("", &text);
    }
    sheet.blank();
    sheet.paragraph(
        "",
        "Each what-if stands on top of those before it, and times count against the cluster as it \
         is. Bytes take longer by the ratio of two simulations of all flows over all links, the one with and \
         the one without; launch and reduction stay, hops change with the topology alone.",
    );
}

fn effect(sweep: &Sweep, step: &Step) -> String {
    let label = label(step.kind);
    let Some(at) = most_changed(step) else { return label.into() };
    let matters = |point: &StepPoint| (point.times - 1.0).abs() > SLIGHT;
    let found: Vec<bool> = step.points.iter().map(matters).collect();
    let size = |at: usize| whole_size(sweep.points[at].size);
    let when = match (found.iter().position(|m| *m), found.iter().rposition(|m| *m)) {
        (Some(0), Some(last)) if last + 1 == found.len() => "at all sizes".into(),
        (Some(0), Some(last)) => format!("up to {}", size(last)),
        (Some(first), Some(last)) if last + 1 == found.len() => format!("from {} on", size(first)),
        (Some(first), Some(last)) => format!("from {} to {}", size(first), size(last)),
        _ => return format!("{label} within 1 % at all sizes"),
    };
    let point = &step.points[at];
    let by = point.bottleneck.as_deref().map(|link| format!(", held back by {}", name(link, 60)));
    format!("{label} matters {when}, {} at {}{}", times(point), size(at), by.unwrap_or_default())
}
