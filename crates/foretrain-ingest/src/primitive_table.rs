//! Tables of measured synchronisation primitives: CSV with the columns `operation`, `bytes` and
//! `time_us` or `time_ns`, one time per row.
//!
//! Rows may come in any order and repeat. Columns that are not known are ignored, lines that begin
//! with `#` are comments. A bad row costs that row only; its line is in the ledger.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use foretrain_core::{Bytes, InputError, Ledger, Result, Severity};
use foretrain_cost::primitives::{Measured, Operation};

use crate::collective_log::{fields, for_each_line, kind_of};
use crate::source::{open, open_bytes};

/// Reads a table, plain or packed.
///
/// # Errors
/// If the file cannot be read, lacks a column or holds no row that can be used.
pub fn read(path: &Path) -> Result<(Measured, Ledger)> {
    read_text(open(path, false, &Arc::default())?, &path.display().to_string())
}

/// Reads a table from memory, plain or packed. `path` is for messages.
///
/// # Errors
/// As [`read`].
pub fn read_bytes(bytes: &[u8], path: &str) -> Result<(Measured, Ledger)> {
    read_text(open_bytes(bytes).map_err(|error| InputError::io(&error, path))?, path)
}

/// Whether a text that begins so is such a table: by its titles, which logs of collectives may have
/// too, and a row of an operation that is no collective. `head` may end anywhere.
pub fn looks_like(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head);
    let mut lines = text.lines().filter_map(filled);
    let header = lines.next().and_then(|line| Header::of(line, 0, &mut Ledger::new()).ok());
    let is_own = |operation: &str| kind_of(operation).is_none();
    header.is_some_and(|header| {
        lines.any(|line| {
            fields(line)
                .get(header.operation)
                .is_some_and(|cell| is_own(cell) && Operation::parse(cell).is_ok())
        })
    })
}

/// The text of a table of such times, in nanoseconds.
pub fn text(measured: &Measured) -> String {
    let mut text = String::from("operation,bytes,time_ns\n");
    for (operation, bytes, ns) in measured.times() {
        text.push_str(&format!("{},{},{ns}\n", operation.describe(), bytes.get()));
    }
    text
}

fn read_text(text: impl Read, path: &str) -> Result<(Measured, Ledger)> {
    let (mut table, mut ledger) = (Table::default(), Ledger::new());
    for_each_line(text, path, &mut ledger, |number, line, ledger| {
        table.line(number, line, ledger);
    })?;
    let Table { header, measured, rows, good } = table;
    header.unwrap_or_else(|| Err(expected("an empty table"))).map_err(|e| e.in_file(path))?;
    if good == 0 {
        let error = InputError::new("no row of the table can be used").in_file(path);
        let first = ledger.findings().find(|finding| finding.severity == Severity::Dropped);
        let why = first.map_or_else(|| "there are none".into(), ToString::to_string);
        return Err(error.hint(why));
    }
    ledger.cover("rows", good, rows);
    Ok((measured, ledger))
}

/// Where the columns are.
#[derive(Clone, Copy, Debug)]
struct Header {
    operation: usize,
    bytes: usize,
    time: usize,
    /// Nanoseconds of the time's unit.
    unit_ns: f64,
}

#[derive(Default)]
struct Table {
    header: Option<Result<Header>>,
    measured: Measured,
    rows: u64,
    good: u64,
}

/// A byte order mark, which spreadsheets write.
const MARK: char = '\u{feff}';

/// A line without the mark and blanks around it; `None` if nothing is left, or a comment.
fn filled(line: &str) -> Option<&str> {
    let line = line.trim_start_matches(MARK).trim();
    (!line.is_empty() && !line.starts_with('#')).then_some(line)
}

impl Table {
    fn line(&mut self, number: u64, line: &str, ledger: &mut Ledger) {
        let Some(line) = filled(line) else { return };
        match &self.header {
            None => self.header = Some(Header::of(line, number, ledger)),
            Some(Err(_)) => {}
            Some(Ok(header)) => {
                self.rows += 1;
                if self.measured.is_full() {
                    let message = "more rows than are kept; the first ones were used";
                    ledger.record_at(Severity::Dropped, "too-many-rows", message, || {
                        format!("line {number}")
                    });
                    return;
                }
                match header.row(line) {
                    Ok((operation, bytes, ns)) if self.measured.push(operation, bytes, ns) => {
                        self.good += 1;
                    }
                    Ok(_) => {
                        let message = "a time is longer than any";
                        ledger.record_at(Severity::Dropped, "long-time", message, || {
                            format!("line {number}")
                        });
                    }
                    Err((code, message, found)) => {
                        ledger.record_at(Severity::Dropped, code, message, || {
                            format!("line {number}: {found}")
                        });
                    }
                }
            }
        }
    }
}

/// Code and message for the ledger, and what was found.
type Fault = (&'static str, &'static str, String);

impl Header {
    fn of(line: &str, number: u64, ledger: &mut Ledger) -> Result<Self> {
        let titles: Vec<String> = fields(line).iter().map(|title| title.to_lowercase()).collect();
        let at = |name: &str| titles.iter().position(|title| title == name);
        let time = at("time_ns").map(|at| (at, 1.0));
        let time = time.or_else(|| at("time_us").map(|at| (at, 1e3)));
        let (Some(operation), Some(bytes), Some((time, unit_ns))) =
            (at("operation"), at("bytes"), time)
        else {
            return Err(expected("columns are missing").at(format!("line {number}")));
        };
        for (index, title) in titles.iter().enumerate() {
            if ![operation, bytes, time].contains(&index) {
                let message = "a column that says nothing here was ignored";
                ledger.record_at(Severity::Note, "unknown-column", message, || {
                    format!("line {number}: {}", cut(title))
                });
            }
        }
        Ok(Self { operation, bytes, time, unit_ns })
    }

    fn row(&self, line: &str) -> Result<(Operation, Bytes, f64), Fault> {
        let fields = fields(line);
        let [operation, bytes, time] =
            [self.operation, self.bytes, self.time].map(|at| fields.get(at).map(String::as_str));
        let (Some(operation), Some(bytes), Some(time)) = (operation, bytes, time) else {
            return Err(("short-row", "a row has too few columns", cut(line)));
        };
        let known = Operation::parse(operation).map_err(|error| {
            ("unknown-operation", "a row is of no primitive", error.message().to_owned())
        })?;
        let size = bytes.parse::<u64>().map_err(|_| {
            ("bad-size", "a size is no whole number of bytes", format!("\"{}\"", cut(bytes)))
        })?;
        let ns = time.parse::<f64>().ok().map(|time| time * self.unit_ns);
        match ns.filter(|ns| *ns > 0.0) {
            Some(ns) => Ok((known, Bytes::new(size), ns)),
            None => Err(("bad-time", "a time is no positive number", format!("\"{}\"", cut(time)))),
        }
    }
}

/// Enough of a text to recognise it.
fn cut(text: &str) -> String {
    text.chars().take(40).collect()
}

fn expected(what: &str) -> InputError {
    InputError::new(format!("expected a table of measured primitives, found {what}")).hint(
        "its first line names the columns operation, bytes and time_us or time_ns, separated by \
         commas",
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Result<(Measured, Ledger)> {
        read_bytes(text.as_bytes(), "table.csv")
    }

    #[test]
    fn rows_tell_it_from_a_log_of_collectives() {
        let titles = "# made up\noperation,bytes,time_us\n";
        let is_own = |rows: &str| looks_like(format!("{titles}{rows}").as_bytes());
        assert!(is_own("send,4096,9\naggregate,4096,5\n"));
        assert!(!is_own("send,4096,9\nall_reduce,4096,5\n") && !is_own("") && !is_own("x,1,1\n"));
        assert!(!looks_like(b"op,bytes,time_us\naggregate,4096,5\n"));
        // Titles that never end are read once.
        assert!(is_own(&(titles.repeat(40_000) + "copy,4096,5\n")));
    }

    #[test]
    fn columns_come_in_any_order_and_unit() {
        let text = "\u{feff}Bytes,Time_us,note,Operation\n# idle machine\n\n\
                    1024,1.5,x,send\n1024, 2.5 ,\"a, b\",\"encode top-k\"\n";
        let (measured, ledger) = read(text).unwrap();
        let send = measured.points(Operation::Send);
        assert_eq!((send[0].bytes.get(), send[0].median_ns), (1_024, 1_500.0));
        assert_eq!(measured.times().count(), 2);
        assert_eq!(ledger.get("unknown-column").unwrap().places, ["line 1: note"]);
        assert_eq!(ledger.coverage("rows").unwrap().used, 2);
    }

    #[test]
    fn what_is_written_reads_back() {
        let mut measured = Measured::default();
        for (at, operation) in Operation::all().enumerate() {
            assert!(measured.push(operation, Bytes::new(1 << at), 0.1 + at as f64));
        }
        assert_eq!(read(&text(&measured)).unwrap().0, measured);
    }

    #[test]
    fn bad_rows_are_told_by_their_lines() {
        let text = "operation,bytes,time_ns\nsend,1,1\npush,1,1\nsend,x,1\nsend,1,-3\nsend,1,nan\nsend\nsend,1,1e99\n";
        let (measured, ledger) = read(text).unwrap();
        assert_eq!(measured.times().count(), 1);
        let place = |code| ledger.get(code).unwrap().places.join("; ");
        assert_eq!(place("unknown-operation"), "line 3: no primitive \"push\"");
        assert_eq!(place("bad-size"), "line 4: \"x\"");
        assert_eq!(place("bad-time"), "line 5: \"-3\"; line 6: \"nan\"");
        assert_eq!(place("short-row"), "line 7: send");
        assert_eq!(place("long-time"), "line 8");
        assert_eq!(ledger.coverage("rows").unwrap().total, 7);
    }

    #[test]
    fn what_is_no_such_table_is_refused() {
        for (text, word) in [
            ("", "an empty table"),
            ("a,b\n1,2\n", "columns are missing (line 1 of table.csv)"),
            ("operation,bytes,time\n", "columns are missing"),
            ("operation,bytes,time_ns\n", "no row"),
            ("operation,bytes,time_ns\npush,1,1\n", "no row"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.to_string().contains(word), "{text:?}: {error}");
        }
        let error = read("operation,bytes,time_ns\npush,1,1\n").unwrap_err();
        assert!(error.hints()[0].contains("line 2: no primitive \"push\""), "{error:?}");
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "\\PC*", bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&text);
            let _ = read_bytes(&bytes, "x");
        }

        #[test]
        fn no_rows_make_it_panic(rows in "((send|copy|encode half|x)?,[-+0-9.einf]{0,6},[-+0-9.einfa]{0,8},?\"?[\r\n]){0,20}") {
            if let Ok((measured, ledger)) = read(&format!("operation,bytes,time_us\n{rows}")) {
                prop_assert!(measured.times().all(|(_, _, ns)| ns.is_finite() && ns > 0.0));
                prop_assert_eq!(ledger.coverage("rows").unwrap().used, measured.times().count() as u64);
                if let Ok(fitted) = measured.fit("a test") {
                    prop_assert!(fitted.lines.iter().all(|line| line.fit.cost.ns(1e9).is_finite()));
                }
            }
        }
    }
}
