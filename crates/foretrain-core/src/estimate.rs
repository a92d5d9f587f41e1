//! Numbers that say how sure they are and why.

use serde::{Deserialize, Serialize};

use crate::units::Quantity;

/// Where a number comes from, from strongest to weakest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EvidenceKind {
    /// Read off the user's own trace or log.
    Measured,
    /// From a model whose constants were fitted to measurements.
    Calibrated,
    /// From a public data sheet or another cited figure.
    Catalogue,
    /// Deduced from other data by a rule that is usually right.
    Inferred,
    /// A default that nothing in the input supports.
    Assumed,
}

impl EvidenceKind {
    /// The word for tables and JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Calibrated => "calibrated",
            Self::Catalogue => "catalogue",
            Self::Inferred => "inferred",
            Self::Assumed => "assumed",
        }
    }
}

/// One line of support for a number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// How strong the support is.
    pub kind: EvidenceKind,
    /// What is supported, in the words of the answer ("all-reduce time", "kernel times").
    pub what: String,
    /// From where: a file, a table and its source, or the assumption itself.
    pub source: String,
    /// Relative standard deviation this brings into the answer's part (0.05 = 5 %).
    pub relative_spread: f64,
}

impl Evidence {
    /// A new line of evidence.
    pub fn new(
        kind: EvidenceKind,
        what: impl Into<String>,
        source: impl Into<String>,
        relative_spread: f64,
    ) -> Self {
        Self { kind, what: what.into(), source: source.into(), relative_spread }
    }
}

/// Half-width of the 80 % interval of a normal distribution, in standard deviations.
pub const Z80: f64 = 1.281_551_565_544_6;

/// A value with an 80 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate<T> {
    /// The central value.
    pub value: T,
    /// The lower end of the 80 % interval.
    pub low: T,
    /// The upper end of the 80 % interval.
    pub high: T,
}

impl<T: Quantity> Estimate<T> {
    /// A value with nothing uncertain about it.
    pub fn exact(value: T) -> Self {
        Self { value, low: value, high: value }
    }

    /// A value whose logarithm has standard deviation `relative_spread`: the interval is a
    /// factor either way and never reaches zero.
    pub fn with_relative_spread(value: T, relative_spread: f64) -> Self {
        let factor = (Z80 * relative_spread.max(0.0)).exp();
        let base = value.to_base();
        let (low, high) = (base / factor, base * factor);
        Self { value, low: T::from_base(low.min(high)), high: T::from_base(low.max(high)) }
    }

    /// An interval given by its ends; they are put in order around the value.
    pub fn between(value: T, low: T, high: T) -> Self {
        let (a, b, v) = (low.to_base(), high.to_base(), value.to_base());
        Self { value, low: T::from_base(a.min(b).min(v)), high: T::from_base(a.max(b).max(v)) }
    }

    /// Whether `actual` lies in the interval.
    pub fn covers(&self, actual: T) -> bool {
        let actual = actual.to_base();
        self.low.to_base() <= actual && actual <= self.high.to_base()
    }

    /// Half the interval's width over the value; zero for a zero value.
    pub fn relative_half_width(&self) -> f64 {
        let value = self.value.to_base();
        if value == 0.0 { 0.0 } else { (self.high.to_base() - self.low.to_base()) / (2.0 * value) }
    }

    /// The same estimate in another quantity, by a monotone map of base values.
    pub fn map<U: Quantity>(&self, f: impl Fn(f64) -> f64) -> Estimate<U> {
        let at = |t: T| U::from_base(f(t.to_base()));
        Estimate::between(at(self.value), at(self.low), at(self.high))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Nanos;

    #[test]
    fn intervals_cover_their_value_and_stay_positive() {
        let e = Estimate::with_relative_spread(Nanos::from_millis(10), 0.5);
        assert!(e.covers(e.value) && e.low > Nanos::ZERO && e.high > e.value);
        assert!(!e.covers(Nanos::from_millis(20)));
        assert_eq!(Estimate::exact(3.0).relative_half_width(), 0.0);
    }

    #[test]
    fn mapping_by_a_falling_function_keeps_the_ends_in_order() {
        let time = Estimate::between(2.0, 1.0, 4.0);
        let rate: Estimate<f64> = time.map(|t| 8.0 / t);
        assert_eq!((rate.low, rate.value, rate.high), (2.0, 4.0, 8.0));
    }
}
