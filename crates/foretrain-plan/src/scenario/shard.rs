//! Which part of a study a process takes.

use std::fmt;
use std::str::FromStr;

use foretrain_core::{InputError, Result};

/// The i-th of n parts, counted from 1: every n-th scenario, so that parts take about as long as
/// each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    index: u64,
    of: u64,
}

impl Shard {
    /// All of it.
    pub const WHOLE: Self = Self { index: 1, of: 1 };

    /// Whether the scenario at this position (from 0) belongs to it.
    pub fn takes(&self, position: usize) -> bool {
        position as u64 % self.of == self.index - 1
    }
}

impl FromStr for Shard {
    type Err = InputError;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = |message: String| {
            Err(InputError::new(message)
                .hint("write it as 3/8: the third of eight; a Slurm array of eight is --array=1-8"))
        };
        let parts = text.split_once('/');
        let number = |text: &str| text.trim().parse::<u64>().ok();
        let Some((Some(index), Some(of))) = parts.map(|(i, n)| (number(i), number(n))) else {
            return wrong(format!("\"{text}\" is no part of a whole"));
        };
        if index == 0 || index > of {
            return wrong(format!("part {index} of {of} does not exist: parts count from 1"));
        }
        Ok(Self { index, of })
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_everything_once() {
        for of in 1..=5 {
            for position in 0..20 {
                let takers = (1..=of).filter(|index| {
                    format!("{index}/{of}").parse::<Shard>().unwrap().takes(position)
                });
                assert_eq!(takers.count(), 1);
            }
        }
        assert!((0..9).all(|position| Shard::WHOLE.takes(position)));
        for wrong in ["", "1", "0/8", "9/8", "1/0", "-1/2", "a/b", "1/2/3"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong:?}");
        }
    }
}
