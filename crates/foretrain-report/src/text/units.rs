//! Numbers for people. Times in tables are milliseconds with four significant digits, rates
//! decimal, sizes binary.

use foretrain_core::units::significant;
pub use foretrain_core::words::counted;
use foretrain_core::words::printable;
use foretrain_core::{Bandwidth, Bytes, Estimate, Nanos};

/// Milliseconds with four significant digits, at most four decimals, without the unit.
pub fn ms(time: Nanos) -> String {
    plain(time.millis_f64())
}

/// Milliseconds with their unit.
pub fn ms_unit(time: Nanos) -> String {
    format!("{} ms", ms(time))
}

/// The ends of an interval in milliseconds, `590.1-620.2`.
pub fn ms_interval(time: &Estimate<Nanos>) -> String {
    format!("{}-{}", ms(time.low), ms(time.high))
}

/// Four significant digits, at most four decimals, no exponent.
pub fn plain(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return "0".into();
    }
    if value.abs() < 0.001 {
        return format!("{value:.4}");
    }
    let magnitude = value.abs().log10().floor() as i32;
    let decimals = (3 - magnitude).clamp(0, 4) as usize;
    format!("{value:.decimals$}")
}

/// A share as per cent with one decimal.
pub fn percent(share: f64) -> String {
    if share.is_finite() { format!("{:.1} %", share * 100.0) } else { "n/a".into() }
}

/// `part` of `total` as per cent; `n/a` of nothing.
pub fn percent_of(part: Nanos, total: Nanos) -> String {
    if total == Nanos::ZERO {
        return "n/a".into();
    }
    percent(part.nanos() as f64 / total.nanos() as f64)
}

/// Decimal gigabytes per second, without the unit.
pub fn gb_per_s(rate: Bandwidth) -> String {
    significant(rate.gb_per_sec(), 4)
}

/// A size, or `unknown`.
pub fn size(bytes: Option<Bytes>) -> String {
    bytes.map_or_else(|| "unknown".into(), |b| b.to_string())
}

/// A size, without decimals if it is a whole number of its unit.
pub fn whole_size(bytes: Bytes) -> String {
    let unit = (bytes.get().max(1).ilog2() / 10).min(6);
    let name = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"][unit as usize];
    let whole = 1_u64 << (10 * unit);
    if bytes.get().is_multiple_of(whole) {
        return format!("{} {name}", bytes.get() / whole);
    }
    bytes.to_string()
}

/// A time, without decimals if it is a whole number of milliseconds or microseconds.
pub fn whole_time(time: Nanos) -> String {
    match time.nanos() {
        nanos if nanos % 1_000_000 == 0 => format!("{} ms", nanos / 1_000_000),
        nanos if nanos % 1_000 == 0 => format!("{} us", nanos / 1_000),
        _ => time.to_string(),
    }
}

/// Text from a trace, made safe for a terminal (control characters shown as `?`) and cut in the
/// middle to `most` characters: the beginning of a kernel's name and its end both tell.
pub fn name(text: &str, most: usize) -> String {
    let clean: Vec<char> = printable(text).chars().collect();
    if clean.len() <= most || most < 5 {
        return clean.into_iter().collect();
    }
    let head = (most - 2) * 2 / 3;
    let tail = most - 2 - head;
    let start: String = clean[..head].iter().collect();
    let end: String = clean[clean.len() - tail..].iter().collect();
    format!("{start}..{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_four_digits() {
        let shown = |nanos| ms(Nanos::from_nanos(nanos));
        assert_eq!(shown(603_240_000), "603.2");
        assert_eq!(shown(12_345_678_900), "12346");
        assert_eq!(shown(1_234_567), "1.235");
        assert_eq!(shown(12_345), "0.0123");
        assert_eq!(shown(40), "0.0000");
        assert_eq!(shown(0), "0");
    }

    #[test]
    fn round_numbers_are_short() {
        let shown = |bytes| whole_size(Bytes::new(bytes));
        assert_eq!([shown(0), shown(1023), shown(1024)], ["0 B", "1023 B", "1 KiB"]);
        assert_eq!([shown(1536), shown(64 << 20)], ["1.500 KiB", "64 MiB"]);
        assert_eq!(shown(u64::MAX), "16.00 EiB");
        let shown = |nanos| whole_time(Nanos::from_nanos(nanos));
        assert_eq!([shown(20_000), shown(2_000_000), shown(1_500)], ["20 us", "2 ms", "1.500 us"]);
    }

    #[test]
    fn names_keep_both_ends_and_no_control_characters() {
        assert_eq!(name("a\u{1b}[31m", 20), "a?[31m");
        assert_eq!(name("abcdefghijklmnopqrstuvwxyz", 11), "abcdef..xyz");
        assert_eq!(name("abcdefghijklmnopqrstuvwxyz", 11).len(), 11);
        assert_eq!(counted(1, "step"), "1 step");
        assert_eq!(counted(0, "step"), "0 steps");
    }

    #[test]
    fn shares_of_nothing_are_no_number() {
        assert_eq!(percent_of(Nanos::ZERO, Nanos::ZERO), "n/a");
        assert_eq!(percent(f64::NAN), "n/a");
        assert_eq!(percent(0.1234), "12.3 %");
    }
}
