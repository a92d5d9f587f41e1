//! Reading measured points from files and arguments.

mod file;
mod job;
mod table;
mod value;

use std::path::Path;

use foretrain_core::Result;
use foretrain_hardware::read_text;

use super::input::{Known, ScalingInput};

pub use job::{JobSpec, Written};
pub use value::{Unit, point, rank};

/// Reads a file: TOML, or a table with commas if its name ends in `.csv`. What it leaves open is
/// taken from `known`.
///
/// # Errors
/// If it cannot be read, with the line.
pub fn read(path: &Path, known: &Known) -> Result<ScalingInput> {
    let text = read_text(path)?;
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
