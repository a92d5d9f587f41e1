//! A `config.json` by keys: each value is checked where it is read, and every default that stands
//! in for a missing one is written down.

use std::cell::RefCell;
use std::rc::Rc;

use foretrain_core::{InputError, Result};
use serde_json::{Map, Value};

use crate::limits::{self, within};

/// One table of a config.
#[derive(Clone)]
pub(super) struct Config<'a> {
    table: &'a Map<String, Value>,
    /// `text_config.` inside a nested table.
    place: String,
    assumed: Rc<RefCell<Vec<String>>>,
}

impl<'a> Config<'a> {
    pub(super) fn new(table: &'a Map<String, Value>) -> Self {
        Self { table, place: String::new(), assumed: Rc::default() }
    }

    /// What was assumed so far.
    pub(super) fn assumptions(&self) -> Vec<String> {
        self.assumed.borrow().clone()
    }

    pub(super) fn assume(&self, what: impl Into<String>) {
        let what = what.into();
        let mut assumed = self.assumed.borrow_mut();
        if !assumed.contains(&what) {
            assumed.push(what);
        }
    }

    fn assume_key(&self, key: &str, value: impl std::fmt::Display) {
        let place = &self.place;
        self.assume(format!("{place}{key} is not given: {value}, as in Hugging Face's class"));
    }

    /// The nested table of this key.
    pub(super) fn nested(&self, key: &str) -> Result<Option<Config<'a>>> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::Object(table)) => Ok(Some(Config {
                table,
                place: format!("{}{key}.", self.place),
                assumed: Rc::clone(&self.assumed),
            })),
            Some(other) => Err(self.wrong(key, "a table", other)),
        }
    }

    /// `null` is as good as missing.
    fn value(&self, key: &str) -> Option<&'a Value> {
        self.table.get(key).filter(|value| !value.is_null())
    }

    fn wrong(&self, key: &str, expected: &str, found: &Value) -> InputError {
        let mut text = found.to_string();
        if text.chars().count() > 60 {
            text = text.chars().take(60).chain("...".chars()).collect();
        }
        let place = format!("{}{key}", self.place);
        InputError::new(format!("{key}: expected {expected}, found {text}")).at(place)
    }

    /// A whole number from 0 to `most`.
    pub(super) fn count(&self, key: &str, most: u64) -> Result<Option<u64>> {
        let Some(value) = self.value(key) else { return Ok(None) };
        let whole = value.as_u64().or_else(|| {
            let number = value.as_f64().filter(|n| n.fract() == 0.0 && (0.0..1e15).contains(n));
            number.map(|number| number as u64)
        });
        match whole.filter(|count| *count <= most) {
            Some(count) => Ok(Some(count)),
            None => Err(self.wrong(key, &format!("a whole number up to {most}"), value)),
        }
    }

    /// The first of several names of a dimension; there is no default.
    pub(super) fn need(&self, keys: &[&str], most: u64) -> Result<u64> {
        for key in keys {
            if let Some(count) = self.count(key, most)? {
                return within(key, count, 1, most)
                    .map_err(|error| error.at(format!("{}{key}", self.place)));
            }
        }
        let (key, place) = (keys[0], &self.place);
        Err(InputError::new(format!("the key {place}{key} is missing"))
            .hint("config.json of a model on the Hugging Face hub has it; is the file complete?"))
    }

    /// A dimension (above zero) with a default.
    pub(super) fn or(&self, key: &str, default: u64, most: u64) -> Result<u64> {
        match self.count(key, most)? {
            Some(count) => within(key, count, 1, most),
            None => {
                self.assume_key(key, default);
                Ok(default)
            }
        }
    }

    /// A count that may be zero, with a default that needs no mention.
    pub(super) fn count_or(&self, key: &str, default: u64, most: u64) -> Result<u64> {
        Ok(self.count(key, most)?.unwrap_or(default))
    }

    /// A switch. Configs leave out what has the value of the class, so that it was assumed is
    /// only said when it is on.
    pub(super) fn flag(&self, key: &str, default: bool) -> Result<bool> {
        match self.value(key) {
            None => {
                if default {
                    self.assume_key(key, default);
                }
                Ok(default)
            }
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(other) => Err(self.wrong(key, "true or false", other)),
        }
    }

    /// A share from 0 to 1.
    pub(super) fn share(&self, key: &str, default: f64) -> Result<f64> {
        let Some(value) = self.value(key) else { return Ok(default) };
        let share = value.as_f64().filter(|share| (0.0..=1.0).contains(share));
        share.ok_or_else(|| self.wrong(key, "a number from 0 to 1", value))
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<&'a str>> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.wrong(key, "text", other)),
        }
    }

    /// A list of texts; other items are refused.
    pub(super) fn texts(&self, key: &str) -> Result<Option<Vec<&'a str>>> {
        let Some(value) = self.value(key) else { return Ok(None) };
        let list = value.as_array().filter(|list| list.len() as u64 <= limits::LAYERS);
        let texts = list.and_then(|list| list.iter().map(Value::as_str).collect());
        texts.map(Some).ok_or_else(|| self.wrong(key, "a list of texts", value))
    }

    /// Whether a number is there and above zero (soft caps, dropout).
    pub(super) fn is_positive(&self, key: &str, default: bool) -> bool {
        self.table.get(key).map_or(default, |value| value.as_f64().is_some_and(|n| n > 0.0))
    }

    /// How many entries the table of this key has; 0 without it.
    pub(super) fn entries(&self, key: &str) -> u64 {
        self.value(key).and_then(Value::as_object).map_or(0, |table| table.len() as u64)
    }

    /// Whether the key is not in the table at all.
    pub(super) fn is_missing(&self, key: &str) -> bool {
        !self.table.contains_key(key)
    }

    /// Whether the key is there and says that there is nothing.
    pub(super) fn is_null(&self, key: &str) -> bool {
        self.table.get(key).is_some_and(Value::is_null)
    }

    /// Whether the value (a number, a list) is there and not empty.
    pub(super) fn is_given(&self, key: &str) -> bool {
        self.value(key).is_some_and(|value| value.as_array().is_none_or(|list| !list.is_empty()))
    }
}
