//! Tables with named columns, packed or not.

use std::io::Read;
use std::path::Path;

use foretrain_core::{InputError, Result};

use super::measured::unreadable;
use super::roots::Root;

/// The tables have a few MB unpacked; more is some other file.
const LARGEST: u64 = 64 << 20;

/// A table in memory.
pub(in crate::validate) struct Table {
    heads: csv::StringRecord,
    rows: Vec<csv::StringRecord>,
}

/// One of its rows.
#[derive(Clone, Copy)]
pub(in crate::validate) struct Line<'a> {
    table: &'a Table,
    record: &'a csv::StringRecord,
}

impl Table {
    /// Reads a file; one whose name ends in `.gz` is unpacked.
    pub(in crate::validate) fn read(path: &Path) -> Result<Self> {
        let file = std::fs::File::open(path).map_err(|error| InputError::io(&error, path))?;
        let packed = path.extension().is_some_and(|end| end == "gz");
        let mut text = String::new();
        let read = if packed {
            flate2::read::GzDecoder::new(file).take(LARGEST).read_to_string(&mut text)
        } else {
            file.take(LARGEST).read_to_string(&mut text)
        };
        read.map_err(|error| InputError::io(&error, path))?;
        Self::parse(&text).map_err(|error| error.in_file(path))
    }

    /// Reads a text.
    pub(in crate::validate) fn parse(text: &str) -> Result<Self> {
        let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
        let heads = reader.headers().map_err(|error| unreadable(&error))?.clone();
        let rows = reader.records().collect::<std::result::Result<Vec<_>, _>>();
        Ok(Self { heads, rows: rows.map_err(|error| unreadable(&error))? })
    }

    pub(in crate::validate) fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        self.rows.iter().map(|record| Line { table: self, record })
    }
}

/// A table under the root, if it is there, packed or not.
pub(in crate::validate) fn table(root: &Root, file: &str) -> Result<Option<Table>> {
    let packed = format!("{file}.gz");
    let path = root.file(&[file, &packed, file.trim_end_matches(".gz")]);
    path.map(|path| Table::read(&path)).transpose()
}

impl<'a> Line<'a> {
    /// A cell; empty if there is none.
    pub(in crate::validate) fn text(self, column: &str) -> &'a str {
        let at = self.table.heads.iter().position(|head| head == column);
        at.and_then(|at| self.record.get(at)).unwrap_or("").trim()
    }
    /// A positive number.
    pub(in crate::validate) fn number(self, column: &str) -> Option<f64> {
        self.text(column).parse::<f64>().ok().filter(|x| x.is_finite() && *x > 0.0)
    }
    /// A positive whole number, however it is written.
    pub(in crate::validate) fn whole(self, column: &str) -> Option<u64> {
        self.number(column).filter(|x| x.fract() == 0.0 && *x < 1e15).map(|x| x as u64)
    }
    /// The same as a degree of parallelism.
    pub(in crate::validate) fn degree(self, column: &str) -> Option<u32> {
        self.whole(column).and_then(|x| u32::try_from(x).ok())
    }
}
