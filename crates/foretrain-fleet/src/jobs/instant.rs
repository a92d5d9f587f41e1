//! Points in time, as numbers or as dates.

use std::ops::Range;

use foretrain_core::Nanos;

use super::style::Order;

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

/// `2023-03-01 00:18:22+08:00`, `2017-10-03T00:00:00Z`, `2017/10/03 00:00 PDT`, `2017-10-03`,
/// `03.10.2017 00:00`, `3 Oct 2017`, `Oct 3, 2017`.
pub(super) fn date(cell: &[u8]) -> Option<Dated> {
    date_in(cell, Order::Unseen)
}

/// As [`date`]; also `10/03/2017 8:00 AM` if it is known what comes first.
pub(super) fn date_in(cell: &[u8], order: Order) -> Option<Dated> {
    let mut text = Text(cell);
    let days = match text.digits(4) {
        Some(year) => {
            let separator = text.one(b"-/")?;
            let month = text.digits(2)?;
            text.one(&[separator])?;
            civil_days(year, month, text.digits(2)?)?
        }
        None => text.year_last(order)?,
    };
    let mut seconds = days * 86_400;
    let mut nanos = 0;
    let mut zone = None;
    if text.0.starts_with(b", ") {
        text.one(b",")?;
    }
    if text.one(b" T").is_some() {
        let mut hour = text.digits(2)?;
        text.one(b":")?;
        let minute = text.digits(2)?;
        let second = if text.one(b":").is_some() { text.digits(2)? } else { 0 };
        if hour > 24 || minute > 59 || second > 60 {
            return None;
        }
        if text.one(b".,").is_some() {
            nanos = text.fraction()?;
        }
        if let Some(afternoon) = text.half_of_day() {
            if !(1..=12).contains(&hour) {
                return None;
            }
            hour = hour % 12 + if afternoon { 12 } else { 0 };
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

/// The first two numbers of a date such as `03/01/2024`, whichever is the month.
pub(super) fn slashed(cell: &[u8]) -> Option<(i64, i64)> {
    let mut text = Text(cell);
    let first = text.digits(2)?;
    let separator = text.one(b"/-")?;
    let second = text.digits(2)?;
    text.one(&[separator])?;
    text.digits(4)?;
    let ends = text.0.first().is_none_or(|byte| matches!(byte, b' ' | b'T' | b','));
    ends.then_some((first, second))
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

const MONTHS: [&[u8]; 12] = [
    b"january",
    b"february",
    b"march",
    b"april",
    b"may",
    b"june",
    b"july",
    b"august",
    b"september",
    b"october",
    b"november",
    b"december",
];

impl Text<'_> {
    /// Days since 1970 of a date whose year comes last. Points say that the day comes first.
    fn year_last(&mut self, order: Order) -> Option<i64> {
        let (month, day) = match self.month() {
            Some(month) => {
                self.one(b" ")?;
                let day = self.digits(2)?;
                let _ = self.one(b",");
                self.one(b" ")?;
                (month, day)
            }
            None => {
                let first = self.digits(2)?;
                let separator = self.one(b"./- ")?;
                let (month, day) = match (self.month(), separator, order) {
                    (Some(month), b' ' | b'-', _) => (month, first),
                    (None, b'.', _) | (None, b'/' | b'-', Order::Day) => (self.digits(2)?, first),
                    (None, b'/' | b'-', Order::Month) => (first, self.digits(2)?),
                    _ => return None,
                };
                self.one(&[separator])?;
                (month, day)
            }
        };
        let year = self.digits(4)?;
        civil_days(year, month, day)
    }

    /// A month by its name or the first three letters of it.
    fn month(&mut self) -> Option<i64> {
        let count = self.0.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        let (name, rest) = self.0.split_at(count);
        let named = |month: &&[u8]| {
            name.eq_ignore_ascii_case(month) || name.eq_ignore_ascii_case(&month[..3])
        };
        let month = MONTHS.iter().position(named)?;
        self.0 = rest;
        i64::try_from(month + 1).ok()
    }

    /// Whether `PM` follows and not `AM`; none if neither does.
    fn half_of_day(&mut self) -> Option<bool> {
        let rest = self.0.trim_ascii_start();
        let (word, after) = rest.split_at_checked(2)?;
        let afternoon = word.eq_ignore_ascii_case(b"pm");
        let alone = after.first().is_none_or(|byte| !byte.is_ascii_alphabetic());
        (alone && (afternoon || word.eq_ignore_ascii_case(b"am"))).then(|| {
            self.0 = after;
            afternoon
        })
    }

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
    fn dates_with_the_year_last() {
        let expected = seconds("2024-03-01 08:00:00");
        for text in [
            "01.03.2024 08:00",
            "1.3.2024 08:00:00",
            "1 Mar 2024 08:00",
            "01-Mar-2024 08:00:00",
            "Mar 1 2024 08:00",
            "March 1, 2024 8:00 AM",
        ] {
            assert_eq!(seconds(text), expected, "{text}");
        }
        let in_order = |text: &str, order| {
            date_in(text.as_bytes(), order).map(|d| d.at.nanos() / 1_000_000_000)
        };
        let expected = expected.map(|(at, _)| at);
        assert_eq!(in_order("03/01/2024 08:00", Order::Month), expected);
        assert_eq!(in_order("01/03/2024, 08:00", Order::Day), expected);
        assert_eq!(in_order("01-03-2024 08:00", Order::Day), expected);
        assert_eq!(in_order("13/03/2024", Order::Month), None);
        assert_eq!(in_order("01/03/2024", Order::Open), None);
        assert_eq!(in_order("03/01/2024 12:30 AM", Order::Month), expected.map(|at| at - 27_000));
        assert_eq!(
            in_order("03/01/2024 08:00:00 PM", Order::Month),
            expected.map(|at| at + 43_200)
        );
        assert_eq!(slashed(b"3/13/2024 08:00"), Some((3, 13)));
        assert_eq!(slashed(b"3/13-2024"), None);
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
            "32.01.2024",
            "1 Foo 2024",
            "1.3/2024",
            "2024-03-01 13:00 PM",
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
