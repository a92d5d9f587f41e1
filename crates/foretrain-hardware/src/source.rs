//! Where a figure comes from.

use std::fmt;

use foretrain_core::EvidenceKind;
use serde::Serialize;

/// The origin of one figure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Source {
    /// Short name in the catalogue, `stas00`; for free text the text itself.
    pub id: String,
    /// Address or explanation.
    pub text: String,
}

impl Source {
    /// Quoted from memory, not checked against a document.
    pub const RECALLED: &'static str = "recalled";
    /// A default that no document supports.
    pub const ASSUMED: &'static str = "assumed";
    /// Computed from other figures of the same entry.
    pub const DERIVED: &'static str = "derived";
    /// What a user's file states without naming a source.
    pub const USER: &'static str = "user";

    /// How strong the support is, for an [`Evidence`](foretrain_core::Evidence) line.
    pub fn evidence_kind(&self) -> EvidenceKind {
        match self.id.as_str() {
            Self::ASSUMED => EvidenceKind::Assumed,
            Self::RECALLED | Self::DERIVED => EvidenceKind::Inferred,
            _ => EvidenceKind::Catalogue,
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.text.is_empty() || self.text == self.id {
            f.write_str(&self.id)
        } else {
            write!(f, "{}: {}", self.id, self.text)
        }
    }
}
