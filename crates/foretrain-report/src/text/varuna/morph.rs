//! The page of a job on preemptible machines.

use foretrain_core::Nanos;
use foretrain_plan::varuna::morph::{Cost, Morph, MorphOptions, Morphing};

use super::filled;
use crate::text::TextStyle;
use crate::text::sheet::Sheet;
use crate::text::table::{Side, Table};
use crate::text::units::{counted, name, percent, percent_of, plain};

/// Plans that are listed before the rest is counted.
const MOST_ROWS: usize = 24;

/// The page for a job on preemptible machines.
pub fn varuna_morph(options: &MorphOptions, morph: &Morph, style: TextStyle) -> String {
    let mut sheet = Sheet::new(style);
    sheet.heading(&format!("Training over {} of availability", clock(morph.length)));
    sheet.field(
        "trained",
        &format!(
            "{} samples, {} samples/s on {} GPUs on average",
            morph.samples,
            plain(morph.preemptible.goodput),
            plain(morph.preemptible.gpus)
        ),
    );
    if let Some(dedicated) = &morph.dedicated {
        let text = format!(
            "{} samples/s on {} GPUs that are always there: {} of that speed is left",
            plain(dedicated.goodput),
            plain(dedicated.gpus),
            percent(morph.preemptible.goodput / dedicated.goodput)
        );
        sheet.field("dedicated", &text);
    }
    money(morph, &mut sheet);
    account(morph, &mut sheet);
    plans(&morph.morphings, &mut sheet);
    excluded(morph, &mut sheet);
    if !morph.unusable.is_empty() {
        sheet.heading("Numbers of GPUs without a plan");
        for (gpus, why) in morph.unusable.iter().take(MOST_ROWS) {
            sheet.paragraph(
                "- ",
                &format!("{}: {}", counted(*gpus as usize, "GPU"), name(why, 300)),
            );
        }
        more(morph.unusable.len(), &mut sheet);
    }
    rules(options, &mut sheet);
    filled(&morph.filled, &mut sheet);
    sheet.finish()
}

fn money(morph: &Morph, sheet: &mut Sheet) {
    let priced = |what: &str, cost: &Cost, sheet: &mut Sheet| {
        if let (Some(hour), Some(million)) = (cost.gpu_hour, cost.per_million) {
            let text = format!(
                "{} for a million samples, at {} per GPU and hour",
                plain(million),
                plain(hour)
            );
            sheet.field(what, &text);
        }
    };
    priced("preemptible", &morph.preemptible, sheet);
    if let Some(dedicated) = &morph.dedicated {
        priced("dedicated", dedicated, sheet);
        if let (Some(own), Some(other)) = (morph.preemptible.per_million, dedicated.per_million)
            && own > 0.0
            && other > 0.0
        {
            let text = if other >= own {
                format!("{} times cheaper per sample on preemptible GPUs", plain(other / own))
            } else {
                format!("{} times dearer per sample on preemptible GPUs", plain(own / other))
            };
            sheet.field("so", &text);
        }
    }
}

fn account(morph: &Morph, sheet: &mut Sheet) {
    sheet.heading("Where the time goes");
    let mut table = Table::new(&[("", Side::Left), ("Time", Side::Right), ("Share", Side::Right)]);
    let parts = morph.account;
    for (what, time) in [
        ("steps that count", parts.training),
        ("steps that were lost, pieces of steps", parts.lost),
        ("standing still for checkpoints", parts.checkpoints),
        ("waiting and restarting", parts.restarting),
        ("too few GPUs", parts.starved),
    ] {
        table.row(vec![what.into(), clock(time), percent_of(time, morph.length)]);
    }
    sheet.table(table);
}

fn plans(all: &[Morphing], sheet: &mut Sheet) {
    sheet.heading("Plans in turn");
    let mut table = Table::new(&[
        ("At", Side::Right),
        ("Because of", Side::Left),
        ("GPUs", Side::Right),
        ("Stages x replicas", Side::Right),
        ("Micro", Side::Right),
        ("Samples/s", Side::Right),
        ("Resumed", Side::Right),
        ("Steps lost", Side::Right),
    ]);
    for one in all.iter().take(MOST_ROWS) {
        table.row(vec![
            clock(one.at),
            one.cause.as_str().into(),
            one.gpus.to_string(),
            format!("{} x {}", one.stages, one.replicas),
            format!("{} x {}", one.micro_batches, one.micro_batch),
            plain(one.throughput),
            clock(one.resumed),
            one.lost_steps.to_string(),
        ]);
    }
    table.keep_whole(0..8);
    sheet.table(table);
    more(all.len(), sheet);
}

fn excluded(morph: &Morph, sheet: &mut Sheet) {
    if morph.excluded.is_empty() {
        return;
    }
    sheet.heading("Slow machines that are left out");
    for slow in morph.excluded.iter().take(MOST_ROWS) {
        let text = format!(
            "{}: {} over the median forward time of stage {}",
            name(&slow.name, 60),
            percent(slow.over_median - 1.0),
            name(&slow.stage, 20)
        );
        sheet.paragraph("- ", &text);
    }
    more(morph.excluded.len(), sheet);
}

/// The rules, and whose they are.
fn rules(options: &MorphOptions, sheet: &mut Sheet) {
    sheet.heading("Rules");
    let by =
        |own: Nanos, known: Nanos, whose: &'static str| if own == known { whose } else { "given" };
    for (what, own, known, whose) in [
        (
            "wait after a loss",
            options.preempted_wait,
            MorphOptions::VARUNA_PREEMPTED_WAIT,
            "Varuna's",
        ),
        (
            "wait where a loss is made good",
            options.transient_wait,
            MorphOptions::VARUNA_TRANSIENT_WAIT,
            "Varuna's",
        ),
        ("notice of a loss", options.notice, MorphOptions::VARUNA_NOTICE, "Varuna's"),
        ("further GPUs ignored for", options.quiet, MorphOptions::VARUNA_QUIET, "Varuna's"),
        (
            "checkpoint every",
            options.checkpoint_every,
            MorphOptions::ASSUMED_CHECKPOINT_EVERY,
            "assumed",
        ),
        (
            "standstill of a checkpoint",
            options.checkpoint,
            MorphOptions::ASSUMED_CHECKPOINT,
            "assumed",
        ),
        ("restart", options.restart, MorphOptions::ASSUMED_RESTART, "assumed"),
    ] {
        sheet.line(&format!("{what}: {} ({})", clock(own), by(own, known, whose)));
    }
    sheet.paragraph("", "Every loss is taken to hit GPUs in use. Preemptible GPUs are paid for while they are there, idle or not.");
}

fn more(count: usize, sheet: &mut Sheet) {
    if count > MOST_ROWS {
        sheet.line(&format!("and {} more", count - MOST_ROWS));
    }
}

/// `2 h 03 min`, `3 min 20 s`, `12.50 s`.
fn clock(time: Nanos) -> String {
    let whole = time.nanos() / 1_000_000_000;
    match whole {
        3600.. => format!("{} h {:02} min", whole / 3600, whole % 3600 / 60),
        60.. => format!("{} min {:02} s", whole / 60, whole % 60),
        _ if time.nanos() % 1_000_000_000 == 0 => format!("{whole} s"),
        _ => format!("{:.2} s", time.secs_f64()),
    }
}
