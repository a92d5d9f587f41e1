//! Tables with commas, as people write them: heads in any spelling, a byte-order mark, quotes.

use foretrain_core::{InputError, Result};

/// Rows that a table may have.
pub(super) const MOST_ROWS: usize = 1_000_000;

/// A table whose heads are folded to small letters and digits.
pub(super) struct Table<'a> {
    reader: csv::Reader<&'a [u8]>,
    heads: Vec<String>,
}

/// A row and the line that it stands on.
pub(super) struct Row {
    cells: csv::StringRecord,
    pub(super) line: u64,
}

impl Row {
    /// The cell of a column; `None` if it is empty.
    pub(super) fn cell(&self, column: usize) -> Option<&str> {
        self.cells.get(column).filter(|text| !text.is_empty())
    }
}

impl<'a> Table<'a> {
    /// Reads the heads.
    ///
    /// # Errors
    /// If there is no line.
    pub(super) fn new(text: &'a str) -> Result<Self> {
        let text = text.trim_start_matches('\u{feff}');
        let mut builder = csv::ReaderBuilder::new();
        builder.trim(csv::Trim::All).comment(Some(b'#')).flexible(true);
        let mut reader = builder.from_reader(text.as_bytes());
        let heads = reader.headers().map_err(|error| unreadable(&error))?;
        let heads: Vec<String> = heads.iter().map(folded).collect();
        if heads.iter().all(String::is_empty) {
            return Err(InputError::new("an empty table"));
        }
        Ok(Self { reader, heads })
    }

    /// The column with one of these heads; the first of the names that is there counts.
    ///
    /// # Errors
    /// If two columns have that head.
    pub(super) fn column(&self, names: &[&str]) -> Result<Option<usize>> {
        for name in names {
            let mut all = self.heads.iter().enumerate().filter(|(_, head)| head == name);
            match (all.next(), all.next()) {
                (Some((index, _)), None) => return Ok(Some(index)),
                (Some(_), Some(_)) => {
                    let message = format!("two columns are called {name:?}");
                    return Err(InputError::new(message).at("line 1"));
                }
                _ => {}
            }
        }
        Ok(None)
    }

    /// A column that has to be there.
    ///
    /// # Errors
    /// If it is not; the error names those there are.
    pub(super) fn needed(&self, what: &str, names: &[&str]) -> Result<usize> {
        self.column(names)?.ok_or_else(|| {
            InputError::new(format!("no column for {what}")).at("line 1").hint(format!(
                "call it {}; there is {}",
                names.join(" or "),
                self.heads.join(", ")
            ))
        })
    }

    /// The rows, with an error in place of one that cannot be read.
    pub(super) fn rows(&mut self) -> impl Iterator<Item = Result<Row>> {
        let rows = self.reader.records().enumerate();
        rows.map(|(index, row)| {
            if index >= MOST_ROWS {
                return Err(InputError::new(format!("more than {MOST_ROWS} rows")));
            }
            let cells = row.map_err(|error| unreadable(&error))?;
            let line = cells.position().map_or(0, csv::Position::line);
            Ok(Row { cells, line })
        })
    }
}

/// `GPU Count`, `gpu_count` and `gpu-count` are one head.
fn folded(head: &str) -> String {
    let kept = head.chars().filter(char::is_ascii_alphanumeric);
    kept.map(|c| c.to_ascii_lowercase()).collect()
}

fn unreadable(error: &csv::Error) -> InputError {
    let wrong = InputError::new(format!("not a table of comma-separated values: {error}"));
    match error.position() {
        Some(position) => wrong.at(format!("line {}", position.line())),
        None => wrong,
    }
}
