//! The page of simulated schedules.

use foretrain_plan::varuna::compare::Compared;

use super::timeline::timeline;
use super::{drawn, micro_batches};
use crate::text::TextStyle;
use crate::text::sheet::Sheet;
use crate::text::table::{Side, Table};
use crate::text::units::{counted, ms, percent};

/// The page for schedules of one pipeline; with timelines where tasks were kept.
pub fn varuna_simulate(all: &[Compared], style: TextStyle) -> String {
    let mut sheet = Sheet::new(style);
    let Some(first) = all.first() else { return sheet.finish() };
    sheet.heading(&format!(
        "{} with {}",
        counted(first.step.pipeline().stages().len(), "stage"),
        micro_batches(first.step.micro_batches())
    ));
    let mut columns = vec![
        ("Schedule", Side::Left),
        ("ms pipeline", Side::Right),
        ("ms step", Side::Right),
        ("Bubble", Side::Right),
        ("In flight", Side::Right),
    ];
    let has_draws = all.iter().any(|one| one.distribution.is_some());
    if has_draws {
        columns.extend(["p5", "p50", "p95"].map(|head| (head, Side::Right)));
    }
    let mut table = Table::new(&columns);
    for one in all {
        let mut row = vec![
            one.step.schedule().to_string(),
            ms(one.run.makespan),
            ms(one.time()),
            percent(one.run.bubble()),
            one.run.in_flight.iter().max().map_or_else(|| "0".into(), ToString::to_string),
        ];
        if let Some(found) = &one.distribution {
            row.extend([found.p5, found.p50, found.p95].map(|time| ms(time + one.after)));
        }
        table.row(row);
    }
    table.keep_whole(0..columns.len());
    sheet.table(table);
    sheet.blank();
    sheet.paragraph("", DEFINITIONS);
    if let Some(found) = all.iter().find_map(|one| one.distribution.as_ref()) {
        let text =
            format!("p5, p50 and p95 are of the step over {}", drawn(&found.jitter, found.draws));
        sheet.paragraph("", &text);
    }
    for one in all.iter().filter(|one| !one.run.slices.is_empty()) {
        sheet.heading(&format!("Timeline of {}", one.step.schedule()));
        for line in timeline(one, style.width) {
            sheet.line(&line);
        }
    }
    sheet.finish()
}

const DEFINITIONS: &str = "Step: the pipeline and what follows it. Bubble: share of the pipeline's time in \
    which a stage does not compute, on average. In flight: micro-batches that are forward and not yet \
    backward on one stage, at the most.";
