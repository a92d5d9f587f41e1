//! What would make it fit; what it costs; how long it takes to finish.

use foretrain_plan::advice::Advice;
use foretrain_plan::detailed::{Detailed, Remedies};

use super::{count, fit_word, unit};
use crate::text::sheet::Sheet;
use crate::text::table::{Side, Table};
use crate::text::units::{ms, ms_interval, plain};

/// What would make the layout fit.
pub(super) fn remedies(remedies: &Remedies, sheet: &mut Sheet) {
    sheet.heading("What would make it fit");
    if !remedies.changes.is_empty() {
        advice(&remedies.changes, sheet);
        return;
    }
    if let Some(plan) = &remedies.plan {
        sheet.paragraph(
            "",
            &format!(
                "No single change. The fastest layout of these GPUs that fits is {}: {} ms, {}.",
                plan.layout,
                ms(plan.time.value),
                plan.memory
            ),
        );
    } else if let Some((layout, bytes)) = &remedies.nearest {
        sheet.paragraph(
            "",
            &format!(
                "Nothing on so many GPUs. {layout} comes nearest and needs {bytes}. More GPUs, or GPUs \
                 with more memory, are needed (`foretrain plan` finds how many)."
            ),
        );
    } else {
        sheet.paragraph("", "No other layout goes with this model, batch and number of GPUs.");
    }
}

/// Single changes, fastest first.
pub(in crate::text) fn advice(changes: &[Advice], sheet: &mut Sheet) {
    let mut table = Table::new(&[
        ("Change", Side::Left),
        ("Step ms", Side::Right),
        ("80 % interval", Side::Right),
        ("Memory", Side::Right),
        ("", Side::Left),
    ]);
    for change in changes {
        table.row(vec![
            change.change.clone(),
            ms(change.time.value),
            ms_interval(&change.time),
            change.memory.to_string(),
            fit_word(change.fit).into(),
        ]);
    }
    table.keep_whole(1..5);
    sheet.table(table);
}

/// Energy and money, per step, per token and to the end.
pub(super) fn costs(detailed: &Detailed, sheet: &mut Sheet) {
    let answer = &detailed.answer;
    let cost = &answer.cost;
    sheet.heading("Energy and cost");
    let per_million = 1e6 / answer.tokens.max(1e-9);
    let unit = unit(answer);
    match (cost.watts, cost.joules_per_step) {
        (Some(watts), Some(joules)) => sheet.field(
            "energy",
            &format!(
                "{} a step at {} kW, {} per million {unit}",
                energy(joules),
                plain(watts / 1e3),
                energy(joules * per_million)
            ),
        ),
        _ => sheet.field("energy", "not known: the catalogue has no power of the device"),
    }
    match (cost.dollars_per_hour, cost.dollars_per_step) {
        (Some(hourly), Some(step)) => sheet.field(
            "cost",
            &format!(
                "{} a step at {} an hour, {} per million {unit}",
                money(step),
                money(hourly),
                money(step * per_million)
            ),
        ),
        _ => sheet.field("cost", "not known: give --price, US dollars per GPU and hour"),
    }
    if let Some(horizon) = &detailed.horizon {
        let seconds = &horizon.seconds;
        let mut text = format!(
            "{} {unit} in {} steps: {} (80 % interval {} to {})",
            count(horizon.tokens as u64),
            plain(horizon.steps),
            duration(seconds.value),
            duration(seconds.low),
            duration(seconds.high)
        );
        for part in [horizon.dollars.map(money), horizon.joules.map(energy)].into_iter().flatten() {
            text.push_str(&format!(", {part}"));
        }
        text.push_str(", without interruptions");
        sheet.field("to finish", &text);
    }
}

/// Joules, or kWh from one on.
pub(in crate::text) fn energy(joules: f64) -> String {
    match joules {
        j if j < 1e3 => format!("{} J", plain(j)),
        j if j < 3.6e6 => format!("{} kJ", plain(j / 1e3)),
        j if j < 3.6e9 => format!("{} kWh", plain(j / 3.6e6)),
        j => format!("{} MWh", plain(j / 3.6e9)),
    }
}

/// US dollars with as many digits as tell something.
pub(in crate::text) fn money(dollars: f64) -> String {
    match dollars {
        d if d >= 1e6 => format!("${} M", plain(d / 1e6)),
        d if d >= 100.0 => format!("${d:.0}"),
        d if d >= 0.1 => format!("${d:.2}"),
        d => format!("${}", foretrain_core::units::significant(d, 2)),
    }
}

/// A long time in its largest fitting unit.
pub(in crate::text) fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => format!("{} s", plain(s)),
        s if s < 7200.0 => format!("{} min", plain(s / 60.0)),
        s if s < 172_800.0 => format!("{} h", plain(s / 3600.0)),
        s if s < 3.156e8 => format!("{} days", plain(s / 86_400.0)),
        s => format!("{} years", plain(s / 3.156e7)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_follow_the_size() {
        assert_eq!([duration(61.0), duration(86_400.0)], ["61.00 s", "24.00 h"]);
        assert_eq!([duration(864_000.0), duration(3.156e9)], ["10.00 days", "100.0 years"]);
        assert_eq!([money(0.012), money(4.5), money(1234.0)], ["$0.012", "$4.50", "$1234"]);
        assert_eq!([energy(12.0), energy(7.2e6)], ["12.00 J", "2.000 kWh"]);
    }
}
