//! Memory, item by item and stage by stage.

use foretrain_core::Bytes;
use foretrain_plan::Answer;
use foretrain_plan::memory::{Item, MemoryRange, StageMemory};

use super::fit_word;
use crate::text::sheet::Sheet;
use crate::text::table::{Side, Table};
use crate::text::units::{percent, whole_size};

/// Whether it fits, in words.
pub(in crate::text) fn fit_words(answer: &Answer) -> String {
    let Some(fullest) = answer.fullest() else { return "not known".into() };
    format!(
        "{}: {} of {} on the fullest device, range {}",
        fit_word(answer.fit()),
        fullest.used.value,
        whole_size(fullest.capacity),
        range(&fullest.used)
    )
}

fn range(range: &MemoryRange) -> String {
    format!("{} to {}", range.low, range.high)
}

fn share(bytes: Bytes, capacity: Bytes) -> String {
    percent(bytes.as_f64() / capacity.as_f64().max(1.0))
}

/// Items of the fullest stage, their sums and the slack between them.
pub(in crate::text) fn memory_items(answer: &Answer, sheet: &mut Sheet) {
    let Some(fullest) = answer.fullest() else { return };
    let mut table = Table::new(&[
        ("Item", Side::Left),
        ("Size", Side::Right),
        ("Of the device", Side::Right),
        ("Range", Side::Right),
    ]);
    let mut row = |label: &str, bytes: Bytes, ends: Option<&MemoryRange>| {
        table.row(vec![
            label.into(),
            bytes.to_string(),
            share(bytes, fullest.capacity),
            ends.map_or_else(String::new, range),
        ]);
    };
    let outside = |item: Item| matches!(item, Item::Context | Item::Communicators);
    for (item, bytes) in fullest.items.iter().filter(|(item, _)| !outside(*item)) {
        row(item.as_str(), *bytes, None);
    }
    row("allocated", fullest.allocated.value, Some(&fullest.allocated));
    row("fragmentation", fullest.reserved.value - fullest.allocated.value, None);
    row("reserved", fullest.reserved.value, Some(&fullest.reserved));
    for (item, bytes) in fullest.items.iter().filter(|(item, _)| outside(*item)) {
        row(item.as_str(), *bytes, None);
    }
    row("used", fullest.used.value, Some(&fullest.used));
    table.keep_whole(0..4);
    sheet.table(table);
}

/// One line per stage, where they differ. Of many, stages in the middle that are alike are one line.
pub(in crate::text) fn memory_stages(answer: &Answer, sheet: &mut Sheet) {
    let stages = &answer.memory;
    if stages.len() < 2 {
        return;
    }
    sheet.blank();
    let mut table = Table::new(&[
        ("Stage", Side::Right),
        ("States", Side::Right),
        ("Activations", Side::Right),
        ("Allocated", Side::Right),
        ("Reserved", Side::Right),
        ("Used", Side::Right),
        ("", Side::Left),
    ]);
    let mut at = 0;
    while at < stages.len() {
        let alike =
            |other: &StageMemory| other.items == stages[at].items && other.used == stages[at].used;
        let run = stages[at..].iter().take_while(|stage| alike(stage)).count();
        table.row(row(&stages[at], at, run));
        at += run;
    }
    table.keep_whole(0..7);
    sheet.table(table);
}

fn row(stage: &StageMemory, first: usize, run: usize) -> Vec<String> {
    let sum = |wanted: &dyn Fn(Item) -> bool| -> Bytes {
        stage.items.iter().filter(|(item, _)| wanted(*item)).map(|(_, bytes)| *bytes).sum()
    };
    let states = |item| matches!(item, Item::Parameters | Item::Gradients | Item::Optimiser);
    let activations = |item| matches!(item, Item::Activations | Item::Recomputed);
    let label = if run == 1 { first.to_string() } else { format!("{first}-{}", first + run - 1) };
    vec![
        label,
        sum(&states).to_string(),
        sum(&activations).to_string(),
        stage.allocated.value.to_string(),
        stage.reserved.value.to_string(),
        stage.used.value.to_string(),
        fit_word(stage.fits()).into(),
    ]
}

/// What the items are.
pub(super) fn meanings(answer: &Answer, sheet: &mut Sheet) {
    let Some(fullest) = answer.fullest() else { return };
    let mut table = Table::new(&[("Item of memory", Side::Left), ("Is", Side::Left)]);
    for (item, _) in &fullest.items {
        table.row(vec![item.as_str().into(), meaning(*item).into()]);
    }
    table.row(vec![
        "fragmentation".into(),
        "what the caching allocator holds beyond what tensors take".into(),
    ]);
    table.keep_whole([0]);
    sheet.table(table);
}

const fn meaning(item: Item) -> &'static str {
    match item {
        Item::Parameters => "weights that the passes read, as far as this rank holds them",
        Item::Gradients => "accumulated gradients, as far as this rank holds them",
        Item::Optimiser => "moments and master weights, as far as this rank holds them",
        Item::Gathered => {
            "whole parameters and gradients of the layers at work and of those fetched ahead: it does \
             not shrink with more ranks"
        }
        Item::Buckets => "gradients on their way",
        Item::Activations => "kept for the backward pass, of all micro-batches in flight",
        Item::Recomputed => "of the one layer that is formed again",
        Item::Transient => "within one operation: gathered inputs, logits in f32",
        Item::Transfers => "activations and gradients between stages",
        Item::Workspace => "of the matrix library",
        Item::Context => "the driver's context, outside the allocator",
        Item::Communicators => "buffers of the communication library, outside the allocator",
    }
}
