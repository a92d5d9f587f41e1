//! Errors for people: what was expected, where, and what to do.

use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A result whose error is the user's to mend.
pub type Result<T, E = InputError> = std::result::Result<T, E>;

/// Input that cannot be used. Rendered as one sentence, the place, and hints.
///
/// Messages are lowercase fragments; the file comes last so that the first half can be shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputError {
    message: String,
    path: Option<PathBuf>,
    place: Option<String>,
    hints: Vec<String>,
}

impl InputError {
    /// An error that says what was found and what was expected.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), path: None, place: None, hints: Vec::new() }
    }

    /// The file (or directory) concerned. An earlier, nearer path is kept.
    #[must_use]
    pub fn in_file(mut self, path: impl AsRef<Path>) -> Self {
        self.path.get_or_insert_with(|| path.as_ref().to_path_buf());
        self
    }

    /// The place in the file: "byte 1234", "line 7", "nodes.0.device".
    #[must_use]
    pub fn at(mut self, place: impl Into<String>) -> Self {
        self.place.get_or_insert_with(|| place.into());
        self
    }

    /// A way on.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        let hint = hint.into();
        if !hint.is_empty() && !self.hints.contains(&hint) {
            self.hints.push(hint);
        }
        self
    }

    /// The text that a file's bytes are.
    ///
    /// # Errors
    /// If they are no UTF-8, with the place.
    pub fn text_of(bytes: Vec<u8>) -> Result<String> {
        String::from_utf8(bytes).map_err(|error| {
            let place = format!("byte {}", error.utf8_error().valid_up_to());
            Self::new("not UTF-8 text")
                .at(place)
                .hint("this looks like another kind of file; name a text file, saved as UTF-8")
        })
    }

    /// An IO error on reading a file.
    pub fn io(error: &std::io::Error, path: impl AsRef<Path>) -> Self {
        let (message, hint) = match error.kind() {
            ErrorKind::NotFound => {
                ("no such file or directory".into(), "check the spelling of the path")
            }
            ErrorKind::PermissionDenied => {
                ("no permission to read it".into(), "check the file's permissions")
            }
            ErrorKind::IsADirectory => {
                ("expected a file, found a directory".into(), "name a file in it")
            }
            _ => (format!("cannot read it: {error}"), ""),
        };
        Self::new(message).in_file(path).hint(hint)
    }

    /// The message without place and hints.
    pub fn message(&self) -> &str {
        &self.message
    }
    /// The file concerned, if known.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }
    /// The place in the file, if known.
    pub fn place(&self) -> Option<&str> {
        self.place.as_deref()
    }
    /// Ways on.
    pub fn hints(&self) -> &[String] {
        &self.hints
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.message)?;
        match (&self.place, &self.path) {
            (Some(place), Some(path)) => write!(f, " ({place} of {})", path.display()),
            (None, Some(path)) => write!(f, " ({})", path.display()),
            (Some(place), None) => write!(f, " (at {place})"),
            (None, None) => Ok(()),
        }
    }
}

impl std::error::Error for InputError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_names_place_and_file_last() {
        let error = InputError::new("expected a number, found \"fast\"")
            .at("line 3")
            .in_file("my.toml")
            .in_file("outer.toml")
            .hint("write gigabytes per second")
            .hint("write gigabytes per second");
        assert_eq!(error.to_string(), "expected a number, found \"fast\" (line 3 of my.toml)");
        assert_eq!(error.hints().len(), 1);
    }
}
