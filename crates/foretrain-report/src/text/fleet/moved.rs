//! The pages of `fleet project` and `fleet sweep`.

use foretrain_core::Ledger;
use foretrain_fleet::jobs::Class;
use foretrain_fleet::pai::Resource;
use foretrain_fleet::pai::project::{Gains, Infeasible, Projection, Projections};
use foretrain_fleet::pai::sweep::Sweep;

use super::method;
use crate::text::TextStyle;
use crate::text::ledger;
use crate::text::sheet::Sheet;
use crate::text::table::{Side, Table};
use crate::text::units::{name, percent};

/// The page of `fleet project`.
pub fn fleet_project(
    whose: &str,
    answer: &Projections,
    ledger: &Ledger,
    style: TextStyle,
) -> String {
    let mut sheet = Sheet::new(style);
    sheet.heading(&format!("Jobs in other classes: {}", name(whose, 80)));
    method(&answer.method, &answer.rows, answer.overlap, &mut sheet);
    let memory = answer.method.hardware.gpu_memory.as_f64() / 1e9;
    sheet.field(
        "weights",
        &format!("have to fit {} GB of a GPU where they are kept on it", super::amount(memory)),
    );
    if answer.can_any_run() {
        speed_ups(&answer.projections, &mut sheet);
    } else if answer.rows.timed.used > 0 {
        sheet.warning(match answer.projections.is_empty() {
            true => "all jobs that could be timed are of the class asked for, so none moves",
            false => "no job can run in another class",
        });
    }
    reasons(&answer.projections, &mut sheet);
    if answer.can_any_run() {
        explained(&answer.projections, &mut sheet);
    }
    ledger::ledger(&ledger.into(), &mut sheet);
    sheet.finish()
}

fn speed_ups(projections: &[Projection], sheet: &mut Sheet) {
    sheet.heading("Mean speed-up of one replica and of whole jobs, of those that can run there");
    let mut table = Table::new(&[
        ("Jobs of", Side::Left),
        ("To", Side::Left),
        ("Jobs", Side::Right),
        ("Can run", Side::Right),
        ("Replica", Side::Right),
        ("Faster", Side::Right),
        ("Job", Side::Right),
        ("Faster", Side::Right),
    ]);
    table.keep_whole(0..8);
    for projection in projections.iter().filter(|projection| projection.jobs.used > 0) {
        table.row(cells(projection));
    }
    sheet.table(table);
}

fn explained(projections: &[Projection], sheet: &mut Sheet) {
    sheet.blank();
    sheet
        .paragraph("", "Faster is of all jobs of the class, those that cannot run there included.");
    if projections.iter().any(|projection| projection.to == Class::Pearl) {
        sheet.paragraph(
            "",
            "PEARL's traffic is a proposed form (docs/fleet.md), not the study's own.",
        );
    }
}

fn cells(projection: &Projection) -> Vec<String> {
    let total = projection.jobs.total;
    let faster =
        |gains: &Gains| format!("{} ({})", gains.jobs, percent(gains.jobs as f64 / total as f64));
    vec![
        name(&projection.of, 18),
        projection.to.name().into(),
        total.to_string(),
        projection.jobs.used.to_string(),
        format!("{:.2}", projection.single.mean),
        faster(&projection.single),
        format!("{:.2}", projection.overall.mean),
        faster(&projection.overall),
    ]
}

fn reasons(projections: &[Projection], sheet: &mut Sheet) {
    let mut table = Table::new(&[
        ("Jobs of", Side::Left),
        ("To", Side::Left),
        ("Cannot run, as", Side::Left),
        ("Jobs", Side::Right),
    ]);
    for projection in projections {
        for (reason, jobs) in Infeasible::ALL.into_iter().zip(projection.infeasible) {
            if jobs > 0 {
                table.row(vec![
                    name(&projection.of, 30),
                    projection.to.name().into(),
                    reason.name().into(),
                    jobs.to_string(),
                ]);
            }
        }
    }
    if !table.is_empty() {
        sheet.heading("Why jobs cannot run there");
        sheet.table(table);
    }
}

/// The page of `fleet sweep`; `recalled_grid` if its changes are those of the study.
pub fn fleet_sweep(
    whose: &str,
    answer: &Sweep,
    recalled_grid: bool,
    ledger: &Ledger,
    style: TextStyle,
) -> String {
    let mut sheet = Sheet::new(style);
    sheet.heading(&format!("What changes would buy: {}", name(whose, 80)));
    method(&answer.method, &answer.rows, answer.overlap, &mut sheet);
    if recalled_grid {
        sheet.field("changes", "the rates that the study tried, as recalled, and two of NVLink");
    }
    if !answer.classes.is_empty() {
        effects(answer, &mut sheet);
    }
    ledger::ledger(&ledger.into(), &mut sheet);
    sheet.finish()
}

fn effects(answer: &Sweep, sheet: &mut Sheet) {
    sheet.heading("Mean speed-up of a step");
    let mut columns = vec![("Change", Side::Left)];
    columns.extend(answer.classes.iter().map(|class| (class.of.as_str(), Side::Right)));
    let mut table = Table::new(&columns);
    let mut row = |name: &str, value: &dyn Fn(usize) -> String| {
        let mut cells = vec![name.to_owned()];
        cells.extend((0..answer.classes.len()).map(value));
        table.row(cells);
    };
    row("jobs", &|class| answer.classes[class].effects.first().map_or(0, |e| e.jobs).to_string());
    for (index, change) in answer.changes.iter().enumerate() {
        row(&name(&change.name, 60), &|class| {
            format!("{:.3}", answer.classes[class].effects[index].mean)
        });
    }
    for resource in Resource::ALL {
        row(&format!("{} doubled", resource.name()), &|class| {
            format!("{:.3}", answer.classes[class].doubled[resource.index()])
        });
    }
    row("most sensitive to", &|class| answer.classes[class].most_sensitive().name().into());
    sheet.table(table);
}
