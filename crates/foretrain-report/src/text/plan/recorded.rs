//! The answer of `plan` for recordings as a page.

use std::collections::BTreeMap;

use foretrain_core::{Ledger, Nanos};
use foretrain_predict::Owner;
use foretrain_predict::plan::{RecordedChoice, RecordedPlan};

use super::PlanView;
use super::why::signed;
use crate::text::TextStyle;
use crate::text::estimate::money;
use crate::text::evidence::evidence;
use crate::text::owners::largest;
use crate::text::predict::{recorded, warnings};
use crate::text::sheet::Sheet;
use crate::text::table::{Side, Table};
use crate::text::units::{counted, ms, ms_interval, name, percent, plain};

/// Characters of a strategy.
const STRATEGY: usize = 60;
/// Owners that a sentence names.
const NAMED: usize = 3;
/// Differences below this share of the best step are not named.
const SMALL: f64 = 0.002;

/// The page for plans from the recording that `first` starts from, one for each cluster. `ledger` is
/// what reading and analysing it had to mend.
pub fn plan_recorded(
    first: &RecordedPlan,
    others: &[RecordedPlan],
    ledger: &Ledger,
    view: PlanView,
    style: TextStyle,
) -> String {
    let mut sheet = Sheet::new(style);
    sheet.heading("How to run the recorded job");
    recorded(&first.start.recorded, &mut sheet);
    for plan in std::iter::once(first).chain(others) {
        for choices in plan.sizes() {
            size(plan, choices, view, &mut sheet);
            why(choices, &mut sheet);
            explained(plan, choices, &mut sheet);
        }
        searched(plan, &mut sheet);
    }
    kept(first, &mut sheet);
    for plan in std::iter::once(first).chain(others) {
        if !others.is_empty() {
            sheet.heading(&format!("For {}", plan.cluster));
        }
        evidence(&plan.start.evidence, &mut sheet);
    }
    let mut said: Vec<String> = Vec::new();
    for plan in std::iter::once(first).chain(others) {
        if !plan.is_complete() {
            let (done, all) = (plan.looked_at, plan.all);
            let on = &plan.cluster;
            said.push(format!("stopped after {done} of {all} choices on {on}: the best so far"));
        }
    }
    for warning in std::iter::once(first).chain(others).flat_map(|plan| &plan.start.warnings) {
        if !said.contains(warning) {
            said.push(warning.clone());
        }
    }
    warnings(&said, ledger, &mut sheet);
    sheet.finish()
}

/// The choices of one size.
fn size(plan: &RecordedPlan, choices: &[RecordedChoice], view: PlanView, sheet: &mut Sheet) {
    let Some(first) = choices.first() else { return };
    let best = &first.outcome;
    let gpus = counted(best.gpus as usize, "GPU");
    let replicas = counted(best.replicas as usize, "replica");
    sheet.heading(&format!("{gpus} of {}: {replicas}", plan.cluster));
    let in_samples = best.samples_per_second.is_some();
    let priced = first.dollars_per_hour.filter(|_| in_samples).is_some();
    let mut columns = vec![
        ("#", Side::Right),
        ("Strategy", Side::Left),
        ("Step ms", Side::Right),
        ("80 % interval", Side::Right),
        (if in_samples { "Samples/s" } else { "Batches/s" }, Side::Right),
        ("Of best", Side::Right),
        ("Largest owner", Side::Left),
        ("", Side::Left),
    ];
    if priced {
        columns.insert(6, ("$/1M", Side::Right));
    }
    let mut table = Table::new(&columns);
    for (at, choice) in choices.iter().take(view.top).enumerate() {
        let outcome = &choice.outcome;
        let rate = outcome.samples_per_second.unwrap_or(outcome.throughput).value;
        let mut cells = vec![
            (at + 1).to_string(),
            name(&choice.strategy, STRATEGY),
            ms(outcome.step_time.value),
            ms_interval(&outcome.step_time),
            plain(rate),
            percent(choice.of_best),
            largest(&outcome.breakdown),
            if at > 0 && choice.ties { "=".into() } else { String::new() },
        ];
        if priced {
            let hourly = choice.dollars_per_hour.unwrap_or_default();
            cells.insert(6, money(hourly / 3600.0 / rate.max(1e-12) * 1e6));
        }
        table.row(cells);
    }
    table.keep_whole((0..columns.len()).filter(|&at| at != 1));
    sheet.table(table);
    let them = match choices.iter().skip(1).filter(|choice| choice.ties).count() {
        0 => return,
        1 => "1 interval reaches".to_owned(),
        ties => format!("{ties} intervals reach"),
    };
    sheet.paragraph(
        "",
        &format!(
            "{them} the fastest (=). All rest on the same recording, so their order is surer than the \
             intervals tell."
        ),
    );
}

/// The fastest beside the runner-up.
fn why(choices: &[RecordedChoice], sheet: &mut Sheet) {
    let Some(best) = choices.first() else { return };
    sheet.blank();
    let step = ms(best.outcome.step_time.value);
    let (strategy, owner) = (name(&best.strategy, STRATEGY), largest(&best.outcome.breakdown));
    sheet.field("winner", &format!("{strategy}: {step} ms; {owner}"));
    match choices.get(1) {
        Some(other) => sheet.field("runner-up", &against(best, other)),
        None => sheet.field("runner-up", "none: no other choice was simulated"),
    }
}

/// What the other spends more, in words.
fn against(best: &RecordedChoice, other: &RecordedChoice) -> String {
    let least = SMALL * best.outcome.step_time.value.nanos() as f64;
    let words: Vec<String> = best
        .why(other)
        .iter()
        .filter(|(_, time)| time.nanos().abs() as f64 >= least)
        .take(NAMED)
        .map(|(owner, time)| format!("{} ms {}", signed(*time), owner.describe()))
        .collect();
    let words = if words.is_empty() { "no owner differs by much".into() } else { words.join(", ") };
    let (strategy, time) = (name(&other.strategy, STRATEGY), ms(other.outcome.step_time.value));
    format!("{strategy}: {time} ms, {} slower: {words}", percent(1.0 - other.of_best))
}

/// The strategy that was asked about, owner by owner.
fn explained(plan: &RecordedPlan, choices: &[RecordedChoice], sheet: &mut Sheet) {
    let Some(asked) = &plan.explain else { return };
    let Some(at) = choices.iter().position(|choice| choice.strategy == *asked) else { return };
    let (best, asked) = (&choices[0], &choices[at]);
    let strategy = name(&asked.strategy, STRATEGY);
    sheet.heading(&format!("Asked about: {strategy}, {} of {}", at + 1, choices.len()));
    if at == 0 {
        sheet.paragraph("", "It is the fastest.");
        return;
    }
    let (own, other) = (best.owners(), asked.owners());
    let mut table = Table::new(&[
        ("Owner, ms", Side::Left),
        ("Winner", Side::Right),
        ("Asked about", Side::Right),
        ("Difference", Side::Right),
    ]);
    let mut row = |label: String, own: Nanos, other: Nanos| {
        let cell = |time: Nanos| if time == Nanos::ZERO { "-".into() } else { ms(time) };
        table.row(vec![label, cell(own), cell(other), signed(other - own)]);
    };
    for owner in own.keys().chain(other.keys().filter(|owner| !own.contains_key(owner))) {
        let of = |owners: &BTreeMap<Owner, Nanos>| owners.get(owner).copied().unwrap_or_default();
        row(owner.describe(), of(&own), of(&other));
    }
    row("step".into(), best.outcome.step_time.value, asked.outcome.step_time.value);
    table.keep_whole([1, 2, 3]);
    sheet.table(table);
}

/// How many choices there are and why some are missing.
fn searched(plan: &RecordedPlan, sheet: &mut Sheet) {
    sheet.blank();
    let (looked_at, simulated) = (counted(plan.looked_at, "choice"), plan.choices.len());
    sheet.paragraph(
        "",
        &format!("{looked_at} looked at on {}: {simulated} simulated.", plan.cluster),
    );
    // A reason is given once, with all that it holds for at any size.
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for (strategy, reason) in &plan.left_out {
        match reasons.iter_mut().find(|(known, _)| known == reason) {
            Some((_, all)) if all.contains(&strategy.as_str()) => {}
            Some((_, all)) => all.push(strategy),
            None => reasons.push((reason, vec![strategy])),
        }
    }
    for (reason, strategies) in reasons {
        let strategies: Vec<String> =
            strategies.iter().map(|strategy| name(strategy, STRATEGY)).collect();
        sheet.paragraph("- ", &format!("not {}: {}", strategies.join(", "), name(reason, 300)));
    }
}

/// What is not planned.
fn kept(plan: &RecordedPlan, sheet: &mut Sheet) {
    sheet.heading("Kept as recorded");
    for kept in &plan.kept {
        sheet.paragraph("- ", &format!("{}: {}", kept.what, kept.why));
    }
    sheet.paragraph(
        "",
        "A description of the model tells these: foretrain plan MODEL, with a name, config.json, TOML \
         or ONNX.",
    );
}
