//! Numbers from their decimal text, without a detour through floating point.
//!
//! Absolute microseconds with nanosecond decimals have up to 19 significant digits; an `f64`
//! holds 15 to 17, and would move most timestamps by up to a quarter of a microsecond.

/// Microseconds in decimal text to integer nanoseconds: exact up to three decimals, rounded
/// half away from zero beyond, saturated at the ends of `i64`. `None` if it is not a number.
pub fn micros_to_nanos(text: &str) -> Option<i64> {
    scaled(text, 3)
}

/// An integer in decimal or `0x` hexadecimal text, bit-exact for all of `i64` and `u64`
/// (negative numbers keep their two's-complement bits). A fraction of zeros is accepted.
pub fn integer_bits(text: &str) -> Option<u64> {
    let text = text.trim();
    if let Ok(value) = text.parse::<u64>() {
        return Some(value);
    }
    if let Ok(value) = text.parse::<i64>() {
        return Some(value as u64);
    }
    if let Some(hex) = text.strip_prefix("0x") {
        return u64::from_str_radix(hex, 16).ok();
    }
    let (whole, fraction) = text.split_once('.')?;
    if !fraction.is_empty() && fraction.bytes().all(|b| b == b'0') && !whole.starts_with("0x") {
        return integer_bits(whole);
    }
    None
}

/// A signed integer; `None` if it is not one or does not fit.
pub fn integer(text: &str) -> Option<i64> {
    let bits = integer_bits(text)?;
    let negative = text.trim().starts_with('-');
    (negative || bits <= i64::MAX as u64).then_some(bits as i64)
}

/// A finite number.
pub fn finite(text: &str) -> Option<f64> {
    text.trim().parse::<f64>().ok().filter(|value| value.is_finite())
}

/// `text` times ten to the power of `shift`, rounded to an integer.
fn scaled(text: &str, shift: i32) -> Option<i64> {
    let bytes = text.trim().as_bytes();
    let (negative, bytes) = match bytes {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let mut digits = Digits::default();
    let mut position = digits.take(bytes, 0, false);
    if bytes.get(position) == Some(&b'.') {
        position = digits.take(bytes, position + 1, true);
    }
    if digits.count == 0 {
        return None;
    }
    let exponent = match bytes.get(position) {
        None => 0,
        Some(b'e' | b'E') => exponent(bytes.get(position + 1..)?)?,
        Some(_) => return None,
    };
    let magnitude = digits.shifted(exponent.saturating_add(shift));
    Some(if negative { -magnitude } else { magnitude })
}

fn exponent(bytes: &[u8]) -> Option<i32> {
    let text = std::str::from_utf8(bytes).ok()?;
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let magnitude = digits.parse::<i32>().unwrap_or(i32::MAX / 4).min(i32::MAX / 4);
    Some(if text.starts_with('-') { -magnitude } else { magnitude })
}

/// The leading significant digits of a number: as many as matter to a 64-bit result.
#[derive(Default)]
struct Digits {
    mantissa: u128,
    // Power of ten that the mantissa is to be multiplied by.
    power: i32,
    count: usize,
}

impl Digits {
    const KEPT: u128 = 10_u128.pow(34);
    /// Digits that a machine word holds whatever they are.
    const IN_A_WORD: usize = 19;

    fn take(&mut self, bytes: &[u8], from: usize, fraction: bool) -> usize {
        let mut position = from;
        // Nearly all numbers fit a word, and its arithmetic is several times as fast.
        let mut word = self.mantissa as u64;
        while self.count < Self::IN_A_WORD
            && let Some(digit) = bytes.get(position).filter(|b| b.is_ascii_digit())
        {
            word = word * 10 + u64::from(digit - b'0');
            self.power -= i32::from(fraction);
            self.count += 1;
            position += 1;
        }
        if self.count <= Self::IN_A_WORD {
            self.mantissa = u128::from(word);
        }
        while let Some(digit) = bytes.get(position).filter(|b| b.is_ascii_digit()) {
            if self.mantissa < Self::KEPT {
                self.mantissa = self.mantissa * 10 + u128::from(digit - b'0');
                self.power = self.power.saturating_sub(i32::from(fraction));
            } else {
                self.power = self.power.saturating_add(i32::from(!fraction));
            }
            self.count += 1;
            position += 1;
        }
        position
    }

    fn shifted(&self, by: i32) -> i64 {
        let power = self.power.saturating_add(by);
        if self.mantissa == 0 {
            return 0;
        }
        if let Some(value) = u64::try_from(self.mantissa).ok().and_then(|w| scaled_word(w, power)) {
            return i64::try_from(value).unwrap_or(i64::MAX);
        }
        let value = if power >= 0 {
            10_u128.checked_pow(power.unsigned_abs()).and_then(|f| self.mantissa.checked_mul(f))
        } else {
            let divisor = 10_u128.checked_pow(power.unsigned_abs());
            Some(
                divisor
                    .map_or(0, |d| self.mantissa / d + u128::from(self.mantissa % d >= d - d / 2)),
            )
        };
        value.and_then(|v| i64::try_from(v).ok()).unwrap_or(i64::MAX)
    }
}

/// A word times a power of ten, rounded; `None` if a word does not hold what that takes.
fn scaled_word(word: u64, power: i32) -> Option<u64> {
    let factor = 10_u64.checked_pow(power.unsigned_abs())?;
    if power >= 0 {
        return word.checked_mul(factor);
    }
    Some(word / factor + u64::from(word % factor >= factor - factor / 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn timestamps_of_every_generation_are_exact() {
        for (text, nanos) in [
            ("1606910596297023", 1_606_910_596_297_023_000),
            ("1704161511420306.491", 1_704_161_511_420_306_491),
            ("1778640000000000.125", 1_778_640_000_000_000_125),
            ("4458676522690.655", 4_458_676_522_690_655),
            ("12.77012757357446", 12_770),
            ("0.0005", 1),
            ("0.00049", 0),
            ("-5", -5_000),
            ("1.5e3", 1_500_000),
            ("2E-3", 2),
            ("0", 0),
            ("1e400", i64::MAX),
            ("-1e400", -i64::MAX),
            ("1e-400", 0),
            ("99999999999999999999999999999999999999999999", i64::MAX),
        ] {
            assert_eq!(micros_to_nanos(text), Some(nanos), "{text}");
        }
        for text in ["", "nan", "inf", "1.2.3", "0x10", "1e", "--1", "."] {
            assert_eq!(micros_to_nanos(text), None, "{text}");
        }
    }

    #[test]
    fn identifiers_keep_every_bit() {
        assert_eq!(integer_bits("10159970886766084423"), Some(10_159_970_886_766_084_423));
        assert_eq!(integer_bits("-1"), Some(u64::MAX));
        assert_eq!(integer_bits("0x1f"), Some(31));
        assert_eq!(integer_bits("7.0"), Some(7));
        assert_eq!(integer_bits("7.5"), None);
        assert_eq!(integer_bits("99999999999999999999999"), None);
        assert_eq!(integer("10159970886766084423"), None);
        assert_eq!(integer("-3"), Some(-3));
    }

    proptest! {
        #[test]
        fn three_decimals_round_trip(nanos in any::<i64>()) {
            let sign = if nanos < 0 { "-" } else { "" };
            let magnitude = nanos.unsigned_abs();
            let text = format!("{sign}{}.{:03}", magnitude / 1000, magnitude % 1000);
            prop_assert_eq!(micros_to_nanos(&text), Some(nanos.max(-i64::MAX)));
        }

        /// Digits on both sides of where a word ends give what wider arithmetic gives.
        #[test]
        fn long_numbers_agree_with_wide_arithmetic(
            whole in 0..10_u128.pow(15), fraction in "[0-9]{0,18}",
        ) {
            let digits = fraction.len() as u32;
            let scaled = (whole * 10_u128.pow(digits) + fraction.parse::<u128>().unwrap_or(0)) * 1000;
            let want = (scaled + 10_u128.pow(digits) / 2) / 10_u128.pow(digits);
            prop_assert_eq!(micros_to_nanos(&format!("{whole}.{fraction}")), i64::try_from(want).ok());
        }

        #[test]
        fn no_text_panics(text in "[-+0-9.eExX]{0,40}") {
            let _ = (micros_to_nanos(&text), integer_bits(&text), integer(&text), finite(&text));
        }
    }
}
