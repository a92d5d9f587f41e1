//! What a pass can be told: names, kinds, defaults, and the values that were given.

use std::collections::BTreeMap;

use foretrain_core::{Bytes, InputError, Nanos, Result, suggest};

/// What a parameter holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A size: `25MiB`.
    Size,
    /// A time: `5ms`.
    Time,
    /// A whole number of at least 0.
    Count,
    /// A number of at least 0.
    Number,
    /// `true` or `false`.
    Flag,
    /// One of some words.
    Word(&'static [&'static str]),
}

impl Kind {
    /// The word for tables.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Size => "size",
            Self::Time => "time",
            Self::Count => "count",
            Self::Number => "number",
            Self::Flag => "flag",
            Self::Word(_) => "word",
        }
    }
}

/// One parameter of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// Its value where none is given, as text; `None` if it may stay unset.
    pub default: Option<&'static str>,
    /// What it means, one sentence.
    pub about: &'static str,
}

impl Parameter {
    /// A parameter with a default.
    pub const fn new(
        name: &'static str,
        kind: Kind,
        default: &'static str,
        about: &'static str,
    ) -> Self {
        Self { name, kind, default: Some(default), about }
    }
    /// A parameter that may stay unset.
    pub const fn optional(name: &'static str, kind: Kind, about: &'static str) -> Self {
        Self { name, kind, default: None, about }
    }
}

/// A value of some parameter.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Size(Bytes),
    Time(Nanos),
    Count(u64),
    Number(f64),
    Flag(bool),
    Word(String),
}

/// The values of a pass's parameters: those given, defaults for the rest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values {
    values: BTreeMap<&'static str, Value>,
}

impl Values {
    /// Reads `given` (name, or position as `""`, and text) by the list of parameters.
    ///
    /// # Errors
    /// If a name is unknown or given twice, or a text is not of its parameter's kind.
    pub fn read(parameters: &[Parameter], given: &[(String, String)]) -> Result<Self> {
        let mut values = BTreeMap::new();
        for parameter in parameters {
            if let Some(default) = parameter.default {
                values.insert(parameter.name, parse(parameter, default)?);
            }
        }
        let mut seen: Vec<&str> = Vec::new();
        for (position, (name, text)) in given.iter().enumerate() {
            let parameter = if name.is_empty() {
                parameters.get(position).ok_or_else(|| {
                    InputError::new(format!("{text:?} is one value more than there are parameters"))
                })?
            } else {
                find(parameters, name)?
            };
            if seen.contains(&parameter.name) {
                return Err(InputError::new(format!("\"{}\" is given twice", parameter.name)));
            }
            seen.push(parameter.name);
            values.insert(parameter.name, parse(parameter, text)?);
        }
        Ok(Self { values })
    }

    /// A size, if it is set.
    pub fn size(&self, name: &str) -> Option<Bytes> {
        match self.values.get(name) {
            Some(Value::Size(value)) => Some(*value),
            _ => None,
        }
    }
    /// A time, if it is set.
    pub fn time(&self, name: &str) -> Option<Nanos> {
        match self.values.get(name) {
            Some(Value::Time(value)) => Some(*value),
            _ => None,
        }
    }
    /// A whole number, if it is set.
    pub fn count(&self, name: &str) -> Option<u64> {
        match self.values.get(name) {
            Some(Value::Count(value)) => Some(*value),
            _ => None,
        }
    }
    /// A number, if it is set.
    pub fn number(&self, name: &str) -> Option<f64> {
        match self.values.get(name) {
            Some(Value::Number(value)) => Some(*value),
            _ => None,
        }
    }
    /// Whether a flag is set.
    pub fn flag(&self, name: &str) -> bool {
        matches!(self.values.get(name), Some(Value::Flag(true)))
    }
    /// A word, empty if it is not set.
    pub fn word(&self, name: &str) -> &str {
        match self.values.get(name) {
            Some(Value::Word(value)) => value,
            _ => "",
        }
    }
}

fn find<'a>(parameters: &'a [Parameter], name: &str) -> Result<&'a Parameter> {
    parameters.iter().find(|parameter| parameter.name == name).ok_or_else(|| {
        let names: Vec<&str> = parameters.iter().map(|parameter| parameter.name).collect();
        let error = InputError::new(format!("no parameter \"{name}\""));
        match suggest::nearest(name, names.iter().copied()) {
            Some(near) => error.hint(format!("did you mean \"{near}\"?")),
            None if names.is_empty() => error.hint("it has no parameters"),
            None => error.hint(format!("parameters: {}", names.join(", "))),
        }
    })
}

fn parse(parameter: &Parameter, text: &str) -> Result<Value> {
    let text = text.trim();
    let wrong = |expected: String| {
        InputError::new(format!("{} = {text:?}: expected {expected}", parameter.name))
    };
    Ok(match parameter.kind {
        Kind::Size => Value::Size(text.parse().map_err(|error: InputError| {
            wrong(format!("a size such as 25MiB ({})", error.message()))
        })?),
        Kind::Time => Value::Time(text.parse().map_err(|error: InputError| {
            wrong(format!("a time such as 5ms ({})", error.message()))
        })?),
        Kind::Count => {
            Value::Count(text.parse().map_err(|_| wrong("a whole number of at least 0".into()))?)
        }
        Kind::Number => match text.parse::<f64>() {
            Ok(number) if number.is_finite() && number >= 0.0 => Value::Number(number),
            _ => return Err(wrong("a number of at least 0".into())),
        },
        Kind::Flag => match text {
            "true" | "yes" | "on" => Value::Flag(true),
            "false" | "no" | "off" => Value::Flag(false),
            _ => return Err(wrong("true or false".into())),
        },
        Kind::Word(words) => match words.iter().find(|word| **word == text) {
            Some(word) => Value::Word((*word).to_owned()),
            None => return Err(wrong(format!("one of {}", words.join(", ")))),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMETERS: &[Parameter] = &[
        Parameter::new("cap", Kind::Size, "25MiB", "Cap."),
        Parameter::optional("cycle", Kind::Time, "Cycle."),
        Parameter::new("on", Kind::Word(&["stream", "compute"]), "stream", "Where."),
    ];

    fn read(given: &[(&str, &str)]) -> Result<Values> {
        let given: Vec<_> = given.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        Values::read(PARAMETERS, &given)
    }

    #[test]
    fn defaults_positions_and_names() {
        let values = read(&[]).unwrap();
        assert_eq!(values.size("cap"), Some(Bytes::from_mib(25)));
        assert_eq!((values.time("cycle"), values.word("on")), (None, "stream"));
        let values = read(&[("", "1MiB"), ("cycle", "5ms")]).unwrap();
        assert_eq!(values.size("cap"), Some(Bytes::from_mib(1)));
        assert_eq!(values.time("cycle"), Some(Nanos::from_millis(5)));
    }

    #[test]
    fn mistakes_are_named() {
        let message = |given: &[(&str, &str)]| read(given).unwrap_err();
        assert!(message(&[("cpa", "1")]).hints()[0].contains("cap"));
        assert!(message(&[("on", "cpu")]).message().contains("stream, compute"));
        assert!(message(&[("cap", "1 parsec")]).message().contains("25MiB"));
        assert!(message(&[("cap", "1"), ("cap", "2")]).message().contains("twice"));
        assert!(
            message(&[("", "1"), ("", "0"), ("", "stream"), ("", "x")])
                .message()
                .contains("more than")
        );
    }
}
