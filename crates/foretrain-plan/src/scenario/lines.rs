//! JSON, one value per line.

use foretrain_core::{InputError, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The values of all lines that are not blank, with the number of the line. An error names the line and says `hint`.
pub(super) fn lines<'a, T: DeserializeOwned>(
    text: &'a str,
    hint: &'a str,
) -> impl Iterator<Item = Result<(usize, T)>> + 'a {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines.map(move |(number, line)| {
        serde_json::from_str(line).map(|value| (number + 1, value)).map_err(|error| {
            // The error's own place is within the line, which it takes for the first.
            let message = error.to_string();
            let message = message.split(" at line ").next().unwrap_or_default().to_owned();
            let place = format!("line {}, column {}", number + 1, error.column());
            InputError::new(message).at(place).hint(hint)
        })
    })
}

/// A line for each value.
pub(super) fn to_lines(values: &[impl Serialize]) -> String {
    let mut text = String::new();
    for value in values {
        // Plain data; none of it fails to serialise.
        text.push_str(&serde_json::to_string(value).unwrap_or_default());
        text.push('\n');
    }
    text
}
