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
        Refused::Usage(text) => UsageError::new_err(without_command_line(&text)),
    }
}

/// What is wrong, without what only a command line wants to know: how the verb is called.
fn without_command_line(text: &str) -> String {
    let of_commands = |paragraph: &str| {
        paragraph.starts_with("Usage:") || paragraph.starts_with("For more information")
    };
    let paragraphs = text.trim().split("\n\n").filter(|paragraph| !of_commands(paragraph));
    let kept = paragraphs.collect::<Vec<_>>().join("\n\n");
    kept.strip_prefix("error: ").map_or(kept.clone(), str::to_owned)
}

/// What the engine says of an exception in a function of the user's.
pub(crate) fn to_input(error: &PyErr, what: &str) -> InputError {
    InputError::new(format!("{what}: {error}"))
}
