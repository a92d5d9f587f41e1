//! Pieces that several reports share.

use foretrain_core::{Estimate, Evidence, Ledger, Nanos};
use schemars::JsonSchema;
use serde::Serialize;

/// A time in nanoseconds with its 80 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RangeNs {
    /// Central value.
    pub value_ns: i64,
    /// Lower end.
    pub low_ns: i64,
    /// Upper end.
    pub high_ns: i64,
}

impl From<Estimate<Nanos>> for RangeNs {
    fn from(e: Estimate<Nanos>) -> Self {
        Self { value_ns: e.value.nanos(), low_ns: e.low.nanos(), high_ns: e.high.nanos() }
    }
}

/// A number with its 80 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Range {
    /// Central value.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl From<Estimate<f64>> for Range {
    fn from(e: Estimate<f64>) -> Self {
        Self { value: finite(e.value), low: finite(e.low), high: finite(e.high) }
    }
}

/// The number, or the nearest finite one; zero for what is not a number.
pub(super) fn finite(value: f64) -> f64 {
    if value.is_nan() { 0.0 } else { value.clamp(f64::MIN, f64::MAX) }
}

/// What a number rests on.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct EvidenceReport {
    /// `measured`, `calibrated`, `catalogue`, `inferred` or `assumed`, from strong to weak.
    pub kind: String,
    /// What it is about.
    pub what: String,
    /// Where it comes from.
    pub source: String,
    /// Relative standard deviation it brings in (0.05 is 5 %).
    pub relative_spread: f64,
}

impl From<&Evidence> for EvidenceReport {
    fn from(evidence: &Evidence) -> Self {
        Self {
            kind: evidence.kind.as_str().into(),
            what: evidence.what.clone(),
            source: evidence.source.clone(),
            relative_spread: finite(evidence.relative_spread),
        }
    }
}

/// What reading and analysing the traces met.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LedgerReport {
    /// Findings in order of their codes.
    pub findings: Vec<FindingReport>,
    /// How much of what was there could be used.
    pub coverage: Vec<CoverageReport>,
}

/// One kind of finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FindingReport {
    /// Stable name of the kind.
    pub code: String,
    /// `note`, `inferred`, `repaired`, `warning` or `dropped`.
    pub severity: String,
    /// For people.
    pub message: String,
    /// How often it was met.
    pub count: u64,
    /// The first few places.
    pub places: Vec<String>,
}

/// Used of seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CoverageReport {
    /// Of what.
    pub what: String,
    /// How many could be used.
    pub used: u64,
    /// How many there were.
    pub total: u64,
}

impl From<&Ledger> for LedgerReport {
    fn from(ledger: &Ledger) -> Self {
        let findings = ledger.findings().map(|finding| FindingReport {
            code: finding.code.clone(),
            severity: finding.severity.as_str().into(),
            message: finding.message.clone(),
            count: finding.count,
            places: finding.places.clone(),
        });
        let coverage = ledger.coverages().map(|(what, coverage)| CoverageReport {
            what: what.to_owned(),
            used: coverage.used,
            total: coverage.total,
        });
        Self { findings: findings.collect(), coverage: coverage.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_finite() {
        assert_eq!(finite(f64::NAN), 0.0);
        assert_eq!(finite(f64::INFINITY), f64::MAX);
        let range = Range::from(Estimate { value: 1.0, low: f64::NAN, high: f64::INFINITY });
        let text = serde_json::to_string(&range).unwrap();
        assert!(!text.contains("null"), "{text}");
    }
}
