//! What to do about entries that are missing, and what was done.

use std::collections::BTreeMap;
use std::str::FromStr;

use foretrain_core::{InputError, Result};

/// What to do where an entry is missing that neither a table nor a line of the network gives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Gaps {
    /// Say which.
    #[default]
    Refuse,
    /// Draw a line between the next smaller and the next larger that were measured.
    Interpolate,
    /// All-reduces as Varuna fills them: of the next smaller power of two, else of two GPUs times the
    /// logarithm of the ring. All else as in [`Gaps::Refuse`].
    Varuna,
}

impl Gaps {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Refuse, Self::Interpolate, Self::Varuna];

    /// Its name, as it is written and read.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Refuse => "refuse",
            Self::Interpolate => "interpolate",
            Self::Varuna => "varuna",
        }
    }
}

impl FromStr for Gaps {
    type Err = InputError;

    fn from_str(text: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|gaps| gaps.as_str() == text.trim());
        found.ok_or_else(|| {
            InputError::new(format!("unknown way {text:?} to fill gaps"))
                .hint("write refuse, interpolate or varuna")
        })
    }
}

/// What was not read off a table, in the order in which it was first needed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filled {
    /// Each by its kind, with the first example.
    pub notes: BTreeMap<&'static str, String>,
}

impl Filled {
    pub(super) fn note(&mut self, kind: &'static str, what: impl FnOnce() -> String) {
        self.notes.entry(kind).or_insert_with(what);
    }

    /// Takes in what else was filled.
    pub fn merge(&mut self, other: &Self) {
        for (kind, what) in &other.notes {
            self.note(kind, || what.clone());
        }
    }
}
