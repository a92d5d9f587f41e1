//! Whether the figures of a row belong together.

use std::collections::BTreeMap;

use foretrain_core::{Ledger, Severity};
use foretrain_cost::bus_factor;
use foretrain_graph::CollectiveKind;

use super::draft::{Draft, DraftRow, Figures};
use super::number::Printed;
use super::table::record_lost;

/// Slack for the last bit of the tools' own arithmetic.
const SLACK: f64 = 1e-6;

/// Whether two ranges of values overlap.
pub(super) fn overlap(a: (f64, f64), b: (f64, f64)) -> bool {
    a.0 <= b.1 * (1.0 + SLACK) && b.0 <= a.1 * (1.0 + SLACK)
}

/// What size over time may be, in decimal gigabytes per second. `None` if no time was printed.
pub(super) fn size_over_time(size: u64, time: Printed) -> Option<(f64, f64)> {
    time.sane().filter(|time| *time > 0.0)?;
    let (low, high) = time.range();
    let rate = |micros: f64| if micros > 0.0 { size as f64 / micros / 1e3 } else { f64::INFINITY };
    Some((rate(high), rate(low)))
}

/// Whether the printed algorithm bandwidth is size over time; `None` if that cannot be told.
fn algbw_agrees(size: u64, figures: &Figures) -> Option<bool> {
    let printed = figures.algbw.filter(|printed| printed.sane().is_some())?;
    Some(overlap(printed.range(), size_over_time(size, figures.time)?))
}

/// Binary over decimal gigabyte.
const GIB_IN_GB: f64 = (1_u64 << 30) as f64 / 1e9;

/// Some tools (early `nccom-test`) print binary gigabytes per second. They are told by rows that
/// disagree with decimal ones while all agree with binary ones, and converted.
pub(super) fn mend_unit(draft: &mut Draft, ledger: &mut Ledger) {
    let scaled = |figures: &Figures| Figures {
        algbw: figures.algbw.map(|rate| rate.scaled(GIB_IN_GB)),
        busbw: figures.busbw.map(|rate| rate.scaled(GIB_IN_GB)),
        ..*figures
    };
    let pairs = || draft.rows.iter().flat_map(|row| row.figures().map(|f| (row.size, f)));
    let is_decimal = pairs().all(|(size, figures)| algbw_agrees(size, figures) != Some(false));
    let is_binary = pairs().all(|(size, f)| algbw_agrees(size, &scaled(f)) != Some(false));
    if is_decimal || !is_binary {
        return;
    }
    for row in &mut draft.rows {
        row.out_of_place = row.out_of_place.as_ref().map(scaled);
        row.in_place = row.in_place.as_ref().map(scaled);
    }
    draft.printed_average = draft.printed_average.map(|rate| rate.scaled(GIB_IN_GB));
    let line = draft.rows.first().map_or(0, |row| row.line);
    let message =
        "bandwidths are printed in binary gigabytes per second; converted to decimal ones";
    ledger
        .record_at(Severity::Repaired, "binary-unit", message, || format!("table of line {line}"));
}

/// Whether a row that was found torn, wrapped or among other text is whole: size, count and
/// element type belong together, and every printed bandwidth is size over time.
pub(super) fn is_whole(row: &DraftRow) -> bool {
    size_fits_count(row)
        && row.figures().all(|figures| algbw_agrees(row.size, figures).unwrap_or(row.size == 0))
}

/// Whether a row may be taken: what stands before a number that was cut makes another number, so
/// size and count must belong together, or else the bandwidths must speak for the size.
pub(super) fn is_credible(row: &DraftRow) -> bool {
    let told = |figures: &Figures| figures.algbw.is_some_and(|printed| printed.value > 0.0);
    size_fits_count(row)
        || (row.figures().any(told)
            && row.figures().all(|figures| algbw_agrees(row.size, figures) != Some(false)))
}

/// A size is that of the counted elements, or of as many per rank.
fn size_fits_count(row: &DraftRow) -> bool {
    let (Some(count), Some(dtype)) = (row.count, row.dtype) else { return true };
    match dtype.bytes_of(count) {
        0 => row.size == 0,
        bytes => row.size.is_multiple_of(bytes) && (row.size > 0 || count == 0),
    }
}

/// Buffers of how many ranks a size counts; `None` if the row does not tell.
fn buffers(row: &DraftRow) -> Option<u64> {
    let bytes = row.dtype?.bytes_of(row.count?);
    (row.size > 0 && bytes > 0).then(|| row.size / bytes)
}

/// Leaves out rows whose size counts other buffers than that of most rows: the first digits of
/// their size were printed elsewhere.
pub(super) fn drop_odd_sizes(draft: &mut Draft, ledger: &mut Ledger) {
    let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
    for buffers in draft.rows.iter().filter_map(buffers) {
        *counts.entry(buffers).or_default() += 1;
    }
    let told: usize = counts.values().sum();
    let Some((&usual, &count)) = counts.iter().max_by_key(|(_, count)| **count) else { return };
    // Operations with uneven parts have no usual one.
    if count * 2 <= told {
        return;
    }
    draft.rows.retain(|row| {
        let odd = buffers(row).is_some_and(|buffers| buffers != usual);
        if odd {
            record_lost(row.line, "its size does not fit its count as in other rows", ledger);
        }
        !odd
    });
}

/// Records rows that lack the placement that most rows have.
pub(super) fn half_rows(rows: &[DraftRow], ledger: &mut Ledger) {
    let whole = |row: &&DraftRow| row.figures().count() == 2;
    if rows.iter().filter(whole).count() * 2 <= rows.len() {
        return;
    }
    for row in rows.iter().filter(|row| !whole(row)) {
        let message = "row without one of its two placements; the other was read";
        ledger.record_at(Severity::Dropped, "half-row", message, || format!("line {}", row.line));
    }
}

/// Records where printed bandwidths are not what their definitions give.
pub(super) fn bandwidths(
    rows: &[DraftRow],
    kind: CollectiveKind,
    ranks: Option<u32>,
    ledger: &mut Ledger,
) {
    for row in rows {
        let placements = [("out of place", &row.out_of_place), ("in place", &row.in_place)];
        for (placement, figures) in placements.iter().filter_map(|(p, f)| Some((p, f.as_ref()?))) {
            if algbw_agrees(row.size, figures) == Some(false) {
                let message = "printed algorithm bandwidth is not size over time; the time is kept";
                ledger.record_at(Severity::Warning, "algbw-disagrees", message, || {
                    let (low, high) = size_over_time(row.size, figures.time).unwrap_or_default();
                    let printed = figures.algbw.map_or(0.0, |printed| printed.value);
                    format!(
                        "line {} {placement}: {printed} GB/s, expected {low:.2} to {high:.2}",
                        row.line
                    )
                });
            }
            busbw(row, placement, figures, kind, ranks, ledger);
        }
    }
}

fn busbw(
    row: &DraftRow,
    placement: &str,
    figures: &Figures,
    kind: CollectiveKind,
    ranks: Option<u32>,
    ledger: &mut Ledger,
) {
    let (Some(ranks), Some(algbw), Some(busbw)) = (ranks, figures.algbw, figures.busbw) else {
        return;
    };
    // One rank moves nothing; some tools then print the algorithm bandwidth again.
    if kind == CollectiveKind::Unknown
        || ranks < 2
        || algbw.sane().is_none()
        || busbw.sane().is_none()
    {
        return;
    }
    let factor = bus_factor(kind, ranks);
    let (low, high) = algbw.range();
    if !overlap(busbw.range(), (low * factor, high * factor)) {
        let message =
            "printed bus bandwidth is not the algorithm bandwidth times the operation's factor";
        ledger.record_at(Severity::Warning, "busbw-disagrees", message, || {
            let printed = busbw.value;
            format!(
                "line {} {placement}: {printed} GB/s, expected {:.2} (x{factor:.4} for {kind} of {ranks} ranks)",
                row.line,
                algbw.value * factor
            )
        });
    }
}

/// Compares the tool's own mean of all bus bandwidths with that of the rows read: a difference
/// tells that the log does not hold all rows.
pub(super) fn average(draft: &Draft, ledger: &mut Ledger) {
    let Some(printed) = draft.printed_average else { return };
    let rates: Vec<Printed> =
        draft.rows.iter().flat_map(DraftRow::figures).filter_map(|f| f.busbw).collect();
    let (low, high) = rates.iter().fold((0.0, 0.0), |sum, rate| {
        let (low, high) = rate.range();
        (sum.0 + low, sum.1 + high)
    });
    let count = rates.len().max(1) as f64;
    let line = draft.rows.last().map_or(0, |row| row.line);
    if !overlap(printed.range(), (low / count, high / count)) {
        let message = "the tool's own average covers other rows than those in the log";
        ledger.record_at(Severity::Note, "average-disagrees", message, || {
            let (low, high) = (low / count, high / count);
            format!("after line {line}: {} GB/s, rows give {low:.2} to {high:.2}", printed.value)
        });
    }
}
