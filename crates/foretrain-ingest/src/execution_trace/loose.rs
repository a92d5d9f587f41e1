//! A JSON value read without insisting on its type: exporters write ids as numbers or strings and
//! dependencies as one id or a list.

use std::borrow::Cow;
use std::fmt;

use foretrain_core::Nanos;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A scalar, or the integers of a list.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Loose<'a> {
    /// `null`, an object, or nothing.
    None,
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i128),
    /// Any other number.
    Float(f64),
    /// Text.
    Str(Cow<'a, str>),
    /// The integers of a list; other items are left out.
    List(Vec<i128>),
}

impl<'a> Loose<'a> {
    /// As an integer; numeric text counts.
    pub(crate) fn int(&self) -> Option<i128> {
        match self {
            Self::Int(value) => Some(*value),
            Self::Float(value) if value.fract() == 0.0 && value.abs() < 9e15 => {
                Some(*value as i128)
            }
            Self::Str(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    /// As an id; negative values are none.
    pub(crate) fn id(&self) -> Option<u64> {
        self.int().and_then(|value| u64::try_from(value).ok())
    }

    /// As a finite number.
    pub(crate) fn number(&self) -> Option<f64> {
        match self {
            Self::Int(value) => Some(*value as f64),
            Self::Float(value) => Some(*value),
            Self::Str(text) => text.trim().parse().ok(),
            _ => None,
        }
        .filter(|value: &f64| value.is_finite())
    }

    /// Microseconds as a time, exact where the number is: epoch times in whole microseconds need
    /// more digits in nanoseconds than a double has.
    pub(crate) fn micros(&self) -> Option<Nanos> {
        if let Some(whole) = self.int() {
            return i64::try_from(whole).ok().map(Nanos::from_micros);
        }
        let micros = self.number()?;
        let whole = Nanos::from_micros(micros.trunc() as i64);
        Some(whole + Nanos::from_micros_f64(micros.fract()))
    }

    /// As a truth value; 0 and 1 count.
    pub(crate) fn truth(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            Self::Int(value) => Some(*value != 0),
            Self::Str(text) => match text.to_ascii_lowercase().as_str() {
                "true" => Some(true),
                "false" => Some(false),
                _ => None,
            },
            _ => None,
        }
    }

    /// As non-empty text.
    pub(crate) fn text(self) -> Option<Cow<'a, str>> {
        match self {
            Self::Str(text) if !text.is_empty() => Some(text),
            Self::Int(value) => Some(value.to_string().into()),
            _ => None,
        }
    }

    /// As a list of ids; one id is a list of one.
    pub(crate) fn ids(self) -> Vec<u64> {
        match self {
            Self::List(items) => {
                items.into_iter().filter_map(|item| u64::try_from(item).ok()).collect()
            }
            other => other.id().into_iter().collect(),
        }
    }
}

impl<'de> Deserialize<'de> for Loose<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LooseVisitor)
    }
}

struct LooseVisitor;

impl<'de> Visitor<'de> for LooseVisitor {
    type Value = Loose<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }
    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Loose::Bool(value))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Loose::Int(value.into()))
    }
    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Loose::Int(value.into()))
    }
    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Loose::Float(value))
    }
    fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
        Ok(Loose::Str(value.to_owned().into()))
    }
    fn visit_borrowed_str<E>(self, value: &'de str) -> Result<Self::Value, E> {
        Ok(Loose::Str(value.into()))
    }
    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Loose::None)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element::<Loose<'de>>()? {
            match item {
                Loose::Bool(value) => items.push(value.into()),
                other => items.extend(other.int()),
            }
        }
        Ok(Loose::List(items))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Loose::None)
    }
}

/// A key or name with lower-case letters and digits only, so that `ctrl_deps`, `ctrlDeps` and
/// `CtrlDeps` are one.
pub(crate) fn plain_key(key: &str) -> String {
    key.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_taken_as_meant() {
        let read = |text| serde_json::from_str::<Loose<'_>>(text).unwrap();
        assert_eq!(read("18446744073709551615").id(), Some(u64::MAX));
        assert_eq!(read("-1").id(), None);
        assert_eq!(read("\"7\"").id(), Some(7));
        assert_eq!(read("[3, \"4\", null, 5.0]").ids(), [3, 4, 5]);
        assert_eq!(read("6").ids(), [6]);
        assert_eq!(read("{\"a\": [1]}"), Loose::None);
        assert_eq!(read("1e400".trim_end_matches("e400")).number(), Some(1.0));
        assert_eq!(
            read("1694128201426693").micros(),
            Some(Nanos::from_nanos(1_694_128_201_426_693_000))
        );
        assert_eq!(read("\"2.5\"").micros(), Some(Nanos::from_nanos(2_500)));
        assert_eq!(plain_key("ctrlDeps"), plain_key("ctrl_deps"));
    }
}
