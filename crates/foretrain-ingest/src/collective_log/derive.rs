//! Times of tables that print bandwidths only.

use foretrain_core::{Ledger, Severity};
use foretrain_cost::bus_factor;
use foretrain_graph::CollectiveKind;

use super::draft::{DraftRow, Figures};
use super::number::Printed;
use super::table::record_lost;

/// The rows with times: size over algorithm bandwidth, or size times the operation's factor over
/// bus bandwidth. Rows that have neither are reported as lost.
pub(super) fn times(
    rows: &[DraftRow],
    kind: CollectiveKind,
    ranks: Option<u32>,
    ledger: &mut Ledger,
) -> Vec<DraftRow> {
    let factor = ranks.filter(|_| kind != CollectiveKind::Unknown).map(|n| bus_factor(kind, n));
    let mut timed = rows.to_vec();
    timed.retain_mut(|row| {
        let size = row.size;
        let placements = [&mut row.out_of_place, &mut row.in_place];
        let found = placements.into_iter().flatten().all(|figures| derive(figures, size, factor));
        if !found {
            let why = "it has no time, and none follows without a bandwidth, operation and ranks";
            record_lost(row.line, why, ledger);
        }
        found
    });
    if let Some(first) = timed.first() {
        let message = "times are not printed; computed from sizes and bandwidths";
        ledger.record_at(Severity::Inferred, "time-from-bandwidth", message, || {
            format!("table of line {}", first.line)
        });
    }
    timed
}

/// Fills in a time, within the rounding of the bandwidth; `false` if there is nothing to take it
/// from.
fn derive(figures: &mut Figures, size: u64, factor: Option<f64>) -> bool {
    if figures.time.sane().is_some() {
        return true;
    }
    let over = |moved: f64, rate: Option<Printed>| {
        let rate = rate.filter(|rate| rate.sane().is_some_and(|value| value > 0.0))?;
        let value = moved / rate.value / 1e3;
        Some(Printed { value, half_step: value * (rate.half_step / rate.value).min(1.0) })
    };
    let by_bus = || over(size as f64 * factor.filter(|f| *f > 0.0)?, figures.busbw);
    let Some(time) = over(size as f64, figures.algbw).or_else(by_bus) else { return false };
    figures.time = time;
    true
}
