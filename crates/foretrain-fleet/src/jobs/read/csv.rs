//! Tables of text: commas, tabs, semicolons or bars.

use std::cell::Cell;
use std::io::{self, BufRead, Read};
use std::rc::Rc;

use csv::{ByteRecord, Reader, ReaderBuilder};
use foretrain_core::words::counted;

use super::source::Rest;
use super::{LONGEST, Rows, Separator, Step};
use crate::jobs::fault::Fault;

/// A table of text whose first line has been read, but is not known to be a header.
pub(in crate::jobs) struct Text {
    reader: Reader<Guarded>,
    since_row: Rc<Cell<usize>>,
    /// Whether an odd number of quotes was read.
    odd_quotes: Rc<Cell<bool>>,
    separator: Separator,
    first: ByteRecord,
    /// Why the first line cannot be read.
    broken: Option<String>,
}

impl Text {
    pub(super) fn new(mut text: Rest, beginning: &[u8]) -> Self {
        let separator = match said(beginning) {
            Some((byte, length)) => {
                // It is in the buffer that the first bytes were put back into.
                text.consume(length);
                Separator { byte, said: true }
            }
            None => Separator { byte: delimiter(beginning), said: false },
        };
        let (since_row, odd_quotes) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(false)));
        let (row, odd) = (Rc::clone(&since_row), Rc::clone(&odd_quotes));
        let mut reader = ReaderBuilder::new()
            .delimiter(separator.byte)
            .has_headers(false)
            .flexible(true)
            .buffer_capacity(256 << 10)
            .from_reader(Guarded { text, since_row: row, odd_quotes: odd });
        let mut first = ByteRecord::new();
        let broken = reader.read_byte_record(&mut first).err().map(|error| error.to_string());
        Self { reader, since_row, odd_quotes, separator, first, broken }
    }

    /// The cells of the first line.
    pub(in crate::jobs) fn first(&self) -> &ByteRecord {
        &self.first
    }

    /// Why nothing can be read, if so.
    pub(in crate::jobs) fn broken(&self) -> Option<&str> {
        self.broken.as_deref()
    }

    /// With the first line as header.
    pub(in crate::jobs) fn headed(self) -> Box<dyn Rows> {
        let titles = self.first.iter().map(text_of).collect();
        Box::new(Lines { text: self, titles, again: false, row: 0, spans_lines: None })
    }

    /// With these titles, the first line being a row.
    pub(in crate::jobs) fn titled(self, titles: &[&str]) -> Box<dyn Rows> {
        let titles = titles.iter().map(|&title| title.to_owned()).collect();
        Box::new(Lines { text: self, titles, again: true, row: 0, spans_lines: None })
    }
}

fn text_of(cell: &[u8]) -> String {
    String::from_utf8_lossy(cell.trim_ascii()).into_owned()
}

/// The separator that a line of its own names (`sep=;`), as spreadsheets write it, and the length of
/// that line.
fn said(beginning: &[u8]) -> Option<(u8, usize)> {
    let end = beginning.iter().position(|&byte| byte == b'\n')?;
    // A tab would be trimmed away.
    let line = beginning[..end].strip_suffix(b"\r").unwrap_or(&beginning[..end]);
    let line = line.strip_prefix(b"\"").and_then(|l| l.strip_suffix(b"\"")).unwrap_or(line);
    let (name, byte) = line.split_at_checked(4)?;
    match byte {
        [byte @ (b',' | b';' | b'\t' | b'|')] if name.eq_ignore_ascii_case(b"sep=") => {
            Some((*byte, end + 1))
        }
        _ => None,
    }
}

/// The separator that stands most often in the first line.
fn delimiter(beginning: &[u8]) -> u8 {
    let line = beginning.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let count = |separator: &u8| line.iter().filter(|&byte| byte == separator).count();
    // Of equals the last wins: a comma.
    [b'|', b';', b'\t', b','].into_iter().max_by_key(count).unwrap_or(b',')
}

/// Text that is refused where one row does not end, as after a quote that is never closed.
struct Guarded {
    text: Rest,
    since_row: Rc<Cell<usize>>,
    odd_quotes: Rc<Cell<bool>>,
}

impl Read for Guarded {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.since_row.get() > LONGEST {
            return Err(io::Error::other("a row longer than 16 MiB: is a quote left open?"));
        }
        let available = self.text.fill_buf()?;
        let count = available.len().min(buffer.len());
        buffer[..count].copy_from_slice(&available[..count]);
        self.text.consume(count);
        let quotes = memchr::memchr_iter(b'"', &buffer[..count]).count();
        self.odd_quotes.set(self.odd_quotes.get() ^ (quotes % 2 == 1));
        self.since_row.set(self.since_row.get() + count);
        Ok(count)
    }
}

struct Lines {
    text: Text,
    titles: Vec<String>,
    /// Whether the first line is still to be given as a row.
    again: bool,
    row: u64,
    /// Where the last row began, if it goes over several lines.
    spans_lines: Option<u64>,
}

impl Rows for Lines {
    fn titles(&self) -> &[String] {
        &self.titles
    }

    fn separator(&self) -> Option<Separator> {
        Some(self.text.separator)
    }

    fn read(&mut self, row: &mut ByteRecord) -> Step {
        self.text.since_row.set(0);
        if self.again {
            self.again = false;
            row.clone_from(&self.text.first);
        } else {
            match self.text.reader.read_byte_record(row) {
                Ok(true) => {}
                Ok(false) => return self.end(),
                Err(error) => return Step::Cut(error.to_string()),
            }
        }
        self.row += 1;
        let before = u64::from(self.text.separator.said);
        let line = row.position().map_or(self.row, csv::Position::line) + before;
        let over_lines = memchr::memchr(b'\n', row.as_slice()).is_some();
        self.spans_lines = over_lines.then_some(line);
        if row.len() == self.titles.len() {
            return Step::Row;
        }
        Step::Fault(
            Fault::RaggedRow,
            format!("line {line}: {} instead of {}", counted(row.len(), "cell"), self.titles.len()),
        )
    }
}

impl Lines {
    /// The end of the text. Quotes come in pairs: where one is left over and the last row goes over
    /// several lines, it has swallowed rows.
    fn end(&mut self) -> Step {
        match self.spans_lines.take() {
            Some(line) if self.text.odd_quotes.get() => Step::Cut(format!(
                "a quote in the row that begins in line {line} is not closed: the lines after it are read as part of a cell"
            )),
            _ => Step::End,
        }
    }
}
