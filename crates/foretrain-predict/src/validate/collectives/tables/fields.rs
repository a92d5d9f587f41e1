//! Tables of comma-separated values with named columns.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use foretrain_core::{InputError, Result};
use foretrain_graph::CollectiveKind;
use foretrain_ingest::collective_log::kind_of;

use crate::validate::measured::{place, reader, unreadable};

/// Unpacked tables are a few megabytes.
const LARGEST: u64 = 256 << 20;

/// One table in memory.
pub(super) struct Sheet {
    path: PathBuf,
    text: String,
}

/// One row.
pub(super) struct Fields<'a> {
    header: &'a csv::StringRecord,
    row: &'a csv::StringRecord,
}

impl Sheet {
    /// Opens `NAME.csv.gz` or `NAME.csv`; `None` if there is neither.
    pub(super) fn open(directory: &Path, name: &str) -> Result<Option<Self>> {
        for ending in [".csv.gz", ".csv"] {
            let path = directory.join(format!("{name}{ending}"));
            let file = match File::open(&path) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                opened => opened.map_err(|error| InputError::io(&error, &path))?,
            };
            let mut text = String::new();
            let read = if ending == ".csv.gz" {
                MultiGzDecoder::new(file).take(LARGEST).read_to_string(&mut text)
            } else {
                file.take(LARGEST).read_to_string(&mut text)
            };
            read.map_err(|error| InputError::io(&error, &path))?;
            return Ok(Some(Self { path, text }));
        }
        Ok(None)
    }

    /// A table from text.
    #[cfg(test)]
    pub(super) fn of(text: &str) -> Self {
        Self { path: "test.csv".into(), text: text.to_owned() }
    }

    /// Calls `each` with every row; errors get file and line.
    pub(super) fn for_each(&self, mut each: impl FnMut(&Fields<'_>) -> Result<()>) -> Result<()> {
        let in_file = |error: InputError| error.in_file(&self.path);
        let mut reader = reader(&self.text);
        let header = reader.headers().map_err(|error| in_file(unreadable(&error)))?.clone();
        for row in reader.records() {
            let row = row.map_err(|error| in_file(unreadable(&error)))?;
            let fields = Fields { header: &header, row: &row };
            each(&fields).map_err(|error| in_file(error.at(place(&row))))?;
        }
        Ok(())
    }
}

impl Fields<'_> {
    /// The text of a column, empty if the row is cut short.
    pub(super) fn text(&self, column: &str) -> Result<&str> {
        let at = self.header.iter().position(|title| title == column);
        let at = at.ok_or_else(|| InputError::new(format!("no column \"{column}\"")))?;
        Ok(self.row.get(at).unwrap_or_default().trim())
    }

    /// A number that is not negative; `None` for an empty field.
    pub(super) fn number(&self, column: &str) -> Result<Option<f64>> {
        let text = self.text(column)?;
        if text.is_empty() {
            return Ok(None);
        }
        let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
        number.map(Some).ok_or_else(|| {
            InputError::new(format!("expected a number in column \"{column}\", found \"{text}\""))
        })
    }

    /// A positive number; `None` for zero and for an empty field.
    pub(super) fn positive(&self, column: &str) -> Result<Option<f64>> {
        Ok(self.number(column)?.filter(|number| *number > 0.0))
    }

    /// The smallest positive number of several columns.
    pub(super) fn least(&self, columns: [&str; 2]) -> Result<Option<f64>> {
        let [first, second] = columns.map(|column| self.positive(column));
        Ok(match (first?, second?) {
            (Some(first), Some(second)) => Some(first.min(second)),
            (first, second) => first.or(second),
        })
    }

    /// A count; `None` for an empty field.
    pub(super) fn count(&self, column: &str) -> Result<Option<u32>> {
        Ok(self.number(column)?.map(|number| number as u32))
    }

    /// The operation that a column names.
    pub(super) fn kind(&self, column: &str) -> Result<Option<CollectiveKind>> {
        Ok(kind_of(self.text(column)?))
    }
}
