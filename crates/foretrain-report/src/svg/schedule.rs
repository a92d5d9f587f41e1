//! A cluster over time under several policies.

use foretrain_core::Nanos;
use foretrain_core::words::counted;
use foretrain_fleet::schedule::compare::PolicyResult;
use foretrain_fleet::schedule::{Answer, Sample};

use super::axis::{Axis, round_ticks};
use super::chart::{
    BETWEEN, HEAD, LEFT, LEGEND, LINE, PLOT, RIGHT, begin, label, look, rule, tick_text,
};
use super::element::{Document, at};

/// What one panel shows of a sample.
type Shown = (&'static str, fn(&Sample) -> f64);

const PANELS: [Shown; 3] = [
    ("GPUs with a job", |sample| sample.busy),
    ("GPUs that compute (by utilisation)", |sample| sample.utilised),
    ("Jobs that wait", |sample| sample.waiting),
];

/// Draws GPUs in use and jobs that wait over time, one line per policy.
pub fn fleet_schedule(answer: &Answer) -> String {
    let step = BETWEEN + PLOT.min(LOWER);
    let height = HEAD + 30.0 + step * PANELS.len() as f64;
    let title = format!("{} on {}", counted(answer.jobs, "job"), counted(answer.gpus, "GPU"));
    let names: Vec<&str> = answer.results.iter().map(|result| result.policy.name).collect();
    let description = format!("GPUs in use and waiting jobs over time under {}", names.join(", "));
    let marks = format!("the table as it is · {}", answer.source);
    let mut document = begin(height, &title, &description, &marks);
    let end = answer.results.iter().map(|result| result.table.makespan).max();
    let (unit, per_unit) = unit(end.unwrap_or(Nanos::ZERO));
    let last = end.map_or(1.0, |end| end.secs_f64() / per_unit);
    for (number, shown) in PANELS.iter().enumerate() {
        let top = HEAD + 30.0 + step * number as f64;
        panel(&mut document, shown, top, answer, (last, unit, per_unit));
    }
    document.finish()
}

/// Height of a panel: three have to fit on a screen.
const LOWER: f64 = 190.0;

fn unit(end: Nanos) -> (&'static str, f64) {
    match end.secs_f64() {
        seconds if seconds > 4.0 * 86_400.0 => ("days", 86_400.0),
        seconds if seconds > 3.0 * 3_600.0 => ("hours", 3_600.0),
        seconds if seconds > 300.0 => ("minutes", 60.0),
        _ => ("seconds", 1.0),
    }
}

fn panel(
    document: &mut Document,
    (title, value): &Shown,
    top: f64,
    answer: &Answer,
    (last, unit, per_unit): (f64, &str, f64),
) {
    let bottom = top + LOWER;
    let samples = || answer.results.iter().flat_map(|result| &result.table.samples);
    let highest = samples().map(value).fold(0.0, f64::max);
    let ticks = round_ticks(highest, 4.0);
    let x = Axis::new((0.0, last), (LEFT, RIGHT));
    let y = Axis::new((0.0, ticks.last().copied().unwrap_or(1.0)), (bottom, top));
    label(document, "panel", (LEFT, top - 12.0), "start", title);
    for tick in ticks {
        rule(document, "grid", (LEFT, y.pixel(tick)), (RIGHT, y.pixel(tick)));
        label(document, "dim", (LEFT - 8.0, y.pixel(tick) + 4.0), "end", &tick_text(tick));
    }
    for tick in round_ticks(last, 6.0).into_iter().filter(|tick| *tick <= last) {
        rule(document, "axis", (x.pixel(tick), bottom), (x.pixel(tick), bottom + 4.0));
        label(document, "dim", (x.pixel(tick), bottom + 18.0), "middle", &tick_text(tick));
    }
    rule(document, "axis", (LEFT, bottom), (RIGHT, bottom));
    let below = format!("Time since the first submission ({unit})");
    label(document, "dim", ((LEFT + RIGHT) / 2.0, bottom + 38.0), "middle", &below);
    for (index, result) in answer.results.iter().enumerate() {
        let (colour, dash) = look(index);
        let path = steps(result, value, x, y, per_unit);
        let attributes =
            [("class", "curve"), ("stroke", colour), ("stroke-dasharray", dash), ("d", &path)];
        document.open("path", &attributes);
        document.text("title", &[], result.policy.name);
        document.close();
        let height = top + 8.0 + LINE * index as f64;
        let key = format!("M{} {}h22", at(LEGEND), at(height - 4.0));
        let attributes =
            [("class", "curve"), ("stroke", colour), ("stroke-dasharray", dash), ("d", &key)];
        document.empty("path", &attributes);
        label(document, "", (LEGEND + 30.0, height), "start", result.policy.name);
    }
}

/// A line that steps from sample to sample. More points than pixels would only make the file long.
fn steps(
    result: &PolicyResult,
    value: &fn(&Sample) -> f64,
    x: Axis,
    y: Axis,
    per_unit: f64,
) -> String {
    let run = &result.table;
    let across = |time: Nanos| x.pixel((time - run.begin).secs_f64() / per_unit);
    let mut path = String::new();
    let mut before: Option<f64> = None;
    for sample in &run.samples {
        let (left, height) = (across(sample.from), y.pixel(value(sample)));
        match before {
            None => path = format!("M{} {}", at(left), at(height)),
            Some(last) if left - last < 0.5 => continue,
            Some(_) => path.push_str(&format!("H{}V{}", at(left), at(height))),
        }
        before = Some(left);
    }
    if !path.is_empty() {
        path.push_str(&format!("H{}", at(across(run.begin + run.makespan))));
    }
    path
}
