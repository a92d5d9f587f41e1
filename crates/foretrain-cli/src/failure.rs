//! Why a command ended without an answer.

use std::io;

use foretrain::core::InputError;

/// A command's failure.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The user's to mend.
    Input(InputError),
    /// Whoever read the output has seen enough.
    BrokenPipe,
}

impl From<InputError> for Failure {
    fn from(error: InputError) -> Self {
        Self::Input(error)
    }
}

impl Failure {
    /// A failed write of the answer to `place`.
    pub(crate) fn writing(error: &io::Error, place: &str) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::BrokenPipe;
        }
        Self::Input(InputError::new(format!("cannot write to {place}: {error}")))
    }
}

pub(crate) type Result<T> = std::result::Result<T, Failure>;
