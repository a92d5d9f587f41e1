//! Lengths of time that are not plain numbers.

use foretrain_core::Nanos;

use super::value;

/// A length of time that says its own units, in any of the ways below.
pub(super) fn written(cell: &[u8]) -> Option<Nanos> {
    clock(cell).or_else(|| spelled(cell))
}

/// As a clock shows it: `1-02:03:04`, `02:03:04`, `2:03` of schedulers, `1 days 02:03:04.5` of pandas,
/// `1 day, 2:03:04` of Python.
fn clock(cell: &[u8]) -> Option<Nanos> {
    const AFTER_DAYS: [&[u8]; 5] = [b"-", b" days ", b" day ", b" days, ", b" day, "];
    let count = cell.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, rest) = cell.split_at(count);
    let (days, rest) = match AFTER_DAYS.iter().find_map(|after| rest.strip_prefix(*after)) {
        Some(rest) => (value::integer(number)?, rest.strip_prefix(b"+").unwrap_or(rest)),
        None => (0, cell),
    };
    let mut seconds = 0.0;
    let mut parts = 0;
    for part in rest.split(|&byte| byte == b':') {
        if part.first().is_none_or(|byte| !byte.is_ascii_digit()) {
            return None;
        }
        let number = value::number(part)?;
        if parts > 0 && number >= 60.0 {
            return None;
        }
        seconds = seconds * 60.0 + number;
        parts += 1;
    }
    let whole = Nanos::from_secs_f64(days as f64 * 86_400.0 + seconds);
    (2..=3).contains(&parts).then_some(whole)
}

/// As numbers with units, the longer first: `90 s`, `1h30m`, `2d 4h`, `1 hour 5 mins`, `PT1H30M`.
fn spelled(cell: &[u8]) -> Option<Nanos> {
    let text = std::str::from_utf8(cell).ok()?.to_ascii_lowercase();
    let Some(iso) = text.strip_prefix('p') else {
        return if text.is_empty() { None } else { sum(&text, nanos_of) };
    };
    // There `m` is a month before the `t` and a minute after it. Nobody measures runs in months.
    let (days, time) = iso.split_once('t').unwrap_or((iso, ""));
    let long = |unit: &str| nanos_of(unit).filter(|_| matches!(unit, "d" | "w"));
    let short = |unit: &str| nanos_of(unit).filter(|_| matches!(unit, "h" | "m" | "s"));
    let whole = sum(days, long)? + sum(time, short)?;
    iso.contains(|c: char| c.is_ascii_digit()).then_some(whole)
}

fn sum(mut rest: &str, nanos_of: impl Fn(&str) -> Option<f64>) -> Option<Nanos> {
    let (mut nanos, mut before) = (0.0, f64::INFINITY);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(digits);
        let after = after.trim_start();
        let letters = after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        let unit = nanos_of(unit)?;
        // What does not go from long to short is no length of time: `5 m 2 h`.
        if unit >= before {
            return None;
        }
        nanos += value::number(number.as_bytes())? * unit;
        (before, rest) = (unit, after.trim_start_matches([' ', ',']));
    }
    Some(Nanos::from_nanos_f64(nanos))
}

/// Nanoseconds in a unit.
fn nanos_of(unit: &str) -> Option<f64> {
    Some(match unit {
        "w" | "week" | "weeks" => 604_800e9,
        "d" | "day" | "days" => 86_400e9,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3_600e9,
        "m" | "min" | "mins" | "minute" | "minutes" => 60e9,
        "s" | "sec" | "secs" | "second" | "seconds" => 1e9,
        "ms" | "msec" | "millis" | "milliseconds" => 1e6,
        "us" | "\u{b5}s" | "\u{3bc}s" | "usec" | "micros" | "microseconds" => 1e3,
        "ns" | "nanos" | "nanoseconds" => 1.0,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(text: &str) -> Option<f64> {
        written(text.as_bytes()).map(Nanos::secs_f64)
    }

    #[test]
    fn clocks() {
        assert_eq!(seconds("1-02:03:04"), Some(93_784.0));
        assert_eq!(seconds("1 days 02:03:04.5"), Some(93_784.5));
        assert_eq!(seconds("0 days 00:00:01"), Some(1.0));
        assert_eq!(seconds("00:02:30"), Some(150.0));
        assert_eq!([seconds("5"), seconds("-1:00"), seconds("1:2:3:4"), seconds("a:b")], [None; 4]);
    }

    #[test]
    fn numbers_with_units() {
        for (text, expected) in [
            ("1h", 3600.0),
            ("90 s", 90.0),
            ("1h30m", 5400.0),
            ("2d 4h", 187_200.0),
            ("1 hour, 5 mins", 3900.0),
            ("PT1H30M", 5400.0),
            ("P1DT2H", 93_600.0),
            ("P1W", 604_800.0),
            ("1 day, 2:03:04", 93_784.0),
            ("250ms", 0.25),
            ("1.5 Hours", 5400.0),
        ] {
            assert_eq!(seconds(text), Some(expected), "{text}");
        }
        for text in [
            "", "h", "5", "5 m 2 h", "3 months", "1h-2m", "1..5h", "p", "1 h x", "P1M", "P1H",
            "PT1D", "1:60:00", "0:90:00",
        ] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_is_too_much(text in ".{0,40}") {
            let _ = written(text.as_bytes());
        }
    }
}
