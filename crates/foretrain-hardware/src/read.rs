//! From TOML text to its entries, and errors that name the line, the key and the nearest valid key.

use foretrain_core::{InputError, Result, suggest};
use serde::de::DeserializeOwned;
use toml::de::{DeTable, DeValue};

use crate::quantity::shown;
use crate::spec::FileSpec;

/// Something wrong in an entry, at a key path.
#[derive(Debug)]
pub(crate) struct Fault {
    path: Vec<String>,
    message: String,
    hints: Vec<String>,
}

impl Fault {
    pub(crate) fn new(path: &[&str], message: impl Into<String>) -> Self {
        let path = path.iter().map(|key| (*key).to_owned()).collect();
        Self { path, message: message.into(), hints: Vec::new() }
    }
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
    /// With the line of the key in `text`, where it stands there.
    pub(crate) fn into_error(self, text: &str) -> InputError {
        let place = place(&dotted(&self.path), line_of_key(text, &self.path));
        let error = InputError::new(self.message).at(place);
        self.hints.into_iter().fold(error, InputError::hint)
    }
}

/// Reads a catalogue file's text.
pub(crate) fn parse(text: &str) -> Result<FileSpec> {
    parse_toml(text)
}

/// Reads the text of any user file in TOML.
///
/// # Errors
/// If it is no TOML or not of this form, with the place and a way on.
pub fn parse_toml<T: DeserializeOwned>(text: &str) -> Result<T> {
    let deserializer = toml::Deserializer::parse(text).map_err(|error| syntax(text, &error))?;
    let mut track = serde_path_to_error::Track::new();
    let tracked = serde_path_to_error::Deserializer::new(deserializer, &mut track);
    T::deserialize(tracked).map_err(|error| {
        let line = error.span().map(|span| line_at(text, span.start));
        explain(error.message(), &track.path(), line)
    })
}

fn syntax(text: &str, error: &toml::de::Error) -> InputError {
    let line = error.span().map(|span| line_at(text, span.start));
    let place = line.map_or_else(|| "the file".into(), |line| format!("line {line}"));
    InputError::new(format!("not valid TOML: {}", error.message())).at(place)
}

/// Turns serde's message into one for people.
fn explain(message: &str, path: &serde_path_to_error::Path, line: Option<usize>) -> InputError {
    let message = message.trim();
    let path: Vec<String> = path.iter().map(segment).collect();
    let at = |path: &[String]| place(&dotted(path), line);
    if let Some((wrong, valid)) = alternatives(message, "unknown field `") {
        // The path may or may not end in the unknown key itself.
        let parent = path.strip_suffix(&[wrong.to_owned()][..]).unwrap_or(&path);
        let mut full = parent.to_vec();
        full.push(wrong.to_owned());
        return InputError::new(format!("unknown key {}", shown(wrong)))
            .at(at(&full))
            .hint(one_of(wrong, &valid));
    }
    if let Some((wrong, valid)) = alternatives(message, "unknown variant `") {
        return InputError::new(format!("unknown value {}", shown(wrong)))
            .at(at(&path))
            .hint(one_of(wrong, &valid));
    }
    InputError::new(message.to_owned()).at(at(&path))
}

/// Splits "unknown field `a`, expected one of `b`, `c`".
fn alternatives<'a>(message: &'a str, start: &str) -> Option<(&'a str, Vec<&'a str>)> {
    let rest = message.strip_prefix(start)?;
    let (wrong, rest) = rest.split_once("`, expected ")?;
    let valid = rest.split('`').skip(1).step_by(2).collect();
    Some((wrong, valid))
}

/// "did you mean", or all of them when none is near.
pub(crate) fn one_of(wrong: &str, valid: &[&str]) -> String {
    match suggest::nearest(wrong, valid.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("expected one of: {}", valid.join(", ")),
    }
}

fn segment(segment: &serde_path_to_error::Segment) -> String {
    match segment {
        serde_path_to_error::Segment::Map { key } => key.clone(),
        serde_path_to_error::Segment::Seq { index } => index.to_string(),
        serde_path_to_error::Segment::Enum { variant } => variant.clone(),
        serde_path_to_error::Segment::Unknown => "?".into(),
    }
}

fn dotted(path: &[String]) -> String {
    path.join(".")
}

fn place(path: &str, line: Option<usize>) -> String {
    match (path.is_empty(), line) {
        (false, Some(line)) => format!("{path}, line {line}"),
        (true, Some(line)) => format!("line {line}"),
        (false, None) => path.to_owned(),
        (true, None) => "the file".into(),
    }
}

/// The line, from 1, that holds byte `offset`.
fn line_at(text: &str, offset: usize) -> usize {
    let end = offset.min(text.len());
    1 + text.as_bytes()[..end].iter().filter(|&&byte| byte == b'\n').count()
}

/// The line of the deepest part of `path` below its section that the file has.
fn line_of_key(text: &str, path: &[String]) -> Option<usize> {
    let document = DeTable::parse(text).ok()?;
    let mut table = document.get_ref();
    let mut found = None;
    for (depth, key) in path.iter().enumerate() {
        let Some((spelt, value)) = table.iter().find(|(name, _)| name.get_ref() == key.as_str())
        else {
            break;
        };
        if depth > 0 {
            found = Some(line_at(text, spelt.span().start));
        }
        match value.get_ref() {
            DeValue::Table(inner) => table = inner,
            _ => break,
        }
    }
    found
}
