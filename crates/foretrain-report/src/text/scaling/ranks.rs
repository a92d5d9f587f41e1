//! Ranks of different speed.

use foretrain_predict::scaling::{RankAnswer, SplitAnswer};

use crate::text::sheet::Sheet;
use crate::text::table::{Side, Table};
use crate::text::units::{ms, ms_unit, name, plain};

pub(super) fn ranks(answer: &RankAnswer, sheet: &mut Sheet) {
    sheet.heading("Ranks of different speed");
    sheet.field("verdict", answer.verdict.as_str());
    if let Some(present) = &answer.present {
        split("Now", present, sheet);
    }
    split("Best split", &answer.best, sheet);
    if let Some(present) = &answer.present {
        let gain = answer.best.throughput / present.throughput;
        sheet.field("gain", &format!("{} x", plain(gain)));
    }
    sheet.blank();
    for warning in &answer.warnings {
        sheet.warning(warning);
    }
}

fn split(title: &str, split: &SplitAnswer, sheet: &mut Sheet) {
    sheet.heading(title);
    let mut table = Table::new(&[
        ("Ranks", Side::Left),
        ("Count", Side::Right),
        ("Batch", Side::Right),
        ("Alone ms", Side::Right),
    ]);
    for (kind, count, batch, step) in &split.kinds {
        table.row(vec![name(kind, 40), count.to_string(), plain(*batch), ms(*step)]);
    }
    sheet.table(table);
    let text = format!(
        "{}, that of the slowest: {} samples/s in all",
        ms_unit(split.step),
        plain(split.throughput)
    );
    sheet.field("step", &text);
}
