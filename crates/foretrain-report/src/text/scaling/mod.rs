//! The answer of `scaling` as tables.

mod outlook;
mod points;
mod ranks;

use foretrain_core::Bandwidth;
use foretrain_predict::scaling::{ScalingAnswer, SeriesAnswer};

use super::TextStyle;
use super::sheet::Sheet;
use super::units::{name, plain};

/// The page for measured scaling.
pub fn scaling(answer: &ScalingAnswer, style: TextStyle) -> String {
    let mut sheet = Sheet::new(style);
    for text in &answer.contradictions {
        sheet.warning(&name(text, usize::MAX));
    }
    for series in &answer.series {
        one(series, &mut sheet);
    }
    if let Some(ranks) = &answer.ranks {
        ranks::ranks(ranks, &mut sheet);
    }
    if !answer.series.is_empty() {
        sheet.blank();
        sheet.paragraph("", DEFINITIONS);
    }
    sheet.finish()
}

const DEFINITIONS: &str = "Speed-up: work per second against the smallest point. Efficiency: the same \
    per GPU, which is the scaling factor where the smallest point is one GPU. Bytes are per step and in \
    one direction. Implied: the rate in Gbit/s of a node's NICs together, in one direction, that the \
    growth of the step implies; bytes that computation hides make the true rate higher. Average: over \
    the whole step.";

fn one(series: &SeriesAnswer, sheet: &mut Sheet) {
    let title = match series.name.as_str() {
        "" => "Scaling".to_owned(),
        own => format!("Scaling of {}", name(own, 60)),
    };
    sheet.heading(&title);
    sheet.field("verdict", series.verdict.as_str());
    for (i, reason) in series.reasons.iter().enumerate() {
        sheet.field(if i == 0 { "because" } else { "" }, &format!("- {reason}"));
    }
    sheet.blank();
    points::points(series, sheet);
    let has_rates = series.effective.is_some()
        || series.break_even.is_some()
        || series.accumulation.is_some()
        || !(series.segments.is_empty() && series.effective_by_batch.is_empty());
    if has_rates {
        sheet.blank();
    }
    points::rates(series, sheet);
    points::accumulation(series, sheet);
    outlook::remedies(series, sheet);
    outlook::strategies(series, sheet);
    outlook::predictions(series, sheet);
    let notes = series.warnings.is_empty() && series.assumptions.is_empty();
    if !notes {
        sheet.blank();
    }
    for warning in &series.warnings {
        sheet.warning(warning);
    }
    for assumption in &series.assumptions {
        sheet.paragraph("assumed: ", assumption);
    }
}

/// `8.0 Gbit/s (1.0 GB/s)`.
fn both(rate: Bandwidth) -> String {
    format!("{} Gbit/s ({} GB/s)", plain(rate.get() * 8e-9), plain(rate.get() * 1e-9))
}

/// Bytes as decimal gigabytes, as rates are decimal.
fn gb(bytes: f64) -> String {
    plain(bytes * 1e-9)
}
