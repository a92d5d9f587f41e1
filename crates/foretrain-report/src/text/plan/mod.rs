//! The answer of `plan` as a page.

mod explained;
mod places;
mod recorded;
mod why;

use foretrain_plan::Layout;
use foretrain_plan::memory::Fit;
use foretrain_plan::plan::{Candidate, Needs, Place, Plan};

pub use recorded::plan_recorded;

use super::TextStyle;
use super::estimate::{advice, calibrated, money, notes};
use super::evidence::evidence;
use super::sheet::Sheet;
use super::table::{Side, Table};
use super::units::{counted, ms, ms_interval, name, percent, plain, whole_size};

/// What to show of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanView {
    /// Layouts that are listed.
    pub top: usize,
}

impl Default for PlanView {
    fn default() -> Self {
        Self { top: 10 }
    }
}

/// The page for a plan of the model of this name.
pub fn plan(model: &str, plan: &Plan, view: PlanView, style: TextStyle) -> String {
    let mut sheet = Sheet::new(style);
    let model = name(model, 60);
    if plan.places.len() > 1 {
        sheet.heading(&format!("{model}: clusters and sizes"));
        places::places(plan, &mut sheet);
    }
    let subject = &plan.places[plan.best.unwrap_or(0)];
    let where_to = format!("{} of {}", counted(subject.devices as usize, "GPU"), subject.cluster);
    sheet.heading(&format!("{model} on {where_to}"));
    ranking(subject, view, &mut sheet);
    if plan.places.len() == 1 {
        places::finish(subject, plan.goal, &mut sheet);
    }
    searched(subject, &mut sheet);
    if let Some(reasons) = &plan.reasons {
        why::reasons(subject, reasons, &mut sheet);
    }
    if let Some(needs) = &plan.needs {
        missing(needs, subject, &mut sheet);
    }
    if let Some(explained) = &plan.explained {
        explained::explained(explained, subject, &mut sheet);
    }
    front(plan, view, &mut sheet);
    if let Some(steps) = &subject.calibrated {
        calibrated(steps, &mut sheet);
    }
    let winner = subject.winner.as_ref();
    if let Some(winner) = winner {
        evidence(&winner.evidence, &mut sheet);
    }
    let mut warnings: Vec<String> = winner.map(|winner| winner.notes.clone()).unwrap_or_default();
    if !plan.complete {
        let (done, all) = plan
            .places
            .iter()
            .fold((0, 0), |sum, place| (sum.0 + place.found.looked_at, sum.1 + place.found.all));
        warnings.insert(0, format!("stopped after {done} of {all} layouts: the best so far"));
    }
    warnings.extend(plan.left_out.iter().map(|out| {
        format!(
            "{} of {} left out: {}",
            counted(out.devices as usize, "GPU"),
            out.cluster,
            out.reason
        )
    }));
    notes(&warnings, &mut sheet);
    sheet.finish()
}

/// The unit of throughput.
fn unit(place: &Place) -> &'static str {
    if place.rates.in_samples { "Samples" } else { "Tokens" }
}

/// A layout that may be broken behind its commas, and is read all the same.
fn spaced(layout: &Layout) -> String {
    layout.to_string().replace(',', ", ")
}

/// The best layouts.
fn ranking(place: &Place, view: PlanView, sheet: &mut Sheet) {
    let ranked = &place.found.ranked;
    if ranked.is_empty() {
        return;
    }
    let rate = format!("{}/s/GPU", unit(place));
    let mut table = Table::new(&[
        ("#", Side::Right),
        ("Layout", Side::Left),
        ("Step ms", Side::Right),
        ("80 % interval", Side::Right),
        (&rate, Side::Right),
        ("MFU", Side::Right),
        ("Memory", Side::Right),
        ("$/1M", Side::Right),
        ("", Side::Left),
    ]);
    for (at, candidate) in ranked.iter().take(view.top).enumerate() {
        table.row(row(at, candidate, place));
    }
    table.keep_whole([0, 2, 3, 4, 5, 6, 7, 8]);
    sheet.table(table);
    let ties = ranked.iter().skip(1).take_while(|one| place.ties(one)).count();
    let mut text = String::new();
    if ties > 0 {
        text.push_str(&format!(
            "{} (=) with the winner's interval: the order among them is within the model's error. ",
            if ties == 1 {
                "1 interval overlaps".into()
            } else {
                format!("{ties} intervals overlap")
            }
        ));
    }
    if let Some(fastest) = &place.fastest {
        text.push_str(&format!(
            "{} is faster by less than 0.5 %; of equal times the simpler layout is preferred.",
            fastest.layout
        ));
    }
    sheet.paragraph("", &text);
}

fn row(at: usize, candidate: &Candidate, place: &Place) -> Vec<String> {
    let time = candidate.time.value;
    let mut marks = Vec::new();
    if at > 0 && place.ties(candidate) {
        marks.push("=");
    }
    if candidate.fit == Fit::Tight {
        marks.push("tight");
    }
    vec![
        (at + 1).to_string(),
        spaced(&candidate.layout),
        ms(time),
        ms_interval(&candidate.time),
        plain(place.rates.tokens_per_second_and_device(time)),
        place.rates.mfu(time).map_or_else(|| "n/a".into(), percent),
        candidate.memory.to_string(),
        place.rates.dollars_per_million(time).map_or_else(|| "-".into(), money),
        marks.join(" "),
    ]
}

/// How many layouts there are and why others are not in the ranking.
fn searched(place: &Place, sheet: &mut Sheet) {
    let found = &place.found;
    let refused = &found.refused;
    let limit = if place.limit == place.capacity {
        format!("the {} of a device", whole_size(place.capacity))
    } else {
        format!("{} of a device's {}", place.limit, whole_size(place.capacity))
    };
    let parts = [
        (found.ranked.len(), "ranked".to_owned()),
        (refused.too_large, format!("do not fit into {limit}")),
        (refused.illegal, "do not go with the model, the batch or the cluster".into()),
        (refused.hopeless, "compute alone for more than twice the best step".into()),
    ];
    let words: Vec<String> = parts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    sheet.blank();
    let all = counted(found.looked_at, "layout");
    sheet.paragraph("", &format!("{all} looked at: {}.", words.join(", ")));
}

/// Layouts that none beats in everything.
fn front(plan: &Plan, view: PlanView, sheet: &mut Sheet) {
    if plan.front.len() < 2 {
        return;
    }
    sheet.heading("Best trade-offs of time, cost and memory");
    let several = plan.places.len() > 1;
    let mut columns = vec![("Layout", Side::Left)];
    if several {
        columns.insert(0, ("On", Side::Left));
    }
    columns.extend([("Step ms", Side::Right), ("$/1M", Side::Right), ("Memory", Side::Right)]);
    let mut table = Table::new(&columns);
    for item in plan.front.iter().take(view.top) {
        let place = &plan.places[item.place];
        let candidate = &place.found.ranked[item.rank];
        let time = candidate.time.value;
        let mut cells = vec![
            spaced(&candidate.layout),
            ms(time),
            place.rates.dollars_per_million(time).map_or_else(|| "-".into(), money),
            candidate.memory.to_string(),
        ];
        if several {
            cells.insert(0, format!("{} x {}", place.devices, place.cluster));
        }
        table.row(cells);
    }
    let first = columns.len() - 3;
    table.keep_whole(first..columns.len());
    sheet.table(table);
    if plan.front.len() > view.top {
        let more = plan.front.len() - view.top;
        sheet.paragraph("", &format!("and {more} more; --json holds all."));
    }
}

/// What is missing where nothing fits.
fn missing(needs: &Needs, place: &Place, sheet: &mut Sheet) {
    sheet.heading("Nothing fits");
    sheet.paragraph(
        "",
        &format!(
            "{} comes nearest: its fullest device needs {} of {}.",
            needs.layout, needs.memory, place.limit
        ),
    );
    if !needs.advice.is_empty() {
        sheet.blank();
        advice(&needs.advice, sheet);
    }
    if let Some((devices, candidate)) = &needs.more_devices {
        sheet.blank();
        sheet.paragraph(
            "",
            &format!(
                "{devices} GPUs would do: {}, {} ms, {}.",
                candidate.layout,
                ms(candidate.time.value),
                candidate.memory
            ),
        );
    }
}
