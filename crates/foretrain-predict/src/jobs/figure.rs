//! A figure with what it rests on.

use std::fmt;

/// What a figure rests on, from the strongest to none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The user said it.
    Given,
    /// The recording holds it.
    Measured,
    /// Counted from recorded shapes and sizes.
    Counted,
    /// It follows from the model's architecture.
    Model,
    /// In part recorded, the rest by a rule.
    Inferred,
    /// A model of devices gives it.
    Estimated,
    /// Usual, and nothing at hand speaks for it.
    Assumed,
    /// Not found.
    Missing,
}

impl Basis {
    /// The word in answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Given => "given",
            Self::Measured => "measured",
            Self::Counted => "counted",
            Self::Model => "model",
            Self::Inferred => "inferred",
            Self::Estimated => "estimated",
            Self::Assumed => "assumed",
            Self::Missing => "missing",
        }
    }
}

/// A value, or why there is none.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure<T> {
    /// The value, if it was found.
    pub value: Option<T>,
    /// What it rests on.
    pub basis: Basis,
    /// How it was found, or why it was not.
    pub how: String,
}

impl<T> Figure<T> {
    /// A value and how it was found.
    pub fn new(value: T, basis: Basis, how: impl Into<String>) -> Self {
        Self { value: Some(value), basis, how: how.into() }
    }

    /// No value, and why.
    pub fn missing(why: impl Into<String>) -> Self {
        Self { value: None, basis: Basis::Missing, how: why.into() }
    }

    /// Another value on the same grounds.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Figure<U> {
        Figure { value: self.value.map(change), basis: self.basis, how: self.how }
    }
}

/// Amounts of which some could be counted, weighed by the time that they take.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Tally {
    amount: f64,
    counted: f64,
    uncounted: f64,
}

/// Less of the time than this is not worth a word.
const NEARLY_ALL: f64 = 0.99;
/// From less of the time nothing is concluded.
const LEAST: f64 = 0.5;

impl Tally {
    /// An amount that takes `nanos`.
    pub(super) fn add(&mut self, amount: f64, nanos: f64) {
        self.amount += amount;
        self.counted += nanos;
    }

    /// Work of unknown amount.
    pub(super) fn lack(&mut self, nanos: f64) {
        self.uncounted += nanos;
    }

    /// The sum. What could not be counted goes at the pace of what could, if that is the larger
    /// part.
    pub(super) fn figure(&self, what: impl fmt::Display, unknown: &str) -> Figure<f64> {
        let all = self.counted + self.uncounted;
        if all <= 0.0 {
            return Figure::missing(format!("no {what} in the recording"));
        }
        let share = self.counted / all;
        if share < LEAST {
            return Figure::missing(format!(
                "{unknown} for {:.0} % of the time of {what}",
                100.0 * (1.0 - share)
            ));
        }
        if share >= NEARLY_ALL {
            return Figure::new(self.amount, Basis::Counted, format!("{what}, by recorded shapes"));
        }
        let how = format!(
            "{what}, by recorded shapes for {:.0} % of their time; the rest at the same pace, as {unknown}",
            100.0 * share
        );
        Figure::new(self.amount / share, Basis::Inferred, how)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_smaller_part_without_shapes_goes_at_the_pace_of_the_rest() {
        let mut tally = Tally::default();
        assert_eq!(tally.figure("products", "no shapes").basis, Basis::Missing);
        tally.add(30.0, 3.0);
        assert_eq!(tally.figure("products", "no shapes").value, Some(30.0));
        tally.lack(1.0);
        let most = tally.figure("products", "no shapes");
        assert_eq!((most.value, most.basis), (Some(40.0), Basis::Inferred));
        tally.lack(4.0);
        assert_eq!(tally.figure("products", "no shapes").value, None);
    }
}
