//! The answer of `whatif` as tables.

use foretrain_core::{Ledger, Nanos};
use foretrain_predict::whatif::answer::{Outcome, ScenarioAnswer, WhatIf};

use super::TextStyle;
use super::evidence::evidence;
use super::owners::{Column, SIDE_BY_SIDE, largest, owners};
use super::predict::{recorded, warnings};
use super::sheet::Sheet;
use super::table::{Side, Table};
use super::units::{counted, ms, ms_interval, ms_unit, name, percent_of, plain};

/// Scenarios that are listed; of more, those that save most.
const LISTED: usize = 60;
/// Characters of a scenario's label in the table.
const LABEL: usize = 60;
/// Scenarios whose changes are explained one by one.
const EXPLAINED: usize = 8;

/// The page for an answer. `ledger` is what reading and analysing the traces had to mend.
pub fn whatif(answer: &WhatIf, ledger: &Ledger, style: TextStyle) -> String {
    let mut sheet = Sheet::new(style);
    sheet.heading(&format!("What if, on {}", answer.cluster));
    recorded(&answer.recorded, &mut sheet);
    table(answer, &mut sheet);
    notes(answer, &mut sheet);
    waterfalls(answer, &mut sheet);
    breakdowns(answer, &mut sheet);
    evidence(&answer.evidence, &mut sheet);
    warnings(&answer.warnings, ledger, &mut sheet);
    sheet.finish()
}

/// Those that the tables show, in order.
fn listed(answer: &WhatIf) -> Vec<&ScenarioAnswer> {
    let mut order: Vec<usize> = (0..answer.scenarios.len()).collect();
    if order.len() > LISTED {
        order.sort_by_key(|&i| std::cmp::Reverse(gain(answer, &answer.scenarios[i])));
        order.truncate(LISTED);
    }
    order.into_iter().map(|i| &answer.scenarios[i]).collect()
}

/// Whether scenarios do different amounts of work per step, so that step times do not compare.
fn differ_in_work(answer: &WhatIf) -> bool {
    let work = |outcome: &Outcome| f64::from(outcome.replicas) * outcome.batch;
    let own = work(&answer.baseline);
    answer.scenarios.iter().any(|scenario| work(&scenario.outcome) != own)
}

/// What to rank by: the saving, or, where the work per step differs, the throughput in per mille.
fn gain(answer: &WhatIf, scenario: &ScenarioAnswer) -> i64 {
    match differ_in_work(answer) {
        true => (1000.0 * speed(answer, scenario)) as i64,
        false => scenario.saving.nanos(),
    }
}

/// Work per second over the baseline's.
fn speed(answer: &WhatIf, scenario: &ScenarioAnswer) -> f64 {
    let own = answer.baseline.throughput.value;
    if own > 0.0 { scenario.outcome.throughput.value / own } else { 0.0 }
}

fn table(answer: &WhatIf, sheet: &mut Sheet) {
    let work_differs = differ_in_work(answer);
    let in_samples = answer.baseline.samples_per_second.is_some();
    let mut columns = vec![
        ("Scenario", Side::Left),
        ("Step ms", Side::Right),
        ("80 % interval", Side::Right),
        ("Saves ms", Side::Right),
        ("Saves", Side::Right),
    ];
    if work_differs {
        columns.push(("GPUs", Side::Right));
        columns.push((if in_samples { "Samples/s" } else { "Batches/s" }, Side::Right));
        columns.push(("Speed", Side::Right));
    }
    columns.push(("Largest owner", Side::Left));
    let before = answer.baseline.step_time.value;
    let mut table = Table::new(&columns);
    let mut row = |label: &str, outcome: &Outcome, saving: Option<Nanos>, speed: f64| {
        let mut cells = vec![
            name(label, LABEL),
            ms(outcome.step_time.value),
            ms_interval(&outcome.step_time),
            saving.map_or("-".into(), ms),
            saving.map_or("-".into(), |saving| percent_of(saving, before)),
        ];
        if work_differs {
            let rate = outcome.samples_per_second.unwrap_or(outcome.throughput);
            cells.push(outcome.gpus.to_string());
            cells.push(plain(rate.value));
            cells.push(format!("{speed:.2}x"));
        }
        cells.push(largest(&outcome.breakdown));
        table.row(cells);
    };
    row("as it is", &answer.baseline, None, 1.0);
    let listed = listed(answer);
    for scenario in &listed {
        row(&scenario.label, &scenario.outcome, Some(scenario.saving), speed(answer, scenario));
    }
    table.keep_whole(1..columns.len() - 1);
    sheet.blank();
    sheet.table(table);
    sheet.blank();
    if listed.len() < answer.scenarios.len() {
        let all = answer.scenarios.len();
        sheet.paragraph(
            "",
            &format!("The best {} of {all} scenarios; --json holds all.", listed.len()),
        );
    }
    sheet.paragraph("", &legend(answer, work_differs));
    for (label, reason) in &answer.left_out {
        sheet.paragraph("", &format!("Not asked: {label}: {reason}."));
    }
}

fn legend(answer: &WhatIf, work_differs: bool) -> String {
    let mut text = String::from(
        "Saves is what a step takes less than as it is; every scenario is simulated as a whole, so \
         what it saves is never counted twice.",
    );
    if answer.is_standard {
        text.push_str(
            " Each line is an upper bound of what can be had by working on that part; the savings do \
             not add up. Ask for your own with --change.",
        );
    }
    if work_differs {
        text.push_str(
            " Scenarios do different amounts of work per step: compare them by speed, their work per \
             second over that of the job as it is.",
        );
    }
    text
}

fn notes(answer: &WhatIf, sheet: &mut Sheet) {
    let noted: Vec<&ScenarioAnswer> =
        answer.scenarios.iter().filter(|scenario| !scenario.notes.is_empty()).collect();
    if noted.is_empty() || noted.len() > EXPLAINED {
        return;
    }
    sheet.heading("What was changed");
    let mut said: Vec<&str> = Vec::new();
    for note in noted.iter().flat_map(|scenario| &scenario.notes) {
        if !said.contains(&note.as_str()) {
            said.push(note);
            sheet.paragraph("- ", &name(note, 300));
        }
    }
}

fn waterfalls(answer: &WhatIf, sheet: &mut Sheet) {
    let several: Vec<&ScenarioAnswer> =
        answer.scenarios.iter().filter(|scenario| !scenario.shares.is_empty()).collect();
    for scenario in several.iter().take(EXPLAINED) {
        sheet.heading(&format!("What each change of {} is worth", name(&scenario.label, LABEL)));
        let mut table = Table::new(&[
            ("Change", Side::Left),
            ("Alone ms", Side::Right),
            ("Made last ms", Side::Right),
        ]);
        for share in &scenario.shares {
            table.row(vec![name(&share.change, LABEL), ms(share.alone), ms(share.last)]);
        }
        let alone: Nanos = scenario.shares.iter().map(|share| share.alone).sum();
        let last: Nanos = scenario.shares.iter().map(|share| share.last).sum();
        table.row(vec!["sum".into(), ms(alone), ms(last)]);
        table.row(vec!["together, as simulated".into(), ms(scenario.saving), String::new()]);
        table.keep_whole([1, 2]);
        sheet.table(table);
        if scenario.overlaps() {
            let twice = ms_unit(alone - scenario.saving);
            sheet.paragraph(
                "",
                &format!(
                    "The changes overlap: alone they save {twice} more in all than together, because \
                     they shorten the same time."
                ),
            );
        }
    }
    if several.len() > EXPLAINED {
        let more = counted(several.len() - EXPLAINED, "more scenario");
        sheet.paragraph("", &format!("--json has {more}."));
    }
}

fn breakdowns(answer: &WhatIf, sheet: &mut Sheet) {
    let listed = listed(answer);
    let mut best: Vec<(usize, &ScenarioAnswer)> = listed.into_iter().enumerate().collect();
    let all = best.len();
    if all > SIDE_BY_SIDE - 1 {
        best.sort_by_key(|(_, scenario)| std::cmp::Reverse(gain(answer, scenario)));
        best.truncate(SIDE_BY_SIDE - 1);
        best.sort_by_key(|(at, _)| *at);
    }
    let role = |_: &str| None;
    let as_it_is =
        Column { heading: "as it is".into(), breakdown: &answer.baseline.breakdown, role: &role };
    let scenarios = best.iter().map(|(_, scenario)| Column {
        heading: name(&scenario.label, 22),
        breakdown: &scenario.outcome.breakdown,
        role: &role,
    });
    let columns: Vec<Column<'_>> = std::iter::once(as_it_is).chain(scenarios).collect();
    sheet.heading("Who owns the time that remains");
    owners(&columns, sheet);
    if all > best.len() {
        sheet.paragraph(
            "",
            &format!("The best {} of {all} scenarios; --json holds all.", best.len()),
        );
    }
}
