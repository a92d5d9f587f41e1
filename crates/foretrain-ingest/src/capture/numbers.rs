//! Numbers of a capture file, within bounds that keep sums of them from overflowing.

use std::fmt;

use foretrain_core::{Bytes, Nanos};
use serde::de::{Deserializer, Error, Unexpected, Visitor};
use serde::{Deserialize, de};

/// Three years: longer no training of ours runs, and sums stay far from overflowing.
const MOST_NANOS: u64 = 100_000_000_000_000_000;
/// An exabyte, which no machine has, so that sums of them stay below what is counted.
const MOST_BYTES: u64 = 1 << 60;

/// Nanoseconds.
pub(super) struct Time(pub(super) Nanos);

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let nanos = deserializer.deserialize_u64(Whole(MOST_NANOS))?;
        Ok(Self(Nanos::from_nanos(nanos.cast_signed())))
    }
}

/// A number of bytes.
#[derive(Clone, Copy, Default)]
pub(super) struct Size(pub(super) Bytes);

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_u64(Whole(MOST_BYTES)).map(|bytes| Self(Bytes::new(bytes)))
    }
}

/// A whole number from 0 to a bound.
struct Whole(u64);

impl Visitor<'_> for Whole {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number from 0 to at most {}", self.0)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<u64, E> {
        if value <= self.0 {
            Ok(value)
        } else {
            Err(E::invalid_value(Unexpected::Unsigned(value), &self))
        }
    }
}

/// A finite number above 0.
pub(super) struct Positive(pub(super) f64);

impl<'de> Deserialize<'de> for Positive {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = f64::deserialize(deserializer)?;
        if value.is_finite() && value > 0.0 {
            return Ok(Self(value));
        }
        Err(de::Error::invalid_value(Unexpected::Float(value), &"a number above 0"))
    }
}
