//! How many ranks took part: what the log states, and what the ratio of bus to algorithm
//! bandwidth says of it. The tool computes that ratio from the ranks it ran with, while lists of
//! ranks are cut short by whoever keeps the log.

use foretrain_core::{Ledger, Severity};
use foretrain_cost::bus_factor;
use foretrain_graph::CollectiveKind;

use super::Known;
use super::draft::{Draft, DraftRow};

/// Largest job considered; printed digits tell no more.
const LARGEST: u32 = 1 << 20;

/// What the ratios of a run say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FromRatio {
    /// The roundest of the numbers in this range explains every row.
    Ranks { best: u32, low: u32, high: u32 },
    /// The ratio of this operation does not depend on the ranks, or was printed too coarsely.
    Silent,
    /// No number of ranks explains all rows.
    Contradiction,
}

/// Ranks that the log states.
pub(super) fn listed(draft: &Draft, line: u64, ledger: &mut Ledger) -> Option<Known<u32>> {
    let facts = &draft.facts;
    if let Some(rank) = facts.listed_twice {
        let message = "the same rank was listed twice: processes that do not know of each other \
                       (built without MPI?) measured at the same time";
        ledger.record_at(Severity::Warning, "rank-repeated", message, || {
            format!("rank {rank}, table of line {line}")
        });
    }
    let last = facts.listed.last().and_then(|last| last.checked_add(1));
    match (last, facts.ranks) {
        (Some(ranks), _) if facts.all_listed() => Some(Known::stated(ranks, "rank lines")),
        (_, Some(ranks)) => Some(Known::stated(ranks, "stated in the log")),
        (last, None) => Some(Known::inferred(last?, "last rank line")),
    }
}

/// The ranks of a run, from what is listed and what its figures say.
pub(super) fn reconcile(
    listed: Option<Known<u32>>,
    draft: &Draft,
    rows: &[DraftRow],
    kind: CollectiveKind,
    ledger: &mut Ledger,
) -> Option<Known<u32>> {
    let line = rows.first()?.line;
    let at = |what: String| format!("{what}, table of line {line}");
    match (from_ratio(rows, kind), listed) {
        (FromRatio::Ranks { low, high, .. }, Some(listed))
            if (low..=high).contains(&listed.value) =>
        {
            Some(listed)
        }
        // All are listed and more than took part: nothing explains that but other definitions.
        (FromRatio::Ranks { high, .. }, Some(listed))
            if listed.value > high && !listed.inferred =>
        {
            Some(listed)
        }
        (FromRatio::Ranks { best, .. }, Some(listed)) => {
            let message = "ranks listed are not those of the table; its bandwidths tell the latter";
            ledger.record_at(Severity::Warning, "ranks-disagree", message, || {
                at(format!("{} listed, {best} by the bandwidths", listed.value))
            });
            Some(Known::inferred(best, RATIO))
        }
        (FromRatio::Ranks { best, low, high }, None) => {
            let message = "number of ranks not stated; taken from bus over algorithm bandwidth";
            ledger.record_at(Severity::Inferred, "ranks-from-busbw", message, || {
                let range =
                    if low == high { String::new() } else { format!(" ({low} to {high} fit)") };
                at(format!("{best} ranks{range}"))
            });
            Some(Known::inferred(best, RATIO))
        }
        (FromRatio::Contradiction, listed) => {
            let message = "no number of ranks explains the printed bus bandwidths";
            ledger
                .record_at(Severity::Warning, "ranks-contradict", message, || at(kind.to_string()));
            listed
        }
        (FromRatio::Silent, Some(listed)) => {
            if listed.inferred {
                let message =
                    "not all ranks are listed; there are at least as many as the last says";
                ledger.record_at(Severity::Inferred, "ranks-from-last", message, || {
                    at(format!("{} ranks", listed.value))
                });
            }
            Some(listed)
        }
        (FromRatio::Silent, None) => {
            // The devices of one process, if there are several, are seldom those of one of many.
            let several = |devices: &u32| *devices > 1;
            let (asked, own) = (draft.facts.asked_for, draft.facts.per_process);
            let ranks = asked.filter(several).or(own.filter(several))?;
            let message = "number of ranks not stated; taken from the command or its settings";
            ledger.record_at(Severity::Inferred, "ranks-from-command", message, || {
                at(format!("{ranks} ranks"))
            });
            Some(Known::inferred(ranks, "command or settings"))
        }
    }
}

const RATIO: &str = "bus over algorithm bandwidth";

/// The number of ranks for which every printed pair of bandwidths fits.
fn from_ratio(rows: &[DraftRow], kind: CollectiveKind) -> FromRatio {
    if bus_factor(kind, 2) == bus_factor(kind, 3) || kind == CollectiveKind::Unknown {
        return FromRatio::Silent;
    }
    let (mut low, mut high) = (0.0_f64, f64::INFINITY);
    for figures in rows.iter().flat_map(DraftRow::figures) {
        let (Some(algbw), Some(busbw)) = (figures.algbw, figures.busbw) else { continue };
        if algbw.sane().is_none_or(|v| v <= algbw.half_step) || busbw.sane().is_none() {
            continue;
        }
        let ((alg_low, alg_high), (bus_low, bus_high)) = (algbw.range(), busbw.range());
        low = low.max(bus_low / alg_high);
        high = high.min(bus_high / alg_low);
    }
    if low == 0.0 || low > high {
        return if low == 0.0 { FromRatio::Silent } else { FromRatio::Contradiction };
    }
    // The factor grows with the ranks, so the fitting numbers are a range.
    let fits_from = first(|n| bus_factor(kind, n) >= low);
    let beyond = first(|n| bus_factor(kind, n) > high);
    if fits_from >= beyond {
        return FromRatio::Contradiction;
    }
    if beyond > LARGEST {
        return FromRatio::Silent;
    }
    let high = beyond - 1;
    FromRatio::Ranks { best: roundest(fits_from, high), low: fits_from, high }
}

/// The smallest number from 1 on that satisfies a monotone condition, or one beyond the largest.
fn first(holds: impl Fn(u32) -> bool) -> u32 {
    let (mut low, mut high) = (1, LARGEST + 1);
    while low < high {
        let middle = low.midpoint(high);
        if holds(middle) { high = middle } else { low = middle + 1 }
    }
    low
}

/// The multiple of the highest power of two in a range: jobs fill nodes, and nodes have 4 or 8
/// devices.
fn roundest(low: u32, high: u32) -> u32 {
    let mut step = 1_u32 << 20;
    while step > 1 && high / step * step < low {
        step /= 2;
    }
    high / step * step
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_roundest_number_wins() {
        for (low, high, want) in [(8, 8, 8), (125, 131, 128), (31, 33, 32), (70, 74, 72), (3, 3, 3)]
        {
            assert_eq!(roundest(low, high), want);
        }
        assert_eq!(first(|n| n >= 77), 77);
        assert_eq!(first(|_| false), LARGEST + 1);
    }
}
