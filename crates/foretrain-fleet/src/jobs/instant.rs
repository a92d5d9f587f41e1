//! Points in time, as numbers or as dates.

use std::ops::Range;

use foretrain_core::Nanos;

/// From when to when numbers are taken as times since 1970, in nanoseconds: 2000 to 2100. Dates in
/// words may be from 1971 on.
pub(super) const BELIEVED: Range<i64> = 946_684_800_000_000_000..4_102_444_800_000_000_000;

/// A date and time of day as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dated {
    /// Since 1970, in UTC if the zone was stated, else on the clock of whoever wrote it.
    pub(super) at: Nanos,
    /// How far its zone is ahead of UTC, if stated.
    pub(super) offset: Option<Nanos>,
}

/// `2023-03-01 00:18:22+08:00`, `2017-10-03T00:00:00Z`, `2017/10/03 00:00 PDT`, `2017-10-03`.
pub(super) fn date(cell: &[u8]) -> Option<Dated> {
    let mut text = Text(cell);
    let year = text.digits(4)?;
    let separator = text.one(b"-/")?;
    let month = text.digits(2)?;
    text.one(&[separator])?;
    let day = text.digits(2)?;
    let days = civil_days(year, month, day)?;
    let mut seconds = days * 86_400;
    let mut nanos = 0;
    let mut zone = None;
    if text.one(b" T").is_some() {
        let hour = text.digits(2)?;
        text.one(b":")?;
        let minute = text.digits(2)?;
        let second = if text.one(b":").is_some() { text.digits(2)? } else { 0 };
        if hour > 24 || minute > 59 || second > 60 {
            return None;
        }
        if text.one(b".,").is_some() {
            nanos = text.fraction()?;
        }
        seconds += hour * 3600 + minute * 60 + second;
        zone = text.zone()?;
    }
    if !text.0.is_empty() {
        return None;
    }
    let utc = seconds - zone.unwrap_or(0);
    let at = Nanos::from_nanos(utc.checked_mul(1_000_000_000)?.checked_add(nanos)?);
    Some(Dated { at, offset: zone.map(|zone| Nanos::from_millis(zone * 1_000)) })
}

/// Days since 1970-01-01 of a day of the Gregorian calendar.
fn civil_days(year: i64, month: i64, day: i64) -> Option<i64> {
    const LENGTHS: [i64; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = LENGTHS.get(usize::try_from(month - 1).ok()?)? + i64::from(leap && month == 2);
    if !(1..=length).contains(&day) {
        return None;
    }
    // Years that begin in March put the leap day last.
    let shifted = if month <= 2 { year - 1 } else { year };
    let since_march = (month + 9) % 12;
    let day_of_year = (153 * since_march + 2) / 5 + day - 1;
    Some(365 * shifted + shifted / 4 - shifted / 100 + shifted / 400 + day_of_year - 719_468)
}

/// What is left of a cell.
struct Text<'a>(&'a [u8]);

impl Text<'_> {
    fn one(&mut self, of: &[u8]) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        of.contains(&first).then(|| {
            self.0 = rest;
            first
        })
    }

    /// A number of one digit up to so many (years: exactly).
    fn digits(&mut self, most: usize) -> Option<i64> {
        let count = self.0.iter().take(most).take_while(|byte| byte.is_ascii_digit()).count();
        if count == 0 || (most == 4 && count < 4) {
            return None;
        }
        let (digits, rest) = self.0.split_at(count);
        self.0 = rest;
        Some(digits.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0')))
    }

    /// Decimals of a second, in nanoseconds; digits beyond are cut.
    fn fraction(&mut self) -> Option<i64> {
        let count = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = self.0.split_at(count);
        self.0 = rest;
        let first = digits.iter().chain(std::iter::repeat(&b'0')).take(9);
        (count > 0).then(|| first.fold(0, |number, digit| number * 10 + i64::from(digit - b'0')))
    }

    /// Seconds ahead of UTC; nothing if no zone is stated, `None` if it is not understood.
    #[expect(clippy::option_option, reason = "not stated is not the same as not understood")]
    fn zone(&mut self) -> Option<Option<i64>> {
        let rest = self.0.trim_ascii();
        // Letters that stand for several zones (CST, IST, BST) say nothing.
        const NAMED: [(&[u8], i64); 11] = [
            (b"Z", 0),
            (b"UTC", 0),
            (b"GMT", 0),
            (b"PST", -8),
            (b"PDT", -7),
            (b"MST", -7),
            (b"MDT", -6),
            (b"EST", -5),
            (b"EDT", -4),
            (b"CET", 1),
            (b"CEST", 2),
        ];
        if rest.is_empty() {
            self.0 = rest;
            return Some(None);
        }
        if let Some((_, hours)) = NAMED.iter().find(|(name, _)| rest.eq_ignore_ascii_case(name)) {
            self.0 = b"";
            return Some(Some(hours * 3600));
        }
        let mut offset = Text(rest);
        let sign = if offset.one(b"+-")? == b'-' { -1 } else { 1 };
        let hours = offset.digits(2)?;
        let _ = offset.one(b":");
        let minutes = if offset.0.is_empty() { 0 } else { offset.digits(2)? };
        self.0 = offset.0;
        Some((hours < 15 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(text: &str) -> Option<(i64, bool)> {
        date(text.as_bytes())
            .map(|dated| (dated.at.nanos() / 1_000_000_000, dated.offset.is_some()))
    }

    #[test]
    fn dates_of_many_writers() {
        // From `date -u -d`.
        assert_eq!(seconds("1970-01-01 00:00:00"), Some((0, false)));
        assert_eq!(seconds("2023-03-01 00:18:22+08:00"), Some((1_677_601_102, true)));
        assert_eq!(seconds("2017-10-03 00:00:00 PDT"), Some((1_507_014_000, true)));
        assert_eq!(seconds("2017-10-03T07:00:00Z"), Some((1_507_014_000, true)));
        assert_eq!(seconds("2017/10/3 7:00"), Some((1_507_014_000, false)));
        assert_eq!(seconds("2000-02-29"), Some((951_782_400, false)));
        assert_eq!(seconds("2024-05-01T10:00:00.250+0530"), Some((1_714_537_800, true)));
        let half = date(b"1970-01-01 00:00:01.5").unwrap();
        assert_eq!(half.at, Nanos::from_millis(1500));
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in [
            "",
            "12",
            "2023",
            "2023-13-01",
            "2023-02-29",
            "2023-01-01 25:00:00",
            "01/02/2023",
            "2023-01-01 10:00:00 CST",
            "2023-01-01 10",
            "0x10-01-01",
            "2023-01-01 10:00:00+99:00x",
        ] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_is_too_much(text in ".{0,40}") {
            let _ = date(text.as_bytes());
        }
    }
}
