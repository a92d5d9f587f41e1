//! Published parameter counts: exact, or rounded as "7B".

use foretrain_core::{InputError, Result};
use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// A count that a description must add up to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Published {
    Exact(u64),
    /// Rounded to a multiple of `step`.
    Rounded {
        value: f64,
        step: f64,
    },
}

impl Published {
    /// # Errors
    /// If the count is another.
    pub(crate) fn check(self, count: u64) -> Result<()> {
        let (fits, published) = match self {
            Self::Exact(exact) => (count == exact, exact.to_string()),
            Self::Rounded { value, step } => {
                ((count as f64 - value).abs() <= 0.5 * step, format!("{value:.0} (rounded)"))
            }
        };
        if fits {
            return Ok(());
        }
        let message = format!("the description has {count} parameters, not {published}");
        Err(InputError::new(message)
            .at("parameters")
            .hint("correct a dimension, or leave the key `parameters` out"))
    }
}

impl<'de> Deserialize<'de> for Published {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Count;
        impl Visitor<'_> for Count {
            type Value = Published;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a count of parameters such as 6738415616 or \"7B\"")
            }
            fn visit_i64<E: Error>(self, count: i64) -> Result<Published, E> {
                let count = u64::try_from(count).ok().filter(|count| *count > 0);
                count.map(Published::Exact).ok_or_else(|| E::custom("a count is above zero"))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Published, E> {
                rounded(text).ok_or_else(|| {
                    E::custom(format!(
                        "expected a count such as \"7B\" or \"124M\", found {text:?}"
                    ))
                })
            }
        }
        deserializer.deserialize_any(Count)
    }
}

fn rounded(text: &str) -> Option<Published> {
    let units = [("K", 1e3), ("M", 1e6), ("B", 1e9), ("T", 1e12)];
    let (digits, unit) =
        units.iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit)))?;
    let is_number = digits.len() <= 12 && digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let number: f64 = digits.parse().ok().filter(|number| is_number && *number > 0.0)?;
    let places = digits.split_once('.').map_or(0, |(_, places)| places.len());
    Some(Published::Rounded { value: number * unit, step: unit * 0.1_f64.powi(places as i32) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_is_as_fine_as_it_is_written() {
        let check = |text, count| rounded(text).unwrap().check(count).is_ok();
        assert!(check("7B", 6_738_415_616) && !check("7B", 7_600_000_000));
        assert!(check("7.6B", 7_615_616_512) && !check("7.7B", 7_615_616_512));
        assert!(check("124M", 124_439_808));
        for wrong in ["B", "7", "-7B", "1e99B", "NaNB", "infB", ""] {
            assert_eq!(rounded(wrong), None, "{wrong}");
        }
    }
}
