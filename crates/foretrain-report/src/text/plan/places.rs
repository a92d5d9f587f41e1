//! Clusters and sizes beside each other.

use foretrain_plan::horizon::InTime;
use foretrain_plan::plan::{Choice, Goal, Place, Plan};

use super::{spaced, unit};
use crate::text::estimate::{count, duration, money};
use crate::text::sheet::Sheet;
use crate::text::table::{Side, Table};
use crate::text::units::{counted, ms, percent, plain};

/// The best layout of each, and which place was chosen.
pub(super) fn places(plan: &Plan, sheet: &mut Sheet) {
    let first = &plan.places[0];
    let rate = format!("{}/s", unit(first));
    let to_finish = plan.goal.tokens.is_some();
    let mut columns = vec![
        ("Cluster", Side::Left),
        ("GPUs", Side::Right),
        ("Best layout", Side::Left),
        ("Step ms", Side::Right),
        (rate.as_str(), Side::Right),
        ("MFU", Side::Right),
        ("$/1M", Side::Right),
    ];
    if to_finish {
        columns.extend([("Takes", Side::Right), ("Costs", Side::Right), ("", Side::Left)]);
    }
    let mut table = Table::new(&columns);
    for place in &plan.places {
        table.row(row(place, plan, columns.len()));
    }
    table.keep_whole((0..columns.len()).filter(|&at| at != 2));
    sheet.table(table);
    chosen(plan, sheet);
}

fn row(place: &Place, plan: &Plan, columns: usize) -> Vec<String> {
    let mut cells = vec![place.cluster.clone(), place.devices.to_string()];
    let Some(winner) = &place.winner else {
        let complete = place.found.looked_at == place.found.all;
        cells.push(if complete { "none fits" } else { "none so far" }.into());
        cells.resize(columns, "-".into());
        return cells;
    };
    let time = winner.time.value;
    let rates = &place.rates;
    cells.extend([
        spaced(&winner.layout),
        ms(time),
        plain(rates.tokens_per_second(time)),
        rates.mfu(time).map_or_else(|| "n/a".into(), percent),
        rates.dollars_per_million(time).map_or_else(|| "-".into(), money),
    ]);
    if let Some(horizon) = &place.horizon {
        let in_time = plan.goal.within.map_or("", |within| match horizon.within(within) {
            InTime::Yes => "in time",
            InTime::Likely => "likely in time",
            InTime::No => "too late",
        });
        cells.extend([
            duration(horizon.seconds.value),
            horizon.dollars.map_or_else(|| "-".into(), money),
            in_time.into(),
        ]);
    }
    cells
}

/// What it takes to finish where there is one place only.
pub(super) fn finish(place: &Place, goal: Goal, sheet: &mut Sheet) {
    let Some(horizon) = &place.horizon else { return };
    let cost = match horizon.dollars {
        Some(dollars) => format!("and cost {}", money(dollars)),
        None => {
            format!("at a price that is not known of {}: give --price NAME=USD", place.cluster)
        }
    };
    let mut text = format!(
        "{} {} take {} {cost}.",
        count(horizon.tokens as u64),
        unit(place).to_lowercase(),
        duration(horizon.seconds.value),
    );
    if let Some(within) = goal.within {
        let by = duration(within);
        text.push_str(&match horizon.within(within) {
            InTime::Yes => format!(" That is in time: within {by}."),
            InTime::Likely => format!(" That is likely in time: within {by}."),
            InTime::No => format!(" That is too late: not within {by}. More GPUs are needed."),
        });
    }
    sheet.blank();
    sheet.paragraph("", &text);
}

fn chosen(plan: &Plan, sheet: &mut Sheet) {
    let Some(best) = plan.best.map(|best| &plan.places[best]) else { return };
    let place = format!("{} of {}", counted(best.devices as usize, "GPU"), best.cluster);
    let goal = plan.goal.tokens.map(|tokens| count(tokens as u64)).unwrap_or_default();
    let within = plan.goal.within.map(duration).unwrap_or_default();
    let what = unit(best).to_lowercase();
    let text = match plan.choice {
        Choice::Only => format!("Only {place} can hold the job."),
        Choice::Fastest => format!("{place} give most {what} per second; details below are of it."),
        Choice::Cheapest => format!("{place} are the cheapest way to {goal} {what}."),
        Choice::CheapestInTime => {
            format!("{place} are the cheapest way to {goal} {what} within {within}.")
        }
        Choice::NoneInTime => format!(
            "None finishes {goal} {what} within {within}; {place} come nearest. More GPUs are needed."
        ),
    };
    sheet.blank();
    sheet.paragraph("", &text);
    let unpriced = plan.places.iter().filter(|place| {
        place.winner.as_ref().is_some_and(|winner| winner.cost.dollars_per_hour.is_none())
    });
    let mut unpriced: Vec<&str> = unpriced.map(|place| place.cluster.as_str()).collect();
    unpriced.dedup();
    if goal.is_empty() || unpriced.is_empty() {
        return;
    }
    let names = unpriced.join(", ");
    sheet.paragraph("", &format!("No price is known of {names}: give --price NAME=USD."));
}
