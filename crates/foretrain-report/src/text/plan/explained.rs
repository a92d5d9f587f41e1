//! A layout that was asked about, beside the winner.

use std::cmp::Ordering;

use foretrain_core::Bytes;
use foretrain_plan::Answer;
use foretrain_plan::memory::Item;
use foretrain_plan::plan::{AtBatch, Explained, Place};
use foretrain_plan::times::Part;

use super::why::{against, flips, signed};
use crate::text::estimate::{advice, fit_words, rates};
use crate::text::sheet::Sheet;
use crate::text::table::{Side, Table};
use crate::text::units::{ms, plain};

/// The layout, or why it is none.
pub(super) fn explained(explained: &Explained, place: &Place, sheet: &mut Sheet) {
    sheet.heading(&format!("Asked about: {}", explained.asked));
    if let Some((reason, hints)) = &explained.refused {
        sheet.field("refused", reason);
        for hint in hints {
            sheet.field("", hint);
        }
        return;
    }
    let Some(answer) = &explained.answer else { return };
    sheet.field("layout", &answer.layout.to_string());
    rates(answer, peak(place, answer), sheet);
    sheet.field("memory", &fit_words(answer));
    let rank = match explained.rank {
        Some(rank) => format!("{rank} of {}", place.found.ranked.len()),
        None if answer.peak_memory() > place.limit => "none: it does not fit".into(),
        None => {
            "none: outside the search, or computing alone for more than twice the best step".into()
        }
    };
    sheet.field("rank", &rank);
    if !explained.advice.is_empty() {
        sheet.blank();
        advice(&explained.advice, sheet);
    }
    let (Some(rival), Some(winner)) = (&explained.rival, &place.winner) else { return };
    sheet.field("beside", &format!("the winner, {}", winner.layout));
    sheet.field("", &against(rival));
    for crossover in &rival.crossovers {
        sheet.field("", &flips(crossover, &winner.layout, &answer.layout));
    }
    sheet.blank();
    parts(winner, answer, sheet);
    sheet.blank();
    memory(winner, answer, sheet);
    by_batch(&rival.by_batch, sheet);
}

fn peak(place: &Place, answer: &Answer) -> Option<f64> {
    let per_device = answer.model_flops / answer.time.value.secs_f64() / answer.devices as f64;
    place.rates.mfu(answer.time.value).map(|mfu| per_device / mfu.max(1e-12))
}

fn parts(winner: &Answer, asked: &Answer, sheet: &mut Sheet) {
    let mut table = Table::new(&[
        ("Part, ms", Side::Left),
        ("Winner", Side::Right),
        ("Asked about", Side::Right),
        ("Difference", Side::Right),
    ]);
    for part in Part::ALL {
        let (own, other) = (winner.step.parts[part], asked.step.parts[part]);
        if own.nanos() != 0 || other.nanos() != 0 {
            table.row(vec![part.as_str().into(), ms(own), ms(other), signed(other - own)]);
        }
    }
    let (own, other) = (winner.step.time, asked.step.time);
    table.row(vec!["step".into(), ms(own), ms(other), signed(other - own)]);
    table.keep_whole([1, 2, 3]);
    sheet.table(table);
}

/// Items of both fullest devices.
fn memory(winner: &Answer, asked: &Answer, sheet: &mut Sheet) {
    let (Some(own), Some(other)) = (winner.fullest(), asked.fullest()) else { return };
    let of = |items: &[(Item, Bytes)], wanted: Item| {
        items.iter().find(|(item, _)| *item == wanted).map_or(Bytes::ZERO, |(_, bytes)| *bytes)
    };
    let mut table = Table::new(&[
        ("Memory of the fullest device", Side::Left),
        ("Winner", Side::Right),
        ("Asked about", Side::Right),
        ("Difference", Side::Right),
    ]);
    let mut row = |label: &str, own: Bytes, other: Bytes| {
        let difference = match other.cmp(&own) {
            Ordering::Greater => format!("+{}", other - own),
            Ordering::Less => format!("-{}", own - other),
            Ordering::Equal => "-".into(),
        };
        let size = |bytes: Bytes| if bytes == Bytes::ZERO { "-".into() } else { bytes.to_string() };
        table.row(vec![label.into(), size(own), size(other), difference]);
    };
    for item in Item::ALL {
        let sizes = (of(&own.items, item), of(&other.items, item));
        if sizes != (Bytes::ZERO, Bytes::ZERO) {
            row(item.as_str(), sizes.0, sizes.1);
        }
    }
    row("allocated", own.allocated.value, other.allocated.value);
    row("reserved", own.reserved.value, other.reserved.value);
    row("used", own.used.value, other.used.value);
    table.keep_whole([1, 2, 3]);
    sheet.table(table);
}

fn by_batch(batches: &[AtBatch], sheet: &mut Sheet) {
    if batches.len() < 2 {
        return;
    }
    sheet.blank();
    let mut table = Table::new(&[
        ("Global batch", Side::Right),
        ("Winner ms", Side::Right),
        ("Asked about ms", Side::Right),
        ("Times faster", Side::Right),
    ]);
    for at in batches {
        let ratio = at.winner.nanos() as f64 / at.rival.nanos().max(1) as f64;
        table.row(vec![at.global_batch.to_string(), ms(at.winner), ms(at.rival), plain(ratio)]);
    }
    table.keep_whole(0..4);
    sheet.table(table);
}
