//! Files of rows: lines of JSON, or Parquet, told by their content.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use foretrain_core::{InputError, Result};

use super::ResultRow;
use super::lines::{lines, to_lines};
use super::parquet::{MAGIC, from_parquet};

/// Largest file of rows that is read.
const MOST_BYTES: u64 = 1 << 30;

/// One row per line.
pub fn to_json_lines(rows: &[ResultRow]) -> String {
    to_lines(rows)
}

/// Reads a file of rows.
///
/// # Errors
/// If the file cannot be read, is too large or damaged, or a line is no row, with its number.
pub fn read_rows(path: &Path) -> Result<Vec<ResultRow>> {
    let io = |error| InputError::io(&error, path);
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut bytes))
        .map_err(io)?;
    if bytes.len() as u64 > MOST_BYTES {
        let message = format!("a file of rows of more than {MOST_BYTES} bytes");
        return Err(InputError::new(message).in_file(path).hint("is this the right file?"));
    }
    let rows = if bytes.starts_with(MAGIC) {
        from_parquet(bytes)
    } else {
        String::from_utf8(bytes)
            .map_err(|_| {
                InputError::new("neither lines of JSON nor Parquet")
                    .hint("name files that `foretrain plan --scenarios ... --out` wrote")
            })
            .and_then(|text| parse_rows(&text))
    };
    rows.map_err(|error| error.in_file(path))
}

/// Reads lines of JSON.
///
/// # Errors
/// If a line is no row, with its number.
pub fn parse_rows(text: &str) -> Result<Vec<ResultRow>> {
    const HINT: &str = "a file that `foretrain plan --scenarios ... --out` wrote has such rows; one \
                        that was cut off does not";
    lines(text, HINT).map(|line| line.map(|(_, row)| row)).collect()
}
