//! Changes that are made together.

use std::fmt;

use foretrain_core::{InputError, Result};

use super::change::Change;
use super::split::{at_all, stands_alone};

/// Changes that are made together, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scenario {
    /// What somebody calls it.
    pub name: Option<String>,
    /// The changes; none is the job as it is.
    pub changes: Vec<Change>,
}

impl Scenario {
    /// Reads `A + B + C`.
    ///
    /// # Errors
    /// If a part is not a change.
    pub fn parse(text: &str) -> Result<Self> {
        let parts = at_all(text, |at, c| c == '+' && stands_alone(text, at));
        let changes = parts.into_iter().map(Change::parse).collect::<Result<_>>()?;
        Ok(Self { name: None, changes })
    }

    /// The name, or the changes.
    pub fn label(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.to_string())
    }

    /// These changes and then those of `other`.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let changes = self.changes.iter().chain(&other.changes).cloned().collect();
        Self { name: None, changes }
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.changes.is_empty() {
            return f.write_str("as it is");
        }
        for (i, change) in self.changes.iter().enumerate() {
            write!(f, "{}{change}", if i > 0 { " + " } else { "" })?;
        }
        Ok(())
    }
}

impl std::str::FromStr for Scenario {
    type Err = InputError;
    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text)
    }
}
