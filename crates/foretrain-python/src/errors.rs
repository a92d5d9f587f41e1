//! Errors of the engine as exceptions with the same words.

use foretrain::core::InputError;
use foretrain_cli::Refused;
use pyo3::prelude::*;

pyo3::import_exception!(foretrain._errors, ForetrainError);
pyo3::import_exception!(foretrain._errors, UsageError);

/// The exception for an input error: what a command line would show, and its parts.
pub(crate) fn of_input(error: &InputError) -> PyErr {
    let path = error.path().map(|path| path.display().to_string());
    let place = error.place().map(str::to_owned);
    ForetrainError::new_err((error.to_string(), error.hints().to_vec(), path, place))
}

/// The exception for what a verb was refused for.
pub(crate) fn of_refused(refused: Refused) -> PyErr {
    match refused {
        Refused::Input(error) => of_input(&error),
        Refused::Usage(text) => UsageError::new_err(text.trim_end().to_owned()),
    }
}

/// What the engine says of an exception in a function of the user's.
pub(crate) fn to_input(error: &PyErr, what: &str) -> InputError {
    InputError::new(format!("{what}: {error}"))
}
