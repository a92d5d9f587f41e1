//! From measured times to the primitives of a machine.

use std::collections::BTreeMap;

use foretrain_core::stats::{median, robust_std};
use foretrain_core::{Bytes, InputError, Result};

use super::codec::Scheme;
use super::linear::{FARTHEST, LinearCost, LinearFit};
use super::set::{CodecCost, Operation, Primitives};

/// Measured times by operation and size.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    times: BTreeMap<(Operation, Bytes), Vec<f64>>,
    count: usize,
}

/// What was measured of one size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Of the buffer.
    pub bytes: Bytes,
    /// Median time in ns.
    pub median_ns: f64,
    /// Robust standard deviation of the times over their median; 0 of a single time.
    pub spread: f64,
    /// Measured times.
    pub repeats: usize,
}

/// A primitive's line beside what it was fitted to.
#[derive(Clone, Debug, PartialEq)]
pub struct FittedLine {
    /// Which.
    pub operation: Operation,
    /// The line through the medians.
    pub fit: LinearFit,
    /// By size.
    pub points: Vec<Point>,
}

/// A primitive that was measured in vain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfitted {
    /// Which.
    pub operation: Operation,
    /// For people.
    pub why: String,
}

/// The primitives of a machine and how they came about.
#[derive(Clone, Debug, PartialEq)]
pub struct FittedPrimitives {
    /// All of them.
    pub primitives: Primitives,
    /// Those that were measured.
    pub lines: Vec<FittedLine>,
    /// Those that nobody measured, for which [`Primitives::assumed`] stands.
    pub assumed: Vec<Operation>,
    /// Those that were measured in vain.
    pub unfitted: Vec<Unfitted>,
}

impl Measured {
    /// Times that are kept at most, so that no table fills the memory.
    pub const MOST_TIMES: usize = 1 << 20;

    /// Takes in one time in ns; `false` if it is none or there is no more room.
    pub fn push(&mut self, operation: Operation, bytes: Bytes, ns: f64) -> bool {
        if !(ns > 0.0 && ns <= FARTHEST) || self.count >= Self::MOST_TIMES {
            return false;
        }
        self.times.entry((operation, bytes)).or_default().push(ns);
        self.count += 1;
        true
    }

    /// Whether no more times are taken in.
    pub const fn is_full(&self) -> bool {
        self.count >= Self::MOST_TIMES
    }

    /// Takes in the times of another set, as far as there is room.
    pub fn merge(&mut self, other: &Self) {
        for (operation, bytes, ns) in other.times() {
            self.push(operation, bytes, ns);
        }
    }

    /// Every time in ns, by operation and size.
    pub fn times(&self) -> impl Iterator<Item = (Operation, Bytes, f64)> {
        let each = |(&(operation, bytes), times)| {
            let times: &Vec<f64> = times;
            times.iter().map(move |ns| (operation, bytes, *ns))
        };
        self.times.iter().flat_map(each)
    }

    /// The sizes of an operation, smallest first.
    pub fn points(&self, operation: Operation) -> Vec<Point> {
        let range = (operation, Bytes::new(0))..=(operation, Bytes::new(u64::MAX));
        let point = |((_, bytes), times): (&(Operation, Bytes), &Vec<f64>)| {
            let median_ns = median(times)?;
            let spread = robust_std(times).map_or(0.0, |std| std / median_ns);
            Some(Point { bytes: *bytes, median_ns, spread, repeats: times.len() })
        };
        self.times.range(range).filter_map(point).collect()
    }

    /// Fits a line to each operation. What was not measured is taken as assumed, except for
    /// compression: a scheme without both its lines is left out.
    ///
    /// # Errors
    /// If there is no line at all.
    pub fn fit(&self, source: &str) -> Result<FittedPrimitives> {
        let (mut lines, mut unfitted) = (BTreeMap::new(), Vec::new());
        for operation in Operation::all() {
            let points = self.points(operation);
            match line(&points) {
                Some(fit) => {
                    lines.insert(operation, FittedLine { operation, fit, points });
                }
                None if points.is_empty() => {}
                None => {
                    let why = match points.len() {
                        1 => "a line takes two sizes at least, and there is one",
                        _ => "no line fits its times",
                    };
                    unfitted.push(Unfitted { operation, why: why.into() });
                }
            }
        }
        for (one, other) in Scheme::ALL.into_iter().flat_map(halves) {
            if lines.contains_key(&one) && !lines.contains_key(&other) {
                lines.remove(&one);
                let why = format!(
                    "there is no line of {}, without which it is of no use",
                    other.describe()
                );
                unfitted.push(Unfitted { operation: one, why });
            }
        }
        if lines.is_empty() {
            let error = InputError::new("no primitive was measured at two sizes or more");
            return Err(error.hint("measure at least two sizes of send, receive, aggregate or copy, or of encode and decode of a scheme"));
        }
        let (primitives, assumed) = assemble(&lines, source);
        Ok(FittedPrimitives { primitives, lines: lines.into_values().collect(), assumed, unfitted })
    }
}

/// Both directions of a scheme, each with the one that it needs.
fn halves(scheme: Scheme) -> [(Operation, Operation); 2] {
    let (encode, decode) = (Operation::Encode(scheme), Operation::Decode(scheme));
    [(encode, decode), (decode, encode)]
}

/// The line through the medians; its spread holds that of the repeats too.
fn line(points: &[Point]) -> Option<LinearFit> {
    let medians: Vec<_> = points.iter().map(|p| (p.bytes.as_f64(), p.median_ns)).collect();
    let mut fit = LinearCost::fit(&medians)?;
    let repeats: Vec<f64> = points.iter().map(|point| point.spread).collect();
    let repeats = median(&repeats).unwrap_or(0.0);
    fit.cost.relative_spread = fit.cost.relative_spread.hypot(repeats).min(FARTHEST);
    Some(fit)
}

fn assemble(lines: &BTreeMap<Operation, FittedLine>, source: &str) -> (Primitives, Vec<Operation>) {
    let cost = |operation| lines.get(&operation).map(|line| line.fit.cost);
    let mut assumed = Vec::new();
    let mut or_assumed = |operation, otherwise| {
        cost(operation).unwrap_or_else(|| {
            assumed.push(operation);
            otherwise
        })
    };
    let usual = Primitives::assumed();
    let codec = Scheme::ALL.into_iter().filter_map(|scheme| {
        let encode = cost(Operation::Encode(scheme))?;
        let decode = cost(Operation::Decode(scheme))?;
        Some((scheme, CodecCost { encode, decode }))
    });
    let mut primitives = Primitives {
        source: source.to_owned(),
        send: or_assumed(Operation::Send, usual.send),
        receive: or_assumed(Operation::Receive, usual.receive),
        one_way: cost(Operation::OneWay),
        aggregate: or_assumed(Operation::Aggregate, usual.aggregate),
        copy: or_assumed(Operation::Copy, usual.copy),
        codec: codec.collect(),
    };
    if !assumed.is_empty() {
        let words: Vec<_> = assumed.iter().map(|operation| operation.describe()).collect();
        primitives.source.push_str(&format!("; assumed: {}", words.join(", ")));
    }
    (primitives, assumed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(operations: &[Operation], sizes: &[u64]) -> Measured {
        let mut all = Measured::default();
        for &operation in operations {
            for &size in sizes {
                let ns = 1_000.0 + 0.5 * size as f64;
                for factor in [0.9, 1.0, 1.1, 7.0] {
                    assert!(all.push(operation, Bytes::new(size), ns * factor));
                }
                all.push(operation, Bytes::new(size), ns);
            }
        }
        all
    }

    #[test]
    fn medians_make_the_line_and_the_rest_is_assumed() {
        let fitted = measured(&[Operation::Send], &[1_000, 10_000, 100_000]).fit("a test").unwrap();
        let send = fitted.primitives.send;
        assert!((send.offset_ns - 1_000.0).abs() < 1e-6, "{send:?}");
        assert!((send.ns_per_byte - 0.5).abs() < 1e-9);
        assert!(send.relative_spread > 0.05, "repeats scatter: {send:?}");
        assert_eq!(fitted.lines[0].points[0].repeats, 5);
        assert_eq!(fitted.assumed, [Operation::Receive, Operation::Aggregate, Operation::Copy]);
        assert_eq!(fitted.primitives.copy, Primitives::assumed().copy);
        assert_eq!(fitted.primitives.source, "a test; assumed: receive, aggregate, copy");
        assert!(fitted.primitives.codec.is_empty() && fitted.primitives.one_way.is_none());
    }

    #[test]
    fn half_a_scheme_and_a_single_size_are_said() {
        let (encode, decode) = (Operation::Encode(Scheme::TopK), Operation::Decode(Scheme::TopK));
        let mut both = measured(&[Operation::Copy, encode], &[100, 200]);
        both.merge(&measured(&[decode], &[100]));
        let fitted = both.fit("a test").unwrap();
        let left_out: Vec<_> = fitted.unfitted.iter().map(|one| one.operation).collect();
        assert_eq!(left_out, [decode, encode]);
        assert!(fitted.primitives.codec.is_empty());
        both.merge(&measured(&[decode], &[200]));
        assert!(both.fit("a test").unwrap().primitives.codec(Scheme::TopK).is_ok());
        let error = measured(&[Operation::Copy], &[100]).fit("a test").unwrap_err();
        assert!(error.message().contains("two sizes"), "{error}");
    }

    #[test]
    fn nonsense_is_not_taken_in() {
        let mut all = Measured::default();
        for ns in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(!all.push(Operation::Copy, Bytes::new(1), ns));
        }
        assert_eq!(all, Measured::default());
    }
}
