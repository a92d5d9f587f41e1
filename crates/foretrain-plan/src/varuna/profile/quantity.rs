//! Times and sizes in files, as text with a unit; sizes may be numbers of bytes too.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use foretrain_core::{Bandwidth, Bytes, InputError, Nanos};
use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// Longest time of one entry: what is longer is a slip of units.
const LONGEST: Nanos = Nanos::from_millis(24 * 60 * 60 * 1000);

/// A value of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quantity<T>(pub(super) T);

/// What can stand in a file.
pub(super) trait Written: FromStr<Err = InputError> {
    const EXPECTED: &str;
    /// From a bare number, where that has a meaning.
    fn from_number(number: u64) -> Option<Self>;
    /// What is wrong with a value that was read.
    fn fault(&self) -> Option<String> {
        None
    }
}

impl Written for Nanos {
    const EXPECTED: &str = "a time with its unit, as in \"12.5ms\"";
    fn from_number(number: u64) -> Option<Self> {
        (number == 0).then_some(Self::ZERO)
    }
    fn fault(&self) -> Option<String> {
        (*self > LONGEST).then(|| format!("{self} is more than a day"))
    }
}

impl Written for Bytes {
    const EXPECTED: &str = "a size, as in \"64MiB\", or a number of bytes";
    fn from_number(number: u64) -> Option<Self> {
        // As text: at least one byte, below an exabyte.
        number.to_string().parse().ok()
    }
}

impl Written for Bandwidth {
    const EXPECTED: &str = "a rate with its unit, as in \"12GB/s\"";
    fn from_number(_: u64) -> Option<Self> {
        None
    }
}

impl<'de, T: Written> Deserialize<'de> for Quantity<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any<T>(PhantomData<T>);
        impl<T: Written> Visitor<'_> for Any<T> {
            type Value = Quantity<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(T::EXPECTED)
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                let value: T = text.parse().map_err(|error: InputError| {
                    E::custom(format!("{error}; expected {}", T::EXPECTED))
                })?;
                match value.fault() {
                    Some(fault) => Err(E::custom(fault)),
                    None => Ok(Quantity(value)),
                }
            }
            fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
                let wrong = || E::custom(format!("a bare {number}, expected {}", T::EXPECTED));
                T::from_number(number).map(Quantity).ok_or_else(wrong)
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
                match u64::try_from(number) {
                    Ok(number) => self.visit_u64(number),
                    Err(_) => Err(E::custom(format!("{number}, expected {}", T::EXPECTED))),
                }
            }
        }
        deserializer.deserialize_any(Any(PhantomData))
    }
}
