//! A table of jobs, opened: what it is, what its columns hold, and its rows one after the other.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use csv::ByteRecord;
use foretrain_core::{InputError, Ledger, Result, Severity};

use super::bind::{Binding, Bound, bind};
use super::decode::Decoder;
use super::fault::{Fault, Faults};
use super::field::{ColumnHint, Field};
use super::job::Job;
use super::layout::Layout;
use super::read::{self, Opened, Rows, Step};
use super::recognise::{header_beside, kind_of, titled};
use super::schema::{Kind, PLAIN, Schema};
use super::settle::settle;
use super::steps::Steps;

/// What the user says of a table.
#[derive(Clone, Debug, Default)]
pub struct TableOptions {
    /// Its schema, in place of what its titles tell.
    pub schema: Option<&'static Schema>,
    /// What columns hold, in place of what the schema or titles say.
    pub columns: Vec<ColumnHint>,
}

/// Rows that are looked at to tell what columns hold.
const AHEAD: usize = 512;
/// No more rows are looked at once they have so many bytes.
const AHEAD_BYTES: usize = 8 << 20;

/// A table that has been opened and whose rows have not been read yet.
pub struct Table {
    name: String,
    schema: &'static Schema,
    kind: Kind,
    bound: Bound,
    layout: Option<Layout>,
    rows: Box<dyn Rows>,
    ahead: VecDeque<Ahead>,
    steps: Option<Steps>,
}

/// What was read ahead.
enum Ahead {
    Row(ByteRecord),
    Other(Step),
}

/// What reading a table met.
#[derive(Debug, Default)]
pub struct TableRead {
    /// Rows of the table, those that were left out included; where it is cut short one for all that
    /// is missing. Steps of jobs that have a row of their own do not count.
    pub rows: u64,
    /// Rows that were handed on.
    pub given: u64,
    /// What was wrong.
    pub faults: Faults,
    /// Why it ended before the file did.
    pub cut: Option<String>,
    /// Dates that state their zone.
    pub zoned: u64,
    /// Dates that do not.
    pub unzoned: u64,
}

impl Table {
    /// Opens a table.
    ///
    /// # Errors
    /// If the file cannot be read, is no table, or none of its columns is known.
    pub fn open(path: &Path, options: &TableOptions) -> Result<Self> {
        Self::open_some(path, options, None)
    }

    /// Opens tables that belong together. What the user says of columns goes for the tables that have
    /// them.
    ///
    /// # Errors
    /// As of [`Table::open`], or if none has a column that the user names.
    pub fn open_all(paths: &[PathBuf], options: &TableOptions) -> Result<Vec<Self>> {
        if let [path] = paths {
            return Ok(vec![Self::open(path, options)?]);
        }
        let mut met = vec![false; options.columns.len()];
        let tables = paths.iter().map(|path| Self::open_some(path, options, Some(&mut met)));
        let tables = tables.collect::<Result<Vec<Self>>>()?;
        match options.columns.iter().zip(&met).find(|(_, met)| !**met) {
            Some((hint, _)) => {
                let error = InputError::new(format!("no table has a column {:?}", hint.column));
                Err(error.hint("--column FIELD=COLUMN takes the title of a column"))
            }
            None => Ok(tables),
        }
    }

    fn open_some(path: &Path, options: &TableOptions, met: Option<&mut [bool]>) -> Result<Self> {
        let opened = read::open(path)?;
        let stem = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Self::new(opened, path.display().to_string(), &stem, header_beside(path), options, met)
            .map_err(|error| error.in_file(path))
    }

    /// Opens a table of text that is in memory.
    ///
    /// # Errors
    /// As of [`Table::open`].
    pub fn from_bytes(name: &str, bytes: Vec<u8>, options: &TableOptions) -> Result<Self> {
        let opened = read::open_bytes(bytes).map_err(|error| error.in_file(name))?;
        Self::new(opened, name.to_owned(), name, None, options, None)
            .map_err(|error| error.in_file(name))
    }

    fn new(
        opened: Opened,
        name: String,
        stem: &str,
        header: Option<Vec<String>>,
        options: &TableOptions,
        met: Option<&mut [bool]>,
    ) -> Result<Self> {
        let (mut rows, schema) = titled(opened, stem, header, options.schema)?;
        let mut ahead = VecDeque::new();
        let mut bytes = 0;
        while ahead.len() < AHEAD && bytes < AHEAD_BYTES {
            let mut row = ByteRecord::new();
            let last = match rows.read(&mut row) {
                Step::Row => {
                    bytes += row.as_slice().len();
                    ahead.push_back(Ahead::Row(row));
                    false
                }
                step => {
                    let last = matches!(step, Step::End | Step::Cut(_));
                    ahead.push_back(Ahead::Other(step));
                    last
                }
            };
            if last {
                break;
            }
        }
        let sample: Vec<ByteRecord> = ahead
            .iter()
            .filter_map(|ahead| match ahead {
                Ahead::Row(row) => Some(row.clone()),
                Ahead::Other(_) => None,
            })
            .collect();
        let hints: Cow<'_, [ColumnHint]> = match met {
            None => Cow::Borrowed(&options.columns),
            Some(met) => {
                let has = |hint: &ColumnHint| {
                    rows.titles().iter().any(|title| title.eq_ignore_ascii_case(&hint.column))
                };
                let own = options.columns.iter().zip(met).filter(|(hint, _)| has(hint));
                own.map(|(hint, met)| {
                    *met = true;
                    hint.clone()
                })
                .collect()
            }
        };
        let layout = match schema.kind {
            Kind::Samples => {
                let mut known = schema.columns.iter().filter(|c| c.field == Field::Utilisation);
                Layout::find(rows.titles(), &sample, known.next().map(|c| c.unit), &hints)
            }
            Kind::Jobs if std::ptr::eq(schema, &raw const PLAIN) && Layout::allows(&hints) => {
                Layout::find(rows.titles(), &sample, None, &hints)
            }
            _ => None,
        };
        let mut bound = bind(rows.as_ref(), schema, &hints, &sample)?;
        let kind = match layout {
            Some(_) => Kind::Samples,
            None => kind_of(schema, &mut bound)?,
        };
        // Samples are read from columns of their own.
        if layout.is_none() {
            let columns: Vec<usize> = bound.bindings.iter().map(|b| b.column).collect();
            if rows.keep(&columns)? {
                ahead.clear();
            }
        }
        let steps = match kind {
            Kind::Jobs => Steps::of(rows.titles(), &bound.bindings, &sample),
            _ => None,
        };
        Ok(Self { name, schema, kind, bound, layout, rows, ahead, steps })
    }

    /// The file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its schema.
    pub fn schema(&self) -> &'static Schema {
        self.schema
    }

    /// What its rows are about.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The columns that are read.
    pub fn bindings(&self) -> &[Binding] {
        &self.bound.bindings
    }

    /// Titles of columns that nothing is read from.
    pub fn unused(&self) -> &[String] {
        &self.bound.unused
    }

    /// Whether a field has a column.
    pub fn has(&self, field: Field) -> bool {
        self.bound.has(field)
    }

    /// Hands every row to `visit`, one after the other.
    pub fn for_each(mut self, mut visit: impl FnMut(&Job)) -> TableRead {
        let mut decoder = Decoder::default();
        let mut read = TableRead::default();
        let (mut job, mut row) = (Job::default(), ByteRecord::new());
        let named = self.has(Field::Id) || self.has(Field::Alias);
        for (title, kind) in &self.bound.unread {
            decoder.faults.meet(Fault::UnreadType, || format!("column {title:?} of type {kind}"));
        }
        for (fault, place) in &self.bound.notes {
            decoder.faults.meet(*fault, || place.clone());
        }
        let mut steps = self.steps.take();
        while self.next_row(&mut row, &mut read, &mut decoder.faults) {
            if steps.as_mut().is_some_and(|steps| steps.is_step(&row)) {
                let id = || steps.as_ref().map(|steps| steps.id(&row)).unwrap_or_default();
                decoder.faults.meet(Fault::StepRow, || format!("row {}: {:?}", read.rows, id()));
                continue;
            }
            job.clear();
            job.row = read.rows;
            decoder.row(&self.bound.bindings, &row, &mut job);
            if let Some(complete) = self.schema.complete {
                complete(&mut job);
            }
            if self.kind != Kind::Machines {
                settle(&mut job, named, &mut decoder.faults);
            }
            read.given += 1;
            visit(&job);
        }
        read.rows -= decoder.faults.count(Fault::StepRow);
        TableRead { faults: decoder.faults, zoned: decoder.zoned, unzoned: decoder.unzoned, ..read }
    }

    /// The next row; counts rows, and what is none.
    pub(super) fn next_row(
        &mut self,
        row: &mut ByteRecord,
        read: &mut TableRead,
        faults: &mut Faults,
    ) -> bool {
        loop {
            let step = match self.ahead.pop_front() {
                Some(Ahead::Row(ahead)) => {
                    *row = ahead;
                    Step::Row
                }
                Some(Ahead::Other(step)) => step,
                None => self.rows.read(row),
            };
            match step {
                Step::Row => {
                    read.rows += 1;
                    return true;
                }
                Step::Fault(fault, place) => {
                    // These are of a row that comes too.
                    let of_a_row = matches!(fault, Fault::LateKey | Fault::Unreadable);
                    read.rows += u64::from(!of_a_row);
                    faults.meet(fault, || place);
                }
                Step::End => return false,
                Step::Cut(why) => {
                    // At least one row is lost; how many more, nobody knows.
                    read.rows += 1;
                    read.cut = Some(why);
                    return false;
                }
            }
        }
    }

    /// Rows that were read ahead.
    pub(super) fn rows_ahead(&self) -> impl Iterator<Item = &ByteRecord> {
        self.ahead.iter().filter_map(|ahead| match ahead {
            Ahead::Row(row) => Some(row),
            Ahead::Other(_) => None,
        })
    }

    pub(super) fn layout(&self) -> Option<&Layout> {
        self.layout.as_ref()
    }
}

impl TableRead {
    /// Writes what was met to a ledger.
    pub fn record(&self, ledger: &mut Ledger) {
        self.faults.record(ledger);
        if let Some(why) = &self.cut {
            ledger.record_at(
                Severity::Dropped,
                "cut-short",
                "the file cannot be read to its end; what comes before is used",
                || format!("after row {}: {why}", self.rows.saturating_sub(1)),
            );
        }
        let (code, message) = match (self.zoned, self.unzoned) {
            (_, 0) => return,
            (0, _) => ("dates-without-zone", "dates without a time zone, read as UTC"),
            _ => (
                "dates-with-and-without-zone",
                "dates without a time zone beside others that have one, read as UTC",
            ),
        };
        let severity = if self.zoned > 0 { Severity::Warning } else { Severity::Note };
        ledger.record_many(severity, code, message, self.unzoned, None);
    }
}
