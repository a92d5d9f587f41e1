//! Why the winner wins, and when it would not.

use foretrain_core::Nanos;
use foretrain_plan::plan::{Comparison, Crossover, Place, Reasons, Rival, Sensitivity};
use foretrain_plan::{Answer, Layout};

use crate::text::sheet::Sheet;
use crate::text::table::{Side, Table};
use crate::text::units::{ms, percent, percent_of, plain};

/// Parts that a sentence names.
const NAMED: usize = 4;
/// Differences below this share of the winner's step are not named.
const SMALL: f64 = 0.002;

/// The winner beside the runner-up and the best of another kind.
pub(super) fn reasons(place: &Place, reasons: &Reasons, sheet: &mut Sheet) {
    let Some(winner) = &place.winner else { return };
    sheet.heading("Why it wins");
    sheet.field("winner", &format!("{}: {}", winner.layout, largest(winner)));
    for (label, rival) in [("runner-up", &reasons.runner_up), ("other split", &reasons.other_split)]
    {
        let Some(rival) = rival else { continue };
        sheet.field(label, &against(rival));
        for crossover in &rival.crossovers {
            sheet.field("", &flips(crossover, &winner.layout, &rival.answer.layout));
        }
    }
    if reasons.runner_up.is_none() && reasons.other_split.is_none() {
        sheet.field("runner-up", "none: no other layout fits");
    }
    sensitivity(&reasons.sensitivity, sheet);
}

fn largest(answer: &Answer) -> String {
    let mut parts: Vec<_> = answer.step.parts.iter().collect();
    parts.sort_by_key(|(part, time)| (-time.nanos(), *part));
    let named = parts
        .iter()
        .take(NAMED)
        .map(|(part, time)| format!("{} {}", part.as_str(), percent_of(*time, answer.step.time)));
    format!("{} ms; {}", ms(answer.step.time), named.collect::<Vec<_>>().join(", "))
}

/// What the other spends more, in words.
pub(super) fn against(rival: &Rival) -> String {
    let Comparison { winner, loser, .. } = rival.comparison;
    let by = loser.nanos() as f64 / winner.nanos().max(1) as f64 - 1.0;
    let more = if by < 0.0 { "less" } else { "more" };
    format!(
        "{}: {} ms, {} {more}: {}",
        rival.answer.layout,
        ms(loser),
        percent(by.abs()),
        differences(&rival.comparison)
    )
}

fn differences(comparison: &Comparison) -> String {
    let least = SMALL * comparison.winner.nanos() as f64;
    let named = comparison.differences.iter().take(NAMED);
    let words: Vec<String> = named
        .filter(|(_, time)| time.nanos().abs() as f64 >= least)
        .map(|(part, time)| format!("{} ms {}", signed(*time), part.as_str()))
        .collect();
    if words.is_empty() { "no part differs by much".into() } else { words.join(", ") }
}

/// With its sign.
pub(super) fn signed(time: Nanos) -> String {
    if time < Nanos::ZERO { format!("-{}", ms(-time)) } else { format!("+{}", ms(time)) }
}

/// Where the order flips, in words.
pub(super) fn flips(crossover: &Crossover, winner: &Layout, rival: &Layout) -> String {
    let Crossover { what, now, range, .. } = *crossover;
    let shown = |value: f64| match crossover.unit {
        "" => format!("{value:.0}{}", rounds(value, winner, rival)),
        unit => format!("{} {unit}", plain(value)),
    };
    match crossover.at {
        Some(at) if at < now => {
            format!("the order flips from a {what} of {} down; it is {} now", shown(at), shown(now))
        }
        Some(at) => {
            format!("the order flips from a {what} of {} up; it is {} now", shown(at), shown(now))
        }
        None => {
            let (from, to) = (shown(range.0), shown(range.1));
            format!("the order holds for a {what} from {from} to {to}")
        }
    }
}

/// A batch in micro-batches of both.
fn rounds(batch: f64, winner: &Layout, rival: &Layout) -> String {
    let of =
        |layout: &Layout| batch / (f64::from(layout.data) * layout.micro_batch as f64).max(1.0);
    let (own, other) = (of(winner), of(rival));
    let counts = if (own - other).abs() < 0.5 {
        format!("{own:.0}")
    } else {
        format!("{own:.0} and {other:.0}")
    };
    format!(" ({counts} micro-batch{})", if counts == "1" { "" } else { "es" })
}

fn sensitivity(all: &[Sensitivity], sheet: &mut Sheet) {
    sheet.heading("What a tenth more speed would save");
    let mut table = Table::new(&[("Of", Side::Left), ("Step time", Side::Right)]);
    for one in all {
        let saved = one.saved_percent / 100.0;
        let text = if saved.abs() < 0.0005 { "nothing".into() } else { percent(saved) };
        table.row(vec![one.what.into(), text]);
    }
    table.keep_whole([0, 1]);
    sheet.table(table);
}
