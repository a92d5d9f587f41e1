//! Instants as people write them: seconds, or a date and a time of day.

use foretrain_core::{InputError, Result};

/// Seconds of an instant: a number times `unit`, or a date from 1970 on.
///
/// # Errors
/// If it is neither, or beyond what dates reach.
pub(super) fn seconds(text: &str, unit: f64) -> Result<f64> {
    const MOST: f64 = 1e12;
    let number = text.parse::<f64>().ok().map(|number| number * unit);
    let found = number.or_else(|| date(text));
    found.filter(|seconds| seconds.abs() <= MOST).ok_or_else(|| {
        InputError::new(format!(
            "expected seconds or a date, as in 90.5 or 2024-05-01T12:00:00Z, found {text:?}"
        ))
    })
}

/// `2024-05-01`, then `T` or a space and `12:30[:15[.5]]`, then `Z` or an offset as `+02:00`.
fn date(text: &str) -> Option<f64> {
    let (day, rest) = text.split_once(['T', ' ']).unwrap_or((text, "00:00"));
    let [year, month, day] = parts::<3>(day, '-')?;
    let (clock, offset) = match rest.find(['Z', '+', '-']) {
        Some(at) => rest.split_at(at),
        None => (rest, "Z"),
    };
    let (clock, second) = match clock.matches(':').count() {
        1 => (clock, 0.0),
        _ => {
            let (clock, second) = clock.rsplit_once(':')?;
            (clock, second.parse::<f64>().ok().filter(|s| (0.0..61.0).contains(s))?)
        }
    };
    let [hour, minute] = parts::<2>(clock, ':')?;
    let is_day = (1..=12).contains(&month) && (1..=31).contains(&day) && year <= 9999;
    if !is_day || hour > 23 || minute > 59 {
        return None;
    }
    let days = days_from_1970(year, month, day) as f64;
    let local = days * 86_400.0 + f64::from(hour) * 3600.0 + f64::from(minute) * 60.0 + second;
    Some(local - offset_seconds(offset)?)
}

fn offset_seconds(text: &str) -> Option<f64> {
    if text == "Z" {
        return Some(0.0);
    }
    let sign = if text.starts_with('-') { -1.0 } else { 1.0 };
    let [hours, minutes] = parts::<2>(&text[1..], ':')?;
    Some(sign * (f64::from(hours) * 3600.0 + f64::from(minutes) * 60.0))
}

fn parts<const N: usize>(text: &str, separator: char) -> Option<[u32; N]> {
    let parts: Option<Vec<u32>> = text.split(separator).map(|part| part.parse().ok()).collect();
    parts?.try_into().ok()
}

/// Days since 1 January 1970 in the Gregorian calendar, counting years from March so that the
/// leap day is the last.
fn days_from_1970(year: u32, month: u32, day: u32) -> i64 {
    let (year, month, day) = (i64::from(year), i64::from(month), i64::from(day));
    let year = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + day_of_year
        - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_seconds_since_1970() {
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", 0.0),
            ("2000-03-01", 951_868_800.0),
            ("2024-02-29T12:30:15.5Z", 1_709_209_815.5),
            ("2024-02-29 13:30:15.5+01:00", 1_709_209_815.5),
            ("2024-02-29T07:30-05:00", 1_709_209_800.0),
            ("90.5", 90.5),
        ] {
            assert_eq!(seconds(text, 1.0).unwrap(), expected, "{text}");
        }
        assert_eq!(seconds("2", 3600.0).unwrap(), 7200.0);
        for wrong in [
            "",
            "x",
            "2024-13-01",
            "1-2-3T4",
            "inf",
            "NaN",
            "1e13",
            "2024-01-01T24:00",
            "2024-01-01T00:00+",
            "2024-01-01T00:00é",
            "2024-01-01T00:00:61Z",
            "2024-01-01x",
        ] {
            assert!(seconds(wrong, 1.0).is_err(), "{wrong}");
        }
    }
}
