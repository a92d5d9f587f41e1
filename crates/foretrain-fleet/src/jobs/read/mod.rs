//! Rows of any file as cells of bytes, one after the other.
//!
//! *Invariant:* memory is bounded by one row (at most [`LONGEST`] bytes) and a few rows looked
//! ahead, whatever the file holds.

mod csv;
mod json;
mod parquet;
mod source;

use std::path::Path;

use ::csv::ByteRecord;
use foretrain_core::{InputError, Result};

use super::fault::Fault;
use super::field::Unit;
use source::Source;

/// The longest row that is read, in bytes.
pub(super) const LONGEST: usize = 16 << 20;

/// What reading a row gave.
pub(super) enum Step {
    /// A row.
    Row,
    /// Something that is no row, and where.
    Fault(Fault, String),
    /// The file is at its end.
    End,
    /// The file cannot be read on.
    Cut(String),
}

/// What stands between the cells of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Separator {
    pub(super) byte: u8,
    /// Whether a first line says so.
    pub(super) said: bool,
}

/// Rows of cells under titles.
pub(super) trait Rows {
    /// The titles; empty text for columns without one.
    fn titles(&self) -> &[String];

    /// What stands between its cells, if it is text.
    fn separator(&self) -> Option<Separator> {
        None
    }

    /// The unit that the file's own types give a column.
    fn unit(&self, _column: usize) -> Option<Unit> {
        None
    }

    /// The type of a column, if it is one whose cells are not read, or not where lists make no sense.
    fn unread(&self, _column: usize, _takes_lists: bool) -> Option<String> {
        None
    }

    /// Says that no other columns will be looked at; their cells may stay empty. Whether rows come
    /// again from the first.
    fn keep(&mut self, _columns: &[usize]) -> Result<bool> {
        Ok(false)
    }

    /// Reads the next row.
    fn read(&mut self, row: &mut ByteRecord) -> Step;
}

/// A file, opened; a table of text may have no header.
pub(super) enum Opened {
    /// Rows with titles.
    Titled(Box<dyn Rows>),
    /// Text whose first line may be a header or a row.
    Text(Box<csv::Text>),
}

/// Opens a file of any kind that is known, by its content.
pub(super) fn open(path: &Path) -> Result<Opened> {
    let error = |error: &std::io::Error| InputError::io(error, path);
    let source = Source::open(path).map_err(|e| error(&e))?;
    match source {
        Source::Parquet(file) => {
            let rows = parquet::Columns::open(file).map_err(|error| error.in_file(path))?;
            Ok(Opened::Titled(Box::new(rows)))
        }
        Source::Text(text) => text_of(text).map_err(|error| error.in_file(path)),
    }
}

/// Opens text that is in memory.
pub(super) fn open_bytes(bytes: Vec<u8>) -> Result<Opened> {
    text_of(Box::new(std::io::Cursor::new(bytes)))
}

fn text_of(text: Box<dyn std::io::BufRead>) -> Result<Opened> {
    let (first, text) = source::first_bytes(text)
        .map_err(|error| InputError::new(format!("cannot read it: {error}")))?;
    match first.trim_ascii_start().first() {
        None => Err(InputError::new("the file is empty").hint("give a table of jobs")),
        Some(b'{' | b'[') => Ok(Opened::Titled(Box::new(json::Objects::new(text)?))),
        Some(_) if first.contains(&0) => Err(InputError::new("this is no text")
            .hint("tables are CSV, JSON, JSON lines (also .gz or .zst) or Parquet")),
        Some(_) => Ok(Opened::Text(Box::new(csv::Text::new(text, &first)))),
    }
}
