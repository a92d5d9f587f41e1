//! The answers of `fleet` as tables.

mod audit;
mod characterise;
mod distributions;
mod machines;
mod moved;
mod schedule;

pub use audit::fleet_audit;
pub use characterise::fleet_characterise;
pub use moved::{fleet_project, fleet_sweep};
pub use schedule::fleet_schedule;

use foretrain_core::Nanos;
use foretrain_core::diagnostics::Coverage;
use foretrain_core::units::significant;
use foretrain_core::words::{counted, of_number};
use foretrain_fleet::pai::characterise::{Method, Rows};
use foretrain_fleet::pai::{Hardware, Overlap, Resource};

use super::sheet::Sheet;
use super::units::percent;

/// `13 of 1000 (1.3 %)`.
fn of(coverage: Coverage) -> String {
    let Coverage { used, total } = coverage;
    match total {
        0 => "0 of 0".into(),
        _ => format!("{used} of {total} ({})", percent(used as f64 / total as f64)),
    }
}

/// `13 of 1000 (1.3 %) rows have`: those that do something, of all.
fn those_of(coverage: Coverage, noun: &str, one: &str, several: &str) -> String {
    let nouns = format!("{noun}s");
    let noun = of_number(coverage.total, noun, &nouns);
    let is_one = coverage.used == 1 || coverage.total == 1;
    format!("{} {noun} {}", of(coverage), if is_one { one } else { several })
}

/// So much of something: `1 hour`, `2.5 hours`.
fn amount_of(value: f64, noun: &str) -> String {
    let amount = amount(value);
    if amount == "1" { format!("1 {noun}") } else { format!("{amount} {noun}s") }
}

/// A time, in days where seconds would be too many to read.
fn time(time: Nanos) -> String {
    match time.secs_f64() / 86_400.0 {
        days if days < 2.0 => time.to_string(),
        days => amount_of(days, "day"),
    }
}

/// Whole numbers as they are, others with four digits.
fn amount(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        format!("{value:.0}")
    } else {
        significant(value, 4)
    }
}

/// The machine that steps were timed on, and the rows.
fn method(method: &Method, rows: &Rows, overlap: Overlap, sheet: &mut Sheet) {
    let hardware = &method.hardware;
    let base = Hardware { pcie_sharing: hardware.pcie_sharing, ..Hardware::pai_2019() };
    let changed = if *hardware == base { "" } else { " with changes" };
    let machine = format!(
        "{}{changed}: {} TFLOPS, memory {}, Ethernet {} Gbit/s, PCIe {}, NVLink {}",
        Hardware::PAI_2019,
        amount(hardware.flops.tflops()),
        hardware.memory,
        amount(hardware.ethernet.get() * 8.0 / 1e9),
        hardware.pcie,
        hardware.nvlink,
    );
    sheet.field("machine", &machine);
    let parts = Resource::ALL.map(|resource| hardware.efficiency.of(resource));
    let efficiency = if parts.iter().all(|part| *part == parts[0]) {
        format!("{} of every peak", percent(parts[0]))
    } else {
        let each = Resource::ALL.map(|resource| {
            format!("{} {}", resource.name(), percent(hardware.efficiency.of(resource)))
        });
        each.join(", ")
    };
    sheet.field("reached", &efficiency);
    let sharing = hardware.sharing(hardware.gpus_per_server);
    let shared = match sharing {
        1 => "no replicas share a PCIe root".into(),
        _ => format!("up to {sharing} replicas of a server share a PCIe root for their input"),
    };
    sheet.field("servers", &format!("{}; {shared}", counted(hardware.gpus_per_server, "GPU")));
    let order = match overlap {
        Overlap::None => "input, computation and weight traffic one after the other",
        Overlap::Ideal => "the longest of input, computation and weight traffic hides the others",
    };
    sheet.field("a step", order);
    sheet.field("rows", &format!("{} timed", of(rows.timed)));
    untimed(rows, sheet);
    if rows.synthetic > 0 {
        sheet.warning(&format!(
            "synthetic: {} of {} {} drawn by a generator to have published shares; nothing can be learnt \
             that was not put in",
            rows.synthetic,
            counted(rows.timed.used, "timed row"),
            of_number(rows.synthetic, "was", "were")
        ));
    }
}

/// Says so where there is nothing to say.
fn untimed(rows: &Rows, sheet: &mut Sheet) {
    match rows.timed {
        Coverage { total: 0, .. } => {
            sheet.warning("the table has no row below its titles, so there is nothing to say");
        }
        Coverage { used: 0, total } => sheet.warning(&format!(
            "no row could be timed ({} read), so there is nothing to say; findings tell why",
            counted(total, "row")
        )),
        _ => {}
    }
}

/// A day: of dates the date, else its number. Times that count from an origin of their own are short
/// of ten years.
fn day(number: i64) -> String {
    if !(3_653..2_000_000).contains(&number) {
        return number.to_string();
    }
    // Years that begin in March put the leap day last; 400 of them have 146,097 days.
    let since = number + 719_468;
    let (era, of_era) = (since / 146_097, since % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_one_wherever_it_is_counted() {
        let those = |used, total| those_of(Coverage { used, total }, "row", "has", "have");
        assert_eq!(those(1, 1), "1 of 1 (100.0 %) row has");
        assert_eq!(those(0, 1), "0 of 1 (0.0 %) row has");
        assert_eq!(those(1, 4), "1 of 4 (25.0 %) rows has");
        assert_eq!(those(2, 4), "2 of 4 (50.0 %) rows have");
        assert_eq!([amount_of(1.0, "hour"), amount_of(2.5, "hour")], ["1 hour", "2.500 hours"]);
        let shown = |secs| time(Nanos::from_secs_f64(secs));
        assert_eq!([shown(7070.0), shown(31_000_000.0)], ["7070 s", "358.8 days"]);
    }

    #[test]
    fn days_are_dates_where_they_are_since_1970() {
        assert_eq!([day(0), day(149), day(-3)], ["0", "149", "-3"]);
        assert_eq!([day(17_441), day(19_417)], ["2017-10-02", "2023-03-01"]);
        assert_eq!([day(11_016), day(20_089)], ["2000-02-29", "2025-01-01"]);
    }
}
mod edge;
mod features;
mod open;
mod share;
mod utilisation;

pub use edge::fleet_edge;
pub use features::fleet_features;
pub use open::fleet_open;
pub use share::fleet_share;
pub use utilisation::{fleet_utilisation, fleet_utilisation_predict};
