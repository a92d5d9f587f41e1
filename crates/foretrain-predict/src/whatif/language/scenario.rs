//! Changes that are made together.

use std::fmt;
use std::mem::discriminant;

use foretrain_core::{InputError, Result};

use super::change::Change;
use super::split::{at_all, stands_alone};

/// Products of factors beyond these leave the range in which times can be told.
const PRODUCTS: std::ops::RangeInclusive<f64> = 1e-9..=1e9;

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

    /// Refuses factors that multiply to a slip, as each alone would be.
    ///
    /// # Errors
    /// Names what they are of.
    pub(crate) fn check(&self) -> Result<()> {
        let factors = || self.changes.iter().filter_map(Change::factor);
        for (name, _) in factors() {
            let product: f64 = factors().filter(|one| one.0 == name).map(|one| one.1).product();
            if product != 0.0 && !PRODUCTS.contains(&product) {
                return Err(InputError::new(format!(
                    "the factors of `{name}` multiply to {product:e}: expected {:e} to {:e}",
                    PRODUCTS.start(),
                    PRODUCTS.end()
                )));
            }
        }
        Ok(())
    }

    /// The changes that are made: of those that say how something is, and not by how much it
    /// changes, the last of a kind.
    pub(crate) fn made(&self) -> impl Iterator<Item = &Change> {
        let is_last = |i: usize, change: &Change| {
            let of_kind = |later: &Change| discriminant(later) == discriminant(change);
            !(change.is_state() && self.changes[i + 1..].iter().any(of_kind))
        };
        self.changes.iter().enumerate().filter(move |(i, one)| is_last(*i, one)).map(|(_, one)| one)
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
