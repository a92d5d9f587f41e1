//! Figures as text: a number and its unit, read strictly.
//!
//! Letters that differ only in case mean an eightfold difference ("Gb/s", "GB/s"), so units are
//! case-sensitive, bits are spelt out, and a bare number is refused.

use std::fmt;
use std::marker::PhantomData;

use foretrain_core::units::Quantity;
use foretrain_core::{Bandwidth, Bytes, FlopRate, Nanos};
use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// What can be written as "number unit".
pub(crate) trait Written: Copy {
    /// For messages: "a size such as \"80 GiB\"".
    const EXPECTED: &'static str;
    /// Accepted units with their factor to the base unit.
    const UNITS: &'static [(&'static str, f64)];
    /// The largest figure that any machine could have, in base units.
    const LARGEST: f64;
    /// Whether zero makes sense.
    const ZERO: bool = false;
    /// From base units.
    fn from_base_units(value: f64) -> Self;
}

impl Written for Bytes {
    const EXPECTED: &'static str = "a size such as \"80 GiB\" or \"80 GB\"";
    const UNITS: &'static [(&'static str, f64)] = &[
        ("B", 1.0),
        ("kB", 1e3),
        ("MB", 1e6),
        ("GB", 1e9),
        ("TB", 1e12),
        ("KiB", 1024.0),
        ("MiB", 1_048_576.0),
        ("GiB", 1_073_741_824.0),
        ("TiB", 1_099_511_627_776.0),
    ];
    const LARGEST: f64 = 1e15;
    fn from_base_units(value: f64) -> Self {
        Self::from_base(value)
    }
}

impl Written for Bandwidth {
    const EXPECTED: &'static str = "a rate such as \"300 GB/s\" or \"200 Gbit/s\"";
    const UNITS: &'static [(&'static str, f64)] = &[
        ("B/s", 1.0),
        ("kB/s", 1e3),
        ("MB/s", 1e6),
        ("GB/s", 1e9),
        ("TB/s", 1e12),
        ("Mbit/s", 1e6 / 8.0),
        ("Gbit/s", 1e9 / 8.0),
        ("Tbit/s", 1e12 / 8.0),
    ];
    const LARGEST: f64 = 1e15;
    fn from_base_units(value: f64) -> Self {
        Self::from_base(value)
    }
}

impl Written for FlopRate {
    const EXPECTED: &'static str = "a dense peak such as \"312 TFLOP/s\"";
    const UNITS: &'static [(&'static str, f64)] = &[
        ("GFLOP/s", 1e9),
        ("TFLOP/s", 1e12),
        ("PFLOP/s", 1e15),
        ("GFLOPS", 1e9),
        ("TFLOPS", 1e12),
        ("PFLOPS", 1e15),
        ("TOP/s", 1e12),
        ("TOPS", 1e12),
    ];
    const LARGEST: f64 = 1e18;
    fn from_base_units(value: f64) -> Self {
        Self::from_base(value)
    }
}

impl Written for Nanos {
    const EXPECTED: &'static str = "a time such as \"1.5 us\"";
    const UNITS: &'static [(&'static str, f64)] =
        &[("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
    const LARGEST: f64 = 1e9;
    const ZERO: bool = true;
    fn from_base_units(value: f64) -> Self {
        Self::from_base(value)
    }
}

/// A clock in hertz.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Hertz(pub(crate) f64);

impl Written for Hertz {
    const EXPECTED: &'static str = "a clock such as \"1410 MHz\"";
    const UNITS: &'static [(&'static str, f64)] = &[("MHz", 1e6), ("GHz", 1e9)];
    const LARGEST: f64 = 2e10;
    fn from_base_units(value: f64) -> Self {
        Self(value)
    }
}

/// Electrical power in watts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Watts(pub(crate) f64);

impl Written for Watts {
    const EXPECTED: &'static str = "a power such as \"400 W\"";
    const UNITS: &'static [(&'static str, f64)] = &[("W", 1.0), ("kW", 1e3)];
    const LARGEST: f64 = 1e7;
    fn from_base_units(value: f64) -> Self {
        Self(value)
    }
}

/// A price in US dollars per hour.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct UsdPerHour(pub(crate) f64);

impl Written for UsdPerHour {
    const EXPECTED: &'static str = "a price such as \"32.77 USD/h\"";
    const UNITS: &'static [(&'static str, f64)] = &[("USD/h", 1.0)];
    const LARGEST: f64 = 1e6;
    const ZERO: bool = true;
    fn from_base_units(value: f64) -> Self {
        Self(value)
    }
}

/// Reads "300 GB/s" and the like; the error says what was expected and what was found.
pub(crate) fn parse<U: Written>(text: &str) -> Result<U, String> {
    let trimmed = text.trim();
    let split = trimmed
        .find(char::is_whitespace)
        .or_else(|| trimmed.find(|c: char| c.is_alphabetic()))
        .unwrap_or(trimmed.len());
    let (number, unit) = (trimmed[..split].trim(), trimmed[split..].trim());
    let number: f64 = number
        .parse()
        .ok()
        .filter(|value: &f64| value.is_finite())
        .ok_or_else(|| format!("expected {}, found {}", U::EXPECTED, shown(text)))?;
    let factor = factor_of::<U>(unit, text)?;
    let value = number * factor;
    if value < 0.0 || (value == 0.0 && !U::ZERO) {
        return Err(format!("expected {} above zero, found {}", U::EXPECTED, shown(text)));
    }
    if value > U::LARGEST {
        let found = shown(text);
        return Err(format!("{found} is more than any machine has; expected {}", U::EXPECTED));
    }
    Ok(U::from_base_units(value))
}

fn factor_of<U: Written>(unit: &str, text: &str) -> Result<f64, String> {
    if let Some((_, factor)) = U::UNITS.iter().find(|(name, _)| *name == unit) {
        return Ok(*factor);
    }
    let found =
        if unit.is_empty() { "no unit".into() } else { format!("the unit {}", shown(unit)) };
    let mut message = format!("expected {}, found {found} in {}", U::EXPECTED, shown(text));
    if let Some(meant) = meant::<U>(unit) {
        message.push_str("; write ");
        message.push_str(&meant);
    } else if !unit.is_empty() {
        let names: Vec<&str> = U::UNITS.iter().map(|(name, _)| *name).collect();
        message.push_str("; units are ");
        message.push_str(&names.join(", "));
    }
    Err(message)
}

/// What a wrong unit surely meant. Only slips of case or of "per second" are mended, and bits and
/// bytes are never guessed apart.
fn meant<U: Written>(unit: &str) -> Option<String> {
    let known = |wanted: &str| U::UNITS.iter().map(|(name, _)| *name).find(|name| *name == wanted);
    let per_second = unit.strip_suffix("ps").or_else(|| unit.strip_suffix("/s"));
    if known("Gbit/s").is_some()
        && let Some(stem) = per_second
        && stem.is_ascii()
    {
        let prefix = stem.get(..stem.len().saturating_sub(1))?.to_uppercase();
        let bytes = format!("{}B/s", if prefix == "K" { "k" } else { &prefix });
        let bytes = known(&bytes)?;
        return match (stem.chars().last()?, known(&format!("{prefix}bit/s"))) {
            ('B', _) => Some(format!("{bytes:?}")),
            ('b', Some(bits)) => Some(format!("{bits:?} for bits or {bytes:?} for bytes")),
            _ => None,
        };
    }
    let lower = unit.to_lowercase();
    let mut near = U::UNITS.iter().map(|(name, _)| *name).filter(|name| {
        name.to_lowercase() == lower || (unit.len() > 1 && name.strip_suffix("/s") == Some(unit))
    });
    let first = near.next()?;
    near.next().is_none().then(|| format!("{first:?}"))
}

/// Quoted and cut, so that a pasted novel does not fill the screen.
pub(crate) fn shown(text: &str) -> String {
    const LONGEST: usize = 60;
    if text.chars().count() <= LONGEST {
        return format!("{text:?}");
    }
    let cut: String = text.chars().take(LONGEST).collect();
    format!("{cut:?}...")
}

/// A figure in a catalogue file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Text<U>(pub(crate) U);

impl<'de, U: Written> Deserialize<'de> for Text<U> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor(PhantomData))
    }
}

struct TextVisitor<U>(PhantomData<U>);

impl<U: Written> TextVisitor<U> {
    fn bare<E: Error>(number: impl fmt::Display) -> Result<Text<U>, E> {
        Err(E::custom(format!(
            "expected {}, found the bare number {number}; add the unit",
            U::EXPECTED
        )))
    }
}

impl<U: Written> Visitor<'_> for TextVisitor<U> {
    type Value = Text<U>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(U::EXPECTED)
    }
    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        parse(text).map(Text).map_err(E::custom)
    }
    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        Self::bare(number)
    }
    fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
        Self::bare(number)
    }
}

/// A whole number from `LEAST` to `MOST`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Count<const LEAST: u32, const MOST: u32>(pub(crate) u32);

impl<'de, const LEAST: u32, const MOST: u32> Deserialize<'de> for Count<LEAST, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CountVisitor::<LEAST, MOST>)
    }
}

struct CountVisitor<const LEAST: u32, const MOST: u32>;

impl<const LEAST: u32, const MOST: u32> Visitor<'_> for CountVisitor<LEAST, MOST> {
    type Value = Count<LEAST, MOST>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number from {LEAST} to {MOST}")
    }
    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        u32::try_from(number).ok().filter(|n| (LEAST..=MOST).contains(n)).map(Count).ok_or_else(
            || E::custom(format!("expected a whole number from {LEAST} to {MOST}, found {number}")),
        )
    }
}

/// A share above 0 and at most 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Share(pub(crate) f64);

/// A ratio of at least 1 (and at most 1000).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ratio(pub(crate) f64);

macro_rules! bounded_float {
    ($name:ident, $visitor:ident, $expected:literal, $within:expr) => {
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any($visitor)
            }
        }
        struct $visitor;
        impl Visitor<'_> for $visitor {
            type Value = $name;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($expected)
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
                self.visit_f64(number as f64)
            }
            fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
                let within: fn(f64) -> bool = $within;
                if within(number) {
                    Ok($name(number))
                } else {
                    Err(E::custom(format!(concat!("expected ", $expected, ", found {}"), number)))
                }
            }
        }
    };
}

bounded_float!(Share, ShareVisitor, "an efficiency above 0 and at most 1", |number| number > 0.0
    && number <= 1.0);
bounded_float!(Ratio, RatioVisitor, "a ratio from 1 (no oversubscription) to 1000", |number| (1.0
    ..=1000.0)
    .contains(&number));

#[cfg(test)]
mod tests {
    use super::*;

    fn gb(text: &str) -> f64 {
        parse::<Bandwidth>(text).unwrap().gb_per_sec()
    }

    #[test]
    fn units_are_read_exactly() {
        assert_eq!(gb("300 GB/s"), 300.0);
        assert_eq!(gb("200 Gbit/s"), 25.0);
        assert_eq!(gb("200Gbit/s"), 25.0);
        assert_eq!(gb(" 3.35  TB/s "), 3350.0);
        assert_eq!(parse::<Bytes>("80 GiB").unwrap(), Bytes::from_gib(80));
        assert_eq!(parse::<Bytes>("80 GB").unwrap(), Bytes::new(80_000_000_000));
        assert_eq!(parse::<Nanos>("0 us").unwrap(), Nanos::ZERO);
        assert_eq!(parse::<Nanos>("1.5 us").unwrap(), Nanos::from_nanos(1_500));
        assert_eq!(parse::<FlopRate>("1.979 PFLOP/s").unwrap().tflops(), 1979.0);
    }

    #[test]
    fn wrong_units_are_refused_with_the_right_one() {
        let refused = |text: &str| parse::<Bandwidth>(text).unwrap_err();
        insta::assert_snapshot!(refused("300 GBps"), @r#"expected a rate such as "300 GB/s" or "200 Gbit/s", found the unit "GBps" in "300 GBps"; write "GB/s""#);
        insta::assert_snapshot!(refused("200 Gbps"), @r#"expected a rate such as "300 GB/s" or "200 Gbit/s", found the unit "Gbps" in "200 Gbps"; write "Gbit/s" for bits or "GB/s" for bytes"#);
        insta::assert_snapshot!(refused("200 gb/s"), @r#"expected a rate such as "300 GB/s" or "200 Gbit/s", found the unit "gb/s" in "200 gb/s"; write "Gbit/s" for bits or "GB/s" for bytes"#);
        insta::assert_snapshot!(refused("300"), @r#"expected a rate such as "300 GB/s" or "200 Gbit/s", found no unit in "300""#);
        insta::assert_snapshot!(refused("1,555 GB/s"), @r#"expected a rate such as "300 GB/s" or "200 Gbit/s", found "1,555 GB/s""#);
        insta::assert_snapshot!(refused("-3 GB/s"), @r#"expected a rate such as "300 GB/s" or "200 Gbit/s" above zero, found "-3 GB/s""#);
        insta::assert_snapshot!(parse::<Bytes>("80 GHz").unwrap_err(), @r#"expected a size such as "80 GiB" or "80 GB", found the unit "GHz" in "80 GHz"; units are B, kB, MB, GB, TB, KiB, MiB, GiB, TiB"#);
    }

    #[test]
    fn no_text_breaks_the_reader() {
        for text in [
            "",
            " ",
            "GB/s",
            "nan GB/s",
            "inf GB/s",
            "1e400 GB/s",
            "1e3",
            "é 3",
            "3 é",
            "1e30 GB/s",
            "--",
        ] {
            assert!(parse::<Bandwidth>(text).is_err(), "{text}");
        }
    }
}
