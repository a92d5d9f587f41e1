//! Tables with named columns, packed or not.

use std::io::Read;
use std::path::Path;

use foretrain_core::{InputError, Result};

use crate::validate::measured::unreadable;

/// The tables have a few MB unpacked; more is some other file.
const LARGEST: u64 = 64 << 20;

/// A table in memory.
pub(super) struct Table {
    heads: csv::StringRecord,
    rows: Vec<csv::StringRecord>,
}

/// One of its rows.
#[derive(Clone, Copy)]
pub(super) struct Line<'a> {
    table: &'a Table,
    record: &'a csv::StringRecord,
}

impl Table {
    /// Reads a file; one whose name ends in `.gz` is unpacked.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let file = std::fs::File::open(path).map_err(|error| InputError::io(&error, path))?;
        let packed = path.extension().is_some_and(|end| end == "gz");
        let mut text = String::new();
        let read = if packed {
            flate2::read::GzDecoder::new(file).take(LARGEST).read_to_string(&mut text)
        } else {
            file.take(LARGEST).read_to_string(&mut text)
        };
        read.map_err(|error| InputError::io(&error, path))?;
        let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
        let heads = reader.headers().map_err(|error| unreadable(&error).in_file(path))?.clone();
        let rows = reader.records().collect::<std::result::Result<Vec<_>, _>>();
        let rows = rows.map_err(|error| unreadable(&error).in_file(path))?;
        Ok(Self { heads, rows })
    }

    pub(super) fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        self.rows.iter().map(|record| Line { table: self, record })
    }
}

impl<'a> Line<'a> {
    /// A cell; empty if there is none.
    pub(super) fn text(self, column: &str) -> &'a str {
        let at = self.table.heads.iter().position(|head| head == column);
        at.and_then(|at| self.record.get(at)).unwrap_or("").trim()
    }
    /// A positive number.
    pub(super) fn number(self, column: &str) -> Option<f64> {
        self.text(column).parse::<f64>().ok().filter(|x| x.is_finite() && *x > 0.0)
    }
    /// A positive whole number, however it is written.
    pub(super) fn whole(self, column: &str) -> Option<u64> {
        self.number(column).filter(|x| x.fract() == 0.0 && *x < 1e15).map(|x| x as u64)
    }
    /// The same as a degree of parallelism.
    pub(super) fn degree(self, column: &str) -> Option<u32> {
        self.whole(column).and_then(|x| u32::try_from(x).ok())
    }
}
