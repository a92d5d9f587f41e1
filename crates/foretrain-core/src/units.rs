//! Quantities. Time is an integer count of nanoseconds, sizes are integer bytes; rates are
//! floating point because they only ever enter cost formulas.
//!
//! No type here converts from a bare number without naming its unit.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub, SubAssign};

use serde::{Deserialize, Serialize};

/// A physical quantity that can take part in an [`Estimate`](crate::Estimate).
pub trait Quantity: Copy {
    /// The value in the quantity's base unit (ns, byte, byte/s, FLOP, FLOP/s).
    fn to_base(self) -> f64;
    /// The quantity nearest to `value` base units; non-finite input gives zero.
    fn from_base(value: f64) -> Self;
}

impl Quantity for f64 {
    fn to_base(self) -> f64 {
        self
    }
    fn from_base(value: f64) -> Self {
        value
    }
}

/// A time point or a duration in integer nanoseconds.
///
/// Time points count from an origin that the holder states (a trace's base, a step's start).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Nanos(i64);

impl Nanos {
    /// Zero time.
    pub const ZERO: Nanos = Nanos(0);
    /// The largest representable time.
    pub const MAX: Nanos = Nanos(i64::MAX);
    /// The smallest representable time.
    pub const MIN: Nanos = Nanos(i64::MIN);

    /// From nanoseconds.
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }
    /// From microseconds; saturates.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros.saturating_mul(1_000))
    }
    /// From milliseconds; saturates.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }
    /// From seconds, rounded to the nearest nanosecond; non-finite input gives zero.
    pub fn from_secs_f64(secs: f64) -> Self {
        Self::from_nanos_f64(secs * 1e9)
    }
    /// From fractional microseconds, rounded to the nearest nanosecond.
    pub fn from_micros_f64(micros: f64) -> Self {
        Self::from_nanos_f64(micros * 1e3)
    }
    /// From fractional nanoseconds, rounded; saturates, and non-finite input gives zero.
    pub fn from_nanos_f64(nanos: f64) -> Self {
        if nanos.is_finite() { Self(nanos.round() as i64) } else { Self(0) }
    }
    /// The count of nanoseconds.
    pub const fn nanos(self) -> i64 {
        self.0
    }
    /// In microseconds.
    pub fn micros_f64(self) -> f64 {
        self.0 as f64 / 1e3
    }
    /// In milliseconds.
    pub fn millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
    /// In seconds.
    pub fn secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// This time times `factor`, rounded to the nearest nanosecond.
    pub fn scale(self, factor: f64) -> Self {
        Self::from_nanos_f64(self.0 as f64 * factor)
    }
    /// Addition that stops at the ends of the range.
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
    /// Subtraction that stops at the ends of the range.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
    /// The later (larger) of two.
    pub fn max(self, other: Self) -> Self {
        Ord::max(self, other)
    }
    /// The earlier (smaller) of two.
    pub fn min(self, other: Self) -> Self {
        Ord::min(self, other)
    }
    /// Zero if negative.
    pub fn clamp_positive(self) -> Self {
        Self(self.0.max(0))
    }
}

impl Add for Nanos {
    type Output = Nanos;
    fn add(self, other: Self) -> Self {
        self.saturating_add(other)
    }
}
impl Sub for Nanos {
    type Output = Nanos;
    fn sub(self, other: Self) -> Self {
        self.saturating_sub(other)
    }
}
impl Neg for Nanos {
    type Output = Nanos;
    fn neg(self) -> Self {
        Self(self.0.saturating_neg())
    }
}
impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}
impl SubAssign for Nanos {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}
impl Sum for Nanos {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}
impl Quantity for Nanos {
    fn to_base(self) -> f64 {
        self.0 as f64
    }
    fn from_base(value: f64) -> Self {
        Self::from_nanos_f64(value)
    }
}
impl fmt::Display for Nanos {
    /// Three significant digits in the unit that keeps the number between 1 and 1000.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, unit) = match self.0.unsigned_abs() {
            0..1_000 => return f.pad(&format!("{} ns", self.0)),
            1_000..1_000_000 => (self.micros_f64(), "us"),
            1_000_000..1_000_000_000 => (self.millis_f64(), "ms"),
            _ => (self.secs_f64(), "s"),
        };
        f.pad(&format!("{} {unit}", significant(value, 4)))
    }
}

/// A size in bytes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Bytes(u64);

impl Bytes {
    /// No bytes.
    pub const ZERO: Bytes = Bytes(0);
    /// From bytes.
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }
    /// From binary kilobytes (1024 bytes); saturates.
    pub const fn from_kib(kib: u64) -> Self {
        Self(kib.saturating_mul(1 << 10))
    }
    /// From binary megabytes; saturates.
    pub const fn from_mib(mib: u64) -> Self {
        Self(mib.saturating_mul(1 << 20))
    }
    /// From binary gigabytes; saturates.
    pub const fn from_gib(gib: u64) -> Self {
        Self(gib.saturating_mul(1 << 30))
    }
    /// From a fractional byte count, rounded; negative or non-finite input gives zero.
    pub fn from_f64(bytes: f64) -> Self {
        if bytes.is_finite() { Self(bytes.round().max(0.0) as u64) } else { Self(0) }
    }
    /// The count of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }
    /// The count of bytes as a float, for cost formulas.
    pub fn as_f64(self) -> f64 {
        self.0 as f64
    }
}
impl Add for Bytes {
    type Output = Bytes;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}
impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}
impl Sub for Bytes {
    type Output = Bytes;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}
impl Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}
impl Div<Bandwidth> for Bytes {
    type Output = Nanos;
    /// The time to move this many bytes; a rate of zero gives [`Nanos::MAX`].
    fn div(self, rate: Bandwidth) -> Nanos {
        if self.0 == 0 {
            Nanos::ZERO
        } else if rate.0 > 0.0 {
            Nanos::from_nanos_f64(self.as_f64() / rate.0 * 1e9)
        } else {
            Nanos::MAX
        }
    }
}
impl Quantity for Bytes {
    fn to_base(self) -> f64 {
        self.as_f64()
    }
    fn from_base(value: f64) -> Self {
        Self::from_f64(value)
    }
}
impl fmt::Display for Bytes {
    /// Binary units, as the field's tools print message and memory sizes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        if self.0 < 1024 {
            return f.pad(&format!("{} B", self.0));
        }
        let mut value = self.as_f64() / 1024.0;
        let mut unit = 0;
        while value >= 1024.0 && unit + 1 < UNITS.len() {
            value /= 1024.0;
            unit += 1;
        }
        f.pad(&format!("{} {}", significant(value, 4), UNITS[unit]))
    }
}

macro_rules! float_quantity {
    ($(#[$doc:meta])* $name:ident, $unit:literal, $step:expr, $prefixes:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(f64);
        impl $name {
            /// Zero.
            pub const ZERO: Self = Self(0.0);
            /// The value in base units.
            pub const fn get(self) -> f64 {
                self.0
            }
            /// The lesser of two.
            pub fn min(self, other: Self) -> Self {
                Self(self.0.min(other.0))
            }
        }
        impl Mul<f64> for $name {
            type Output = Self;
            fn mul(self, factor: f64) -> Self {
                Self(self.0 * factor)
            }
        }
        impl Div<f64> for $name {
            type Output = Self;
            fn div(self, divisor: f64) -> Self {
                Self(self.0 / divisor)
            }
        }
        impl Add for $name {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0 + other.0)
            }
        }
        impl Quantity for $name {
            fn to_base(self) -> f64 {
                self.0
            }
            fn from_base(value: f64) -> Self {
                Self(if value.is_finite() { value } else { 0.0 })
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let prefixes: [&str; 6] = $prefixes;
                let mut value = self.0;
                let mut index = 0;
                while value.abs() >= $step && index + 1 < prefixes.len() {
                    value /= $step;
                    index += 1;
                }
                f.pad(&format!("{} {}{}", significant(value, 4), prefixes[index], $unit))
            }
        }
    };
}

float_quantity!(
    /// A transfer rate in bytes per second (decimal prefixes, as links are sold).
    Bandwidth, "B/s", 1000.0, ["", "k", "M", "G", "T", "P"]
);
float_quantity!(
    /// An amount of floating-point work. One multiply-add counts as two.
    Flops, "FLOP", 1000.0, ["", "k", "M", "G", "T", "P"]
);
float_quantity!(
    /// A floating-point rate in FLOP per second, dense unless said otherwise.
    FlopRate, "FLOP/s", 1000.0, ["", "k", "M", "G", "T", "P"]
);

impl Bandwidth {
    /// From bytes per second.
    pub const fn from_bytes_per_sec(rate: f64) -> Self {
        Self(rate)
    }
    /// From decimal gigabytes per second (1e9 B/s).
    pub const fn from_gb_per_sec(rate: f64) -> Self {
        Self(rate * 1e9)
    }
    /// From decimal gigabits per second (1e9 bit/s).
    pub const fn from_gbit_per_sec(rate: f64) -> Self {
        Self(rate * 1e9 / 8.0)
    }
    /// In decimal gigabytes per second.
    pub fn gb_per_sec(self) -> f64 {
        self.0 / 1e9
    }
    /// The rate at which `bytes` were moved in `time`; none when no time passed.
    pub fn of(bytes: Bytes, time: Nanos) -> Option<Self> {
        (time > Nanos::ZERO).then(|| Self(bytes.as_f64() / time.secs_f64()))
    }
}
impl Flops {
    /// From a plain count of floating-point operations.
    pub const fn new(flops: f64) -> Self {
        Self(flops)
    }
}
impl FlopRate {
    /// From FLOP per second.
    pub const fn from_flops_per_sec(rate: f64) -> Self {
        Self(rate)
    }
    /// From TFLOP/s.
    pub const fn from_tflops(rate: f64) -> Self {
        Self(rate * 1e12)
    }
    /// In TFLOP/s.
    pub fn tflops(self) -> f64 {
        self.0 / 1e12
    }
}

/// `value` with `digits` significant digits, and without an exponent from a millionth up to 10^15.
pub fn significant(value: f64, digits: usize) -> String {
    if value == 0.0 || !value.is_finite() {
        return "0".into();
    }
    if !(1e-6..1e15).contains(&value.abs()) {
        return format!("{value:.*e}", digits.saturating_sub(1));
    }
    let magnitude = value.abs().log10().floor() as i32;
    let decimals = (digits as i32 - 1 - magnitude).clamp(0, 9) as usize;
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_converts_exactly() {
        assert_eq!(Nanos::from_micros(3).nanos(), 3_000);
        assert_eq!(Nanos::from_secs_f64(1.5).nanos(), 1_500_000_000);
        assert_eq!(Nanos::from_secs_f64(f64::NAN), Nanos::ZERO);
        assert_eq!(Nanos::MAX + Nanos::from_nanos(1), Nanos::MAX);
        assert_eq!(Nanos::from_nanos(10).scale(0.25).nanos(), 3);
    }

    #[test]
    fn time_prints_in_a_readable_unit() {
        let shown = |n: i64| Nanos::from_nanos(n).to_string();
        assert_eq!(shown(999), "999 ns");
        assert_eq!(shown(1_500), "1.500 us");
        assert_eq!(shown(603_240_000), "603.2 ms");
        assert_eq!(shown(-2_000_000_000), "-2.000 s");
    }

    #[test]
    fn digits_are_significant_at_any_size() {
        let shown = |value| significant(value, 4);
        assert_eq!([shown(0.0), shown(12.0), shown(-0.00125)], ["0", "12.00", "-0.001250"]);
        assert_eq!([shown(1e-8), shown(1e-6)], ["1.000e-8", "0.000001000"]);
        assert_eq!([shown(123_456.0), shown(-1e300)], ["123456", "-1.000e300"]);
    }

    #[test]
    fn sizes_and_rates_print_and_divide() {
        assert_eq!(Bytes::from_mib(64).to_string(), "64.00 MiB");
        assert_eq!(Bandwidth::from_gbit_per_sec(200.0).to_string(), "25.00 GB/s");
        let time = Bytes::new(128_000_000) / Bandwidth::from_gb_per_sec(25.0);
        assert_eq!(time, Nanos::from_micros(5_120));
        assert_eq!(Bytes::new(1) / Bandwidth::ZERO, Nanos::MAX);
        assert_eq!(Bandwidth::of(Bytes::new(1), Nanos::ZERO), None);
    }
}
