//! Tables that benchmark scripts on top of `torch.distributed` and spreadsheets hold: a title for
//! every column, in any order and unit.
//!
//! Units come from the titles or stand behind the numbers. Where neither says, the figures must:
//! size, time and bandwidth of all rows together allow one reading or several. Several are none,
//! and the rows are reported as lost.

mod cells;
mod header;
mod reading;
mod unit;

use foretrain_core::{DType, Ledger};
use foretrain_graph::CollectiveKind;

use super::draft::Draft;
use super::kind::kind_of;
use super::number::{Printed, integer};
use super::table::record_lost;
use cells::{Gap, quantity};
use header::{Header, Role};
use unit::Unit;

/// Whether a line holds the titles of such a table.
pub(super) fn is_header(line: &str) -> bool {
    Header::of(line).is_some()
}

/// What is known of the benchmark before its table.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Program {
    /// The operation that the log names.
    pub(super) said: Option<CollectiveKind>,
    /// The operation that is taken for it: also from whoever asks, or the file's name.
    pub(super) kind: Option<CollectiveKind>,
    /// Devices that take part.
    pub(super) devices: Option<u32>,
}

/// Reads such tables out of a text, line by line.
#[derive(Default)]
pub(super) struct Sweeps {
    open: Option<Table>,
    drafts: Vec<Draft>,
}

/// A table that is being read.
struct Table {
    header: Header,
    program: Program,
    rows: Vec<Cells>,
}

/// A printed figure, and its unit if that is known.
type Figure = (Printed, Option<Unit>);

/// The cells of one row.
#[derive(Clone, Debug)]
struct Cells {
    line: u64,
    size: Figure,
    /// Bytes as elements times their size.
    product: Option<u64>,
    count: Option<u64>,
    dtype: Option<DType>,
    kind: Option<CollectiveKind>,
    ranks: Option<u32>,
    nodes: Option<u32>,
    time: Option<Figure>,
    processor: Option<Figure>,
    algbw: Option<Figure>,
    busbw: Option<Figure>,
}

impl Sweeps {
    /// Tries a line as titles or as a row. `shown` is the line without what launchers put before
    /// it, which may be the first cell of a table with bars: so both are tried.
    pub(super) fn line(
        &mut self,
        number: u64,
        line: &str,
        shown: &str,
        program: Program,
        ledger: &mut Ledger,
    ) -> bool {
        let both = [line.trim(), shown];
        if let Some(header) = both.iter().find_map(|text| Header::of(text)) {
            self.end(ledger);
            self.open = Some(Table { header, program, rows: Vec::new() });
            return true;
        }
        let Some(table) = &mut self.open else { return false };
        if let Some(row) = both.iter().find_map(|text| table.header.row(number, text)) {
            ledger.cover("rows", 0, 1);
            table.rows.push(row);
            return true;
        }
        let torn = both.iter().any(|text| table.header.resembles(text));
        if torn {
            ledger.cover("rows", 0, 1);
            record_lost(number, "its cells are not those of the titles", ledger);
        }
        torn
    }

    /// What follows belongs to another table.
    pub(super) fn end(&mut self, ledger: &mut Ledger) {
        if let Some(table) = self.open.take() {
            reading::drafts(&table.rows, table.program, &mut self.drafts, ledger);
        }
    }

    /// All tables.
    pub(super) fn finish(mut self, ledger: &mut Ledger) -> Vec<Draft> {
        self.end(ledger);
        self.drafts
    }
}

impl Header {
    fn row(&self, line: u64, text: &str) -> Option<Cells> {
        let cells = self.gap.cells(text);
        if cells.len() != self.columns.len() {
            return None;
        }
        let (mut size, mut time, mut algbw, mut busbw) = (None, None, None, None);
        let mut processor = None;
        let (mut product, mut count, mut dtype) = (None, None, None);
        let (mut kind, mut ranks, mut nodes) = (None, None, None);
        for ((role, unit), cell) in self.columns.iter().zip(&cells) {
            let figure = || {
                let (number, own) = quantity(cell)?;
                number.sane()?;
                Some((number, own.or(*unit)))
            };
            match role {
                Role::Size => size = Some(figure()?),
                Role::Time => time = Some(figure()?),
                // A row without it is still good.
                Role::Processor => processor = figure(),
                Role::AlgBw => algbw = Some(figure()?),
                Role::BusBw => busbw = Some(figure()?),
                Role::Kind => kind = Some(kind_of(cell)?),
                Role::Ranks => ranks = Some(integer(cell)?.try_into().ok()?),
                // Not every row of a table needs to know.
                Role::Nodes => nodes = integer(cell).and_then(|count| count.try_into().ok()),
                Role::Type => dtype = DType::parse(cell),
                Role::Count => count = integer(cell),
                Role::Product => product = times(cell),
                Role::Other => {}
            }
        }
        let size = size.filter(|(number, _)| number.value > 0.0)?;
        Some(Cells {
            line,
            size,
            product,
            count,
            dtype,
            kind,
            ranks,
            nodes,
            time,
            processor,
            algbw,
            busbw,
        })
    }

    /// Whether a line that is no row was meant to be one: it begins like one, and has bars, as many
    /// cells or is mostly numbers.
    fn resembles(&self, text: &str) -> bool {
        let cells = self.gap.cells(text);
        let is_number = |cell: &String| quantity(cell).is_some();
        let begins = cells.first().is_some_and(|cell| {
            is_number(cell) || (self.columns[0].0 == Role::Kind && kind_of(cell).is_some())
        });
        let numbers = cells.iter().filter(|cell| is_number(cell)).count();
        let as_many = self.gap != Gap::Blanks && cells.len() == self.columns.len();
        // Much longer rows are another table's.
        let fits = self.gap != Gap::Blanks || cells.len() <= self.columns.len();
        let barred = self.gap == Gap::Bar && text.contains('|');
        begins && (barred || as_many || (fits && numbers >= 2 && numbers * 2 > self.columns.len()))
    }
}

/// `1048576x4`.
fn times(cell: &str) -> Option<u64> {
    let (elements, bytes) = cell.split_once('x')?;
    integer(elements)?.checked_mul(integer(bytes)?).filter(|bytes| *bytes > 0)
}
