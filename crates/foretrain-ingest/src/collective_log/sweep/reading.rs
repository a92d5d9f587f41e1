//! The one reading of a table's figures that fits all its rows.

use foretrain_core::{Ledger, Severity};
use foretrain_cost::bus_factor;
use foretrain_graph::CollectiveKind;

use super::super::Check;
use super::super::check::{overlap, size_over_time};
use super::super::draft::{Draft, DraftRow, Figures};
use super::super::number::Printed;
use super::super::table::record_lost;
use super::unit::Unit;
use super::{Cells, Figure, Program};

/// How to understand what the table leaves open.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Reading {
    /// `KB` is 1,024 bytes.
    binary: bool,
    /// Microseconds of one unit of time, where none is stated.
    time: f64,
    /// `gbps` are bits.
    bits: bool,
    /// The size is that of one rank's part of the result.
    part: bool,
}

/// Microseconds of the units that a time without one may have.
const TIMES: [f64; 4] = [1.0, 1e3, 1e6, 1e-3];

/// Tables of one number of ranks each, with figures in the units of drafts.
pub(super) fn drafts(
    rows: &[Cells],
    program: Program,
    drafts: &mut Vec<Draft>,
    ledger: &mut Ledger,
) {
    let Some(reading) = choose(rows, program, ledger) else {
        for row in rows {
            record_lost(
                row.line,
                "the units of its figures are neither stated nor told by them",
                ledger,
            );
        }
        return;
    };
    for rows in sweeps(rows) {
        let untimed = rows.iter().any(|row| row.time.is_none());
        let mut draft = Draft { untimed, ..Draft::default() };
        (draft.facts.ranks, draft.facts.nodes) = (rows[0].ranks, rows[0].nodes);
        (draft.facts.kind, draft.facts.asked_for) = (program.said, program.devices);
        for row in rows {
            draft.rows.extend(reading.row(row, program, ledger));
        }
        drafts.extend((!draft.rows.is_empty()).then_some(draft));
    }
}

/// Rows of one number of ranks and nodes, from one first size to where a table begins with it again: tables
/// of several machines hold one sweep after the other.
fn sweeps(rows: &[Cells]) -> Vec<&[Cells]> {
    let mut sweeps = Vec::new();
    let mut from = 0;
    for at in 1..rows.len() {
        let (first, last, row) = (&rows[from], &rows[at - 1], &rows[at]);
        let begins_again =
            row.size == first.size && row.kind == first.kind && row.size != last.size;
        if (row.ranks, row.nodes) != (last.ranks, last.nodes) || begins_again {
            sweeps.push(&rows[from..at]);
            from = at;
        }
    }
    sweeps.extend(rows.get(from..).filter(|rest| !rest.is_empty()));
    sweeps
}

/// What a table leaves open.
#[derive(Clone, Copy, Debug)]
struct Open {
    /// Whether a KB is 1,000 or 1,024 bytes.
    size: bool,
    /// The unit of times.
    time: bool,
    /// Whether bandwidths count bits or bytes.
    rate: bool,
    /// Whether a gathering's size is that of the result or of a part.
    part: bool,
}

impl Open {
    fn of(rows: &[Cells], program: Program) -> Self {
        let unclear = |figure: Figure| match figure.1 {
            Some(Unit::Rate { bits, bytes }) => bits != bytes,
            unit => unit.is_none(),
        };
        let gathers = |row: &Cells| {
            let known = kind_and_ranks(row, program);
            known.is_some_and(|(kind, _)| kind == CollectiveKind::AllGather)
        };
        Self {
            size: rows.iter().any(|row| row.product.is_none() && loose_size(&row.size)),
            time: rows.iter().filter_map(|row| row.time).any(|(_, unit)| unit.is_none()),
            rate: rows.iter().flat_map(|row| [row.algbw, row.busbw]).flatten().any(unclear),
            part: rows.iter().any(gathers),
        }
    }

    /// All readings, the usual one first.
    fn readings(self) -> Vec<Reading> {
        let both =
            |open: bool, usual: bool| [usual, !usual].into_iter().take(1 + usize::from(open));
        let mut readings = Vec::new();
        for part in both(self.part, false) {
            for binary in both(self.size, true) {
                for &time in TIMES.iter().take(if self.time { TIMES.len() } else { 1 }) {
                    readings.extend(both(self.rate, true).map(|bits| Reading {
                        binary,
                        time,
                        bits,
                        part,
                    }));
                }
            }
        }
        readings
    }
}

/// The reading that fits all rows; `None` if several do and differ in more than custom settles.
fn choose(rows: &[Cells], program: Program, ledger: &mut Ledger) -> Option<Reading> {
    let open = Open::of(rows, program);
    let mut fitting = open.readings();
    let usual = fitting[0];
    let tested = rows.iter().any(|row| usual.fits(row, program).is_some());
    fitting.retain(|reading| rows.iter().all(|row| reading.fits(row, program) != Some(false)));
    if fitting.is_empty() {
        // Figures that do not belong together are reported with the other checks.
        return (!open.time && !open.rate).then_some(usual);
    }
    let chosen = fitting[0];
    if fitting.iter().any(|other| (other.time, other.bits) != (chosen.time, chosen.bits)) {
        return None;
    }
    let sizes_told = tested && fitting.iter().all(|other| other.binary == chosen.binary);
    report(rows, open, chosen, sizes_told, ledger);
    Some(chosen)
}

fn report(rows: &[Cells], open: Open, chosen: Reading, sizes_told: bool, ledger: &mut Ledger) {
    let line = rows.first().map_or(0, |row| row.line);
    let mut inferred = |code: &str, message: &str| {
        ledger.record_at(Severity::Inferred, code, message, || format!("table of line {line}"));
    };
    if open.size && sizes_told {
        inferred("size-unit", "whether KB counts 1,000 or 1,024 bytes is told by the bandwidths");
    } else if open.size {
        inferred("size-unit", "KB, MB and GB taken as powers of 1,024, as such scripts count");
    }
    if rows.iter().any(|row| row.size.1.is_none()) {
        inferred("size-unit", "sizes without a unit taken as bytes");
    }
    if open.time || open.rate {
        inferred("unit-from-figures", "units that are not stated are told by the figures");
    }
    if chosen.part {
        inferred(
            "size-per-rank",
            "sizes count one rank's part, by the bandwidths; the whole is given",
        );
    }
}

fn loose_size((_, unit): &Figure) -> bool {
    matches!(unit, Some(Unit::Size { binary, decimal }) if binary != decimal)
}

fn kind_and_ranks(row: &Cells, program: Program) -> Option<(CollectiveKind, u32)> {
    row.kind.or(program.kind).zip(row.ranks.or(program.devices))
}

impl Reading {
    /// Bytes of a row in the sense of [`super::super::Row::size`].
    fn size(self, row: &Cells, program: Program) -> u64 {
        let (number, unit) = row.size;
        let factor = match unit {
            Some(Unit::Size { binary, decimal }) => {
                if self.binary {
                    binary
                } else {
                    decimal
                }
            }
            _ => 1.0,
        };
        let printed = number.scaled(factor);
        // The product is exact, where the size is rounded for people.
        let whole = row.product.filter(|bytes| {
            let slack = printed.half_step.max(printed.value * 0.05);
            (*bytes as f64 - printed.value).abs() <= slack
        });
        let bytes = whole.unwrap_or(printed.value.round() as u64);
        match kind_and_ranks(row, program) {
            Some((_, ranks)) if self.part => bytes.saturating_mul(u64::from(ranks)),
            _ => bytes,
        }
    }

    fn time(self, figure: Figure) -> Printed {
        let (number, unit) = figure;
        number.scaled(if let Some(Unit::Time(micros)) = unit { micros } else { self.time })
    }

    fn rate(self, figure: Figure) -> Printed {
        let (number, unit) = figure;
        let (bits, bytes) =
            if let Some(Unit::Rate { bits, bytes }) = unit { (bits, bytes) } else { (0.125, 1.0) };
        number.scaled(if self.bits { bits } else { bytes })
    }

    /// Whether a row's figures belong together so; `None` if it has too few to tell.
    fn fits(self, row: &Cells, program: Program) -> Option<bool> {
        let time = self.time(row.time?);
        let (low, high) = size_over_time(self.size(row, program), time)?;
        if let Some(algbw) = row.algbw {
            return Some(overlap(self.rate(algbw).range(), (low, high)));
        }
        let (kind, ranks) = kind_and_ranks(row, program)?;
        let factor = bus_factor(kind, ranks);
        (factor > 0.0).then_some(())?;
        // Sizes are rounded for people, so this much more may be due to rounding.
        Some(overlap(self.rate(row.busbw?).range(), (low * factor * 0.97, high * factor * 1.03)))
    }

    fn row(self, row: &Cells, program: Program, ledger: &mut Ledger) -> Option<DraftRow> {
        let size = self.size(row, program);
        if size == 0 {
            record_lost(row.line, "its size is no number of bytes", ledger);
            return None;
        }
        let none = Printed { value: f64::NAN, half_step: 0.0 };
        let figures = Figures {
            time: row.time.map_or(none, |time| self.time(time)),
            algbw: row.algbw.map(|rate| self.rate(rate)),
            busbw: row.busbw.map(|rate| self.rate(rate)),
            check: Check::None,
        };
        Some(DraftRow {
            line: row.line,
            size,
            count: row.count,
            dtype: row.dtype,
            kind: row.kind,
            processor: row.processor.map(|time| self.time(time)),
            out_of_place: Some(figures),
            ..DraftRow::default()
        })
    }
}
