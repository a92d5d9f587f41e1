//! Tables among everything else that a job prints.

use std::collections::BTreeMap;
use std::io::Read;

use foretrain_core::{Ledger, Result, Severity};
use foretrain_graph::CollectiveKind;

use super::columns::Columns;
use super::context::Context;
use super::csv::{CsvRow, Header};
use super::draft::{Draft, DraftRow};
use super::facts::{Facts, Remark, remark};
use super::kind::kind_of;
use super::lines::for_each_line;
use super::nccl::{Collector, NcclFacts};
use super::prefix::{self, Line};
use super::row::{self, Parsed};
use super::sweep::{Program, Sweeps};
use super::{check, json, long};

/// Processes told apart; the lines of further ones are taken together.
const MOST_SOURCES: usize = 4096;
/// Lines that a terminal may have broken one row into.
const MOST_PIECES: usize = 4;
const TORN: &str = "something else was printed in the middle of it";

/// Reads all tables of a text, and what NCCL says in it. `asked` is the operation, if that is said.
///
/// # Errors
/// If nothing can be read.
pub(super) fn read(
    text: impl Read,
    path: &str,
    asked: Option<CollectiveKind>,
    ledger: &mut Ledger,
) -> Result<(Vec<Draft>, NcclFacts)> {
    let named = kind_of(path.rsplit(['/', '\\']).next().unwrap_or(path));
    let mut reader = Reader { asked, named, ..Reader::default() };
    for_each_line(text, path, ledger, |number, line, ledger| reader.line(number, line, ledger))?;
    Ok(reader.finish(ledger))
}

/// Records that a row could not be taken.
pub(super) fn record_lost(line: u64, why: &str, ledger: &mut Ledger) {
    let message = "row of a table that is torn or damaged; it was left out, not guessed";
    ledger.record_at(Severity::Dropped, "row-lost", message, || match line {
        0 => why.to_owned(),
        line => format!("line {line}: {why}"),
    });
}

#[derive(Default)]
struct Reader {
    /// By label: several processes may print tables at the same time.
    tables: BTreeMap<String, Table>,
    /// Finished tables.
    drafts: Vec<Draft>,
    /// Tables of records rather than rows.
    records: Vec<Draft>,
    sweeps: Sweeps,
    nccl: Collector,
    context: Context,
    /// The operation that is asked for, and the one that the file's name tells.
    asked: Option<CollectiveKind>,
    named: Option<CollectiveKind>,
}

/// The table that one process is printing.
#[derive(Default)]
struct Table {
    draft: Draft,
    columns: Option<Columns>,
    /// The header and its line; it may have told no columns.
    header: Option<(String, u64)>,
    csv: Option<Header>,
    /// The pieces of a row so far, with the lines of the first and the last.
    pending: Option<(Vec<String>, u64, u64)>,
    /// The last row was lost; numbers that follow are its rest.
    torn: bool,
    /// Programs that were named when this process last took one.
    programs: u64,
}

impl Reader {
    fn line(&mut self, number: u64, line: &str, ledger: &mut Ledger) {
        let Line { source, text } = prefix::strip(line);
        self.nccl.line(line, number, ledger);
        if json::line(text, number, &mut self.records, ledger) {
            return;
        }
        if Columns::of_header(text).is_some() || Header::of(text).is_some() {
            self.sweeps.end(ledger);
        } else {
            let (said, devices) = self.context.program;
            let kind = self.asked.or(said).or(self.named);
            let program = Program { said, kind, devices };
            if self.sweeps.line(number, line, text, program, ledger) {
                return;
            }
        }
        let known = self.tables.contains_key(source) || self.tables.len() < MOST_SOURCES;
        let table =
            self.tables.entry(if known { source.into() } else { String::new() }).or_default();
        if table.rest_of_row(number, text, &self.context, ledger) {
            return;
        }
        if let Some(header) = Header::of(text) {
            table.end(&self.context, &mut self.drafts, ledger);
            table.csv = Some(header);
        } else if let Some(row) = table.csv.as_ref().and_then(|header| header.row(text)) {
            table.csv_row(row, number, &self.context, &mut self.records, ledger);
        } else if table.csv.as_ref().is_some_and(|header| header.resembles(text)) {
            table.lose(number, "its fields are not those of the header", true, ledger);
        } else if Columns::announced_by(text) {
            table.end(&self.context, &mut self.drafts, ledger);
            table.open(Columns::of_header(text), text, number);
        } else if table.goes_on_with_header(number, text) {
        } else if !table.row(number, text, &self.context, ledger)
            && let Some(remark) = remark(text)
        {
            self.context.learn(&remark);
            table.remark(remark, number, &self.context, &mut self.drafts, ledger);
        }
    }

    fn finish(mut self, ledger: &mut Ledger) -> (Vec<Draft>, NcclFacts) {
        for table in self.tables.values_mut() {
            table.end(&self.context, &mut self.drafts, ledger);
        }
        self.drafts.append(&mut self.records);
        self.drafts.append(&mut self.sweeps.finish(ledger));
        self.drafts.sort_by_key(|draft| draft.rows.first().map(|row| row.line));
        (self.drafts, self.nccl.finish())
    }
}

impl Table {
    /// Whether rows are to be expected.
    fn is_open(&self) -> bool {
        self.header.is_some() || !self.draft.rows.is_empty()
    }

    fn open(&mut self, columns: Option<Columns>, header: &str, line: u64) {
        self.draft.cpu_time = columns.as_ref().is_some_and(|columns| columns.cpu_time);
        self.columns = columns;
        self.header = Some((header.to_owned(), line));
    }

    /// Tries a line as the rest of a header that a terminal has wrapped.
    fn goes_on_with_header(&mut self, line: u64, text: &str) -> bool {
        let Some((header, at)) = self.header.as_ref().filter(|(_, at)| at + 1 == line) else {
            return false;
        };
        let Some(columns) = Columns::of_wrapped_header(header, text) else { return false };
        let (header, at) = (format!("{header} {text}"), *at);
        self.open(Some(columns), &header, at);
        true
    }

    /// Tries a line as the rest of a row that a terminal has wrapped.
    fn rest_of_row(
        &mut self,
        line: u64,
        text: &str,
        context: &Context,
        ledger: &mut Ledger,
    ) -> bool {
        let Some((mut pieces, first, last)) = self.pending.take() else { return false };
        let continues =
            |word: &str| word.bytes().all(|b| b.is_ascii_digit() || b"./*+-eNA".contains(&b));
        if line != last + 1 || text.is_empty() || !text.split_whitespace().all(continues) {
            self.lose(first, TORN, true, ledger);
            return false;
        }
        pieces.push(text.to_owned());
        if let Some(row) = joined(&pieces, self.columns.as_ref()) {
            let message = "row that was wrapped over several lines, put together";
            ledger
                .record_at(Severity::Repaired, "row-wrapped", message, || format!("line {first}"));
            self.take(row, first, context, ledger);
        } else if pieces.len() < MOST_PIECES {
            self.pending = Some((pieces, first, line));
        } else {
            self.lose(first, "its parts do not make one", true, ledger);
        }
        true
    }

    /// Takes the row on a line; `false` if there is none.
    fn row(&mut self, line: u64, text: &str, context: &Context, ledger: &mut Ledger) -> bool {
        let mut parsed = row::parse(text, self.columns.as_ref());
        if self.columns.is_some() && !matches!(parsed, Parsed::Row { clean: true, .. }) {
            // The header itself may be torn or wrapped; a row that is whole without it tells.
            let alone = row::parse(text, None);
            if matches!(&alone, Parsed::Row { row, clean: true } if check::is_whole(row)) {
                self.columns = None;
                parsed = alone;
            }
        }
        match parsed {
            Parsed::Row { row, clean: true }
                if check::is_whole(&row)
                    || (self.columns.is_some() && check::is_credible(&row)) =>
            {
                self.take(*row, line, context, ledger);
            }
            Parsed::Row { row, clean: false } if check::is_whole(&row) => {
                let message = "row with other text on its line; its figures belong together";
                ledger.record_at(Severity::Repaired, "row-in-text", message, || {
                    format!("line {line}")
                });
                self.take(*row, line, context, ledger);
            }
            Parsed::Row { .. } => {
                self.lose(line, "its figures do not belong together", false, ledger);
            }
            Parsed::Cut if self.is_open() => {
                self.pending = Some((vec![text.to_owned()], line, line));
            }
            Parsed::Broken { begins } if self.is_open() => self.lose(line, TORN, begins, ledger),
            _ => return false,
        }
        true
    }

    fn csv_row(
        &mut self,
        row: CsvRow,
        line: u64,
        context: &Context,
        records: &mut Vec<Draft>,
        ledger: &mut Ledger,
    ) {
        match row {
            CsvRow::Wide(row) => self.take(*row, line, context, ledger),
            CsvRow::Long { mut record, shifted } => {
                if shifted {
                    let message =
                        "CSV header without the column of nodes; columns moved into place";
                    ledger.record_at(Severity::Repaired, "csv-shifted", message, || {
                        format!("line {line}")
                    });
                }
                record.row.line = line;
                long::push(records, *record, ledger);
            }
        }
    }

    fn take(&mut self, mut row: DraftRow, line: u64, context: &Context, ledger: &mut Ledger) {
        ledger.cover("rows", 0, 1);
        row.line = line;
        self.torn = false;
        if self.draft.rows.is_empty() {
            if context.programs > self.programs && self.draft.facts.kind.is_none() {
                (self.draft.facts.kind, self.draft.facts.asked_for) = context.program;
            }
            self.programs = context.programs;
            if self.columns.is_none() && self.csv.is_none() {
                let message = "table without a header; columns taken from the shape of its rows";
                ledger
                    .record_at(Severity::Inferred, "no-header", message, || format!("line {line}"));
            }
        }
        self.draft.rows.push(row);
    }

    /// Records a lost row, unless the line may be the rest of one that is recorded already.
    fn lose(&mut self, line: u64, why: &str, begins: bool, ledger: &mut Ledger) {
        if begins || !self.torn {
            ledger.cover("rows", 0, 1);
            record_lost(line, why, ledger);
        }
        self.torn = true;
    }

    fn remark(
        &mut self,
        remark: Remark,
        line: u64,
        context: &Context,
        drafts: &mut Vec<Draft>,
        ledger: &mut Ledger,
    ) {
        match remark {
            Remark::Average(average) => {
                self.draft.printed_average = Some(average);
                let (columns, header) = (self.columns.clone(), self.header.clone());
                self.end(context, drafts, ledger);
                // An excerpt may go on without its header.
                (self.columns, self.header) = (columns, header);
            }
            Remark::Elision if self.is_open() => {
                let message = "rows left out by whoever made this excerpt";
                ledger.record_at(Severity::Note, "rows-elided", message, || format!("line {line}"));
            }
            Remark::Begin { .. } | Remark::Program { .. } | Remark::Rank { .. } => {
                self.end(context, drafts, ledger);
                // A program is noted in the context: other processes may print its table.
                if matches!(remark, Remark::Begin { .. }) {
                    // What an earlier run that printed no row left behind is not of this one.
                    self.draft.facts = Facts::default();
                }
                if !matches!(remark, Remark::Program { .. }) {
                    self.draft.facts.learn(remark);
                }
            }
            Remark::Communicator { .. } | Remark::Elision => {}
        }
    }

    /// Closes the table if it has rows.
    fn end(&mut self, context: &Context, drafts: &mut Vec<Draft>, ledger: &mut Ledger) {
        if let Some((_, first, _)) = self.pending.take() {
            self.lose(first, "the table ends in the middle of it", true, ledger);
        }
        self.torn = false;
        if self.draft.rows.is_empty() {
            return;
        }
        let mut draft = std::mem::take(&mut self.draft);
        let (ranks, nodes) = context.communicator.unzip();
        draft.facts.ranks = draft.facts.ranks.or(ranks);
        draft.facts.communicator_nodes = nodes.flatten();
        drafts.push(draft);
        (self.columns, self.header, self.csv) = (None, None, None);
    }
}

/// The row that pieces make, with or without blanks between them, if it is whole.
fn joined(pieces: &[String], columns: Option<&Columns>) -> Option<DraftRow> {
    let gaps = pieces.len() - 1;
    (0..1_u32 << gaps).find_map(|blanks| {
        let mut text = pieces[0].clone();
        for (gap, piece) in pieces[1..].iter().enumerate() {
            text.push_str(if blanks >> gap & 1 == 0 { " " } else { "" });
            text.push_str(piece);
        }
        match row::parse(&text, columns) {
            Parsed::Row { row, clean: true } if check::is_whole(&row) => Some(*row),
            _ => None,
        }
    })
}
