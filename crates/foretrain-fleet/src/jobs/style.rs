//! How a table writes numbers and dates where that differs from country to country.

use csv::ByteRecord;

use super::instant::{self, Dated};
use super::value;

/// Which part of a date such as `03/01/2024` comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Order {
    /// No first row has such a date.
    #[default]
    Unseen,
    /// The day.
    Day,
    /// The month.
    Month,
    /// Either: no date tells, or they tell both.
    Open,
}

/// How cells are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Style {
    /// Whether `2,5` is a number.
    pub(super) comma: bool,
    /// Of dates with slashes or dashes and the year last.
    pub(super) order: Order,
}

impl Style {
    /// Of a table, by its separator and its first rows.
    pub(super) fn of(separator: Option<u8>, ahead: &[ByteRecord]) -> Self {
        let (mut decimal, mut grouped) = (false, false);
        let (mut day, mut month, mut slashed) = (false, false, false);
        for cell in ahead.iter().flatten() {
            let cell = cell.trim_ascii();
            if !cell.first().is_some_and(|byte| byte.is_ascii_digit() || *byte == b'-') {
                continue;
            }
            if let Some((first, second)) = instant::slashed(cell) {
                slashed = true;
                day |= first > 12;
                month |= second > 12;
            } else if let Some(sure) = comma_decides(cell) {
                decimal |= sure;
                grouped |= !sure;
            }
        }
        let order = match (day, month) {
            _ if !slashed => Order::Unseen,
            (true, false) => Order::Day,
            (false, true) => Order::Month,
            _ => Order::Open,
        };
        // `1,234` alone may be a thousand; what is written with a semicolon needs the comma for decimals.
        Self { comma: separator == Some(b';') && (decimal || !grouped), order }
    }

    /// A finite decimal number.
    pub(super) fn number(self, cell: &[u8]) -> Option<f64> {
        value::number(cell).filter(|_| !self.doubts(cell)).or_else(|| self.comma_number(cell))
    }

    /// A number with a decimal comma, if the table has such.
    pub(super) fn comma_number(self, cell: &[u8]) -> Option<f64> {
        if self.comma { value::comma(cell) } else { None }
    }

    /// Whether a point may stand between thousands: `1.000` where others have decimal commas.
    fn doubts(self, cell: &[u8]) -> bool {
        self.comma
            && cell.len() >= 5
            && cell[cell.len() - 4] == b'.'
            && cell[0] != b'0'
            && !cell.starts_with(b"-0")
    }

    /// A date and time of day.
    pub(super) fn date(self, cell: &[u8]) -> Option<Dated> {
        instant::date_in(cell, self.order)
    }
}

/// Whether a number with one comma can only have a decimal comma (`2,5`, `0,500`) or may be a
/// thousand (`1,234`). None if it is no such number.
fn comma_decides(cell: &[u8]) -> Option<bool> {
    let cell = cell.strip_prefix(b"-").unwrap_or(cell);
    let comma = cell.iter().position(|&byte| byte == b',')?;
    let (whole, decimals) = (&cell[..comma], &cell[comma + 1..]);
    let digits = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let grouped = digits(whole)
        && decimals.split(|&byte| byte == b',').all(|group| group.len() == 3 && digits(group));
    if grouped && whole.len() <= 3 && whole != b"0" {
        return Some(false);
    }
    (digits(whole) && digits(decimals)).then_some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn style(separator: u8, cells: &[&str]) -> Style {
        Style::of(Some(separator), &[ByteRecord::from(cells.to_vec())])
    }

    #[test]
    fn commas_are_decimal_where_semicolons_separate() {
        let german = style(b';', &["0,5", "a"]);
        assert_eq!(german.number(b"2,50"), Some(2.5));
        assert_eq!(german.number(b"1.234,5"), Some(1234.5));
        assert_eq!(german.number(b"7"), Some(7.0));
        assert_eq!(german.number(b"1.5"), Some(1.5));
        assert_eq!(german.number(b"1.000"), None, "a thousand or one");
        assert_eq!(german.number(b"1,2,3"), None);
        assert_eq!(style(b',', &["0,5"]).number(b"2,5"), None);
        assert_eq!(style(b';', &["1,234"]).number(b"1,234"), None, "a thousand or one");
    }

    #[test]
    fn one_date_tells_the_order_of_all() {
        assert_eq!(style(b',', &["03/01/2024 08:00", "03/13/2024 08:00"]).order, Order::Month);
        assert_eq!(style(b',', &["03/01/2024", "13/03/2024"]).order, Order::Day);
        assert_eq!(style(b',', &["03/01/2024", "3/2/2024"]).order, Order::Open);
        assert_eq!(style(b',', &["13/01/2024", "3/22/2024"]).order, Order::Open);
        assert_eq!(style(b',', &["2024-01-03", "13.01.2024"]).order, Order::Unseen);
    }
}
