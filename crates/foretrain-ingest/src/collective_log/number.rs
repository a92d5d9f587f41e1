//! Numbers as a log prints them.

use std::cmp::Ordering;

/// A printed number and how finely it was printed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Printed {
    pub(super) value: f64,
    /// Half a unit of the last digit: how far off rounding alone may be.
    pub(super) half_step: f64,
}

impl Printed {
    /// Reads `12.5`, `1e+05`, `nan`, `-inf`; nothing else that Rust would take.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('-').unwrap_or(text);
        if matches!(digits, "nan" | "inf") {
            return Some(Self { value: text.parse().ok()?, half_step: 0.0 });
        }
        let numeric = |b: u8| b.is_ascii_digit() || b".eE+-".contains(&b);
        if !digits.starts_with(|c: char| c.is_ascii_digit()) || !digits.bytes().all(numeric) {
            return None;
        }
        let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
            None => (digits, 0),
        };
        let decimals = mantissa.split_once('.').map_or(0, |(_, fraction)| fraction.len());
        let last_digit = exponent.saturating_sub(i32::try_from(decimals).ok()?);
        Some(Self { value: text.parse().ok()?, half_step: 0.5 * 10_f64.powi(last_digit) })
    }

    /// The same in another unit.
    pub(super) fn scaled(self, factor: f64) -> Self {
        Self { value: self.value * factor, half_step: self.half_step * factor }
    }

    /// The value, unless it is no number or negative.
    pub(super) fn sane(self) -> Option<f64> {
        (self.value.is_finite() && self.value.partial_cmp(&0.0) != Some(Ordering::Less))
            .then_some(self.value)
    }

    /// Lowest and highest value that print so.
    pub(super) fn range(self) -> (f64, f64) {
        ((self.value - self.half_step).max(0.0), self.value + self.half_step)
    }
}

/// An unsigned integer in plain digits.
pub(super) fn integer(text: &str) -> Option<u64> {
    if text.bytes().all(|b| b.is_ascii_digit()) { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_digits_tell_the_resolution() {
        for (text, value, half_step) in [
            ("12.50", 12.5, 0.005),
            ("16170", 16170.0, 0.5),
            ("1e+05", 1e5, 5e4),
            ("0.00", 0.0, 0.005),
        ] {
            let printed = Printed::parse(text).unwrap();
            assert_eq!(printed.value, value, "{text}");
            assert!((printed.half_step / half_step - 1.0).abs() < 1e-12, "{text}");
        }
        for text in ["", "sum", "N/A", "infinity", "+5", "0x10", "[0]", "1:2", "1e", "--1"] {
            assert_eq!(Printed::parse(text), None, "{text}");
        }
        assert_eq!(Printed::parse("inf").and_then(Printed::sane), None);
        assert_eq!(Printed::parse("-3").and_then(Printed::sane), None);
        assert_eq!((integer("12"), integer("-1"), integer("1.5")), (Some(12), None, None));
    }
}
