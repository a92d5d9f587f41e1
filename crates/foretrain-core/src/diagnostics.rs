//! The ledger: what an import repaired, dropped, inferred or could not know.
//!
//! Damaged input is not a failure. Readers take a `&mut Ledger`, record what they met and go
//! on; the ledger is shown once, capped per kind, and stands in the JSON output.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// What happened to the data concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Worth knowing; nothing was lost or guessed.
    Note,
    /// A value was deduced by a rule; it is marked so.
    Inferred,
    /// Damaged data was mended without loss.
    Repaired,
    /// The answer may mislead without this being known.
    Warning,
    /// Data was left out.
    Dropped,
}

impl Severity {
    /// The word for tables.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Inferred => "inferred",
            Self::Repaired => "repaired",
            Self::Warning => "warning",
            Self::Dropped => "dropped",
        }
    }
}

/// One kind of finding, with how often it was met and its first few places.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    /// Stable name of the kind, kebab-case, for scripts ("control-character").
    pub code: String,
    /// What happened to the data.
    pub severity: Severity,
    /// One sentence fragment for people, the same for every occurrence.
    pub message: String,
    /// How often.
    pub count: u64,
    /// The first places, at most [`Ledger::MAX_PLACES`] ("byte 1234 (line 7): preview").
    pub places: Vec<String>,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.severity.as_str(), self.message)?;
        if self.count > 1 {
            write!(f, " ({} times)", self.count)?;
        }
        if let Some(place) = self.places.first() {
            write!(f, ", first at {place}")?;
        }
        Ok(())
    }
}

/// A used-of-seen count that stands beside a total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage {
    /// How many could be used.
    pub used: u64,
    /// How many there were.
    pub total: u64,
}

impl Coverage {
    /// The used share, 1 for an empty total.
    pub fn share(self) -> f64 {
        if self.total == 0 { 1.0 } else { self.used as f64 / self.total as f64 }
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} ({:.1} %)", self.used, self.total, self.share() * 100.0)
    }
}

/// Everything worth telling about one import, in a stable order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    findings: BTreeMap<String, Diagnostic>,
    coverage: BTreeMap<String, Coverage>,
}

impl Ledger {
    /// Places kept per kind; the count goes on.
    pub const MAX_PLACES: usize = 8;

    /// An empty ledger.
    pub fn new() -> Self {
        Self::default()
    }

    /// Records one occurrence without a place.
    pub fn record(&mut self, severity: Severity, code: &str, message: &str) {
        self.record_many(severity, code, message, 1, None);
    }

    /// Records one occurrence with its place; the place is only built while it would be kept.
    pub fn record_at(
        &mut self,
        severity: Severity,
        code: &str,
        message: &str,
        place: impl FnOnce() -> String,
    ) {
        let full = self.findings.get(code).is_some_and(|d| d.places.len() >= Self::MAX_PLACES);
        let place = if full { None } else { Some(place()) };
        self.record_many(severity, code, message, 1, place);
    }

    /// Records `count` occurrences of one kind (none if zero).
    pub fn record_many(
        &mut self,
        severity: Severity,
        code: &str,
        message: &str,
        count: u64,
        place: Option<String>,
    ) {
        if count == 0 {
            return;
        }
        let entry = self.findings.entry(code.to_owned()).or_insert_with(|| Diagnostic {
            code: code.to_owned(),
            severity,
            message: message.to_owned(),
            count: 0,
            places: Vec::new(),
        });
        entry.count += count;
        if let Some(place) = place
            && entry.places.len() < Self::MAX_PLACES
        {
            entry.places.push(place);
        }
    }

    /// Adds to the used-of-seen count of `what` ("launch pairs", "collective bytes").
    pub fn cover(&mut self, what: &str, used: u64, total: u64) {
        let entry = self.coverage.entry(what.to_owned()).or_default();
        entry.used += used;
        entry.total += total;
    }

    /// All findings in order of their codes.
    pub fn findings(&self) -> impl Iterator<Item = &Diagnostic> {
        self.findings.values()
    }

    /// The finding with this code.
    pub fn get(&self, code: &str) -> Option<&Diagnostic> {
        self.findings.get(code)
    }

    /// How often a kind was met.
    pub fn count(&self, code: &str) -> u64 {
        self.findings.get(code).map_or(0, |d| d.count)
    }

    /// All coverages in order of their names.
    pub fn coverages(&self) -> impl Iterator<Item = (&str, Coverage)> {
        self.coverage.iter().map(|(what, coverage)| (what.as_str(), *coverage))
    }

    /// The coverage of `what`.
    pub fn coverage(&self, what: &str) -> Option<Coverage> {
        self.coverage.get(what).copied()
    }

    /// Takes in another ledger, adding counts; places are prefixed with `source` if given.
    pub fn merge(&mut self, other: &Ledger, source: Option<&str>) {
        for finding in other.findings.values() {
            let entry = self.findings.entry(finding.code.clone()).or_insert_with(|| Diagnostic {
                count: 0,
                places: Vec::new(),
                ..finding.clone()
            });
            entry.count += finding.count;
            let room = Self::MAX_PLACES.saturating_sub(entry.places.len());
            entry.places.extend(finding.places.iter().take(room).map(|place| match source {
                Some(source) => format!("{source}: {place}"),
                None => place.clone(),
            }));
        }
        for (what, coverage) in &other.coverage {
            self.cover(what, coverage.used, coverage.total);
        }
    }

    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.findings.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_capped_and_counts_are_not() {
        let mut ledger = Ledger::new();
        for byte in 0..100 {
            ledger.record_at(Severity::Dropped, "bad-event", "event is not JSON", || {
                format!("byte {byte}")
            });
        }
        let finding = ledger.get("bad-event").unwrap();
        assert_eq!((finding.count, finding.places.len()), (100, Ledger::MAX_PLACES));
        assert_eq!(finding.to_string(), "dropped: event is not JSON (100 times), first at byte 0");
    }

    #[test]
    fn merging_adds_counts_and_names_the_source() {
        let mut a = Ledger::new();
        let mut b = Ledger::new();
        b.record_at(Severity::Repaired, "x", "mended", || "line 2".into());
        b.cover("events", 9, 10);
        a.merge(&b, Some("rank0.json"));
        a.merge(&b, None);
        assert_eq!(a.count("x"), 2);
        assert_eq!(a.get("x").unwrap().places[0], "rank0.json: line 2");
        assert_eq!(a.coverage("events").unwrap().to_string(), "18 of 20 (90.0 %)");
    }
}
