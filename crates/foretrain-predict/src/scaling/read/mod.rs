//! Reading measured points from files and arguments.

mod file;
mod job;
mod table;
mod value;

use std::path::Path;

use foretrain_core::{InputError, Result};

use super::input::{Known, ScalingInput};

pub use job::{JobSpec, Written};
pub use value::{Unit, point, rank};

/// Tables of measured points are short; anything larger is some other file.
const LARGEST: u64 = 16 << 20;

/// Reads a file: TOML, or a table with commas if its name ends in `.csv`. What it leaves open is
/// taken from `known`.
///
/// # Errors
/// If it cannot be read, with the line.
pub fn read(path: &Path, known: &Known) -> Result<ScalingInput> {
    let size = std::fs::metadata(path).map_err(|error| InputError::io(&error, path))?.len();
    if size > LARGEST {
        return Err(InputError::new(format!("{size} bytes are too many for a table of points"))
            .in_file(path)
            .hint("traces are read by `foretrain predict` and `foretrain inspect`"));
    }
    let text = std::fs::read_to_string(path).map_err(|error| InputError::io(&error, path))?;
    let is_table = path.extension().is_some_and(|end| end.eq_ignore_ascii_case("csv"));
    let input = if is_table { table::parse(&text, known) } else { file::parse(&text, known) };
    let input = input.map_err(|error| {
        let error = error.in_file(path);
        let hint = "files of points are TOML, or tables with commas that end in .csv";
        if error.hints().is_empty() { error.hint(hint) } else { error }
    })?;
    input.check().map_err(|error| error.in_file(path))?;
    Ok(input)
}
