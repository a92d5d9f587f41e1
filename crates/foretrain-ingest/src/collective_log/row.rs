//! One row of a text table.

use foretrain_core::DType;

use super::Check;
use super::columns::{Column, Columns};
use super::draft::{DraftRow, Figures};
use super::number::{Printed, integer};

/// What a line is to a table.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Parsed {
    /// A whole row; `clean` if nothing else stands on the line.
    Row { row: Box<DraftRow>, clean: bool },
    /// A row that ends too early.
    Cut,
    /// A row that something else has broken into; `begins` if its beginning is there.
    Broken { begins: bool },
    /// No row.
    Other,
}

/// Looks for a row on a line: two integers and an element type, then the figures.
pub(super) fn parse(text: &str, columns: Option<&Columns>) -> Parsed {
    // Quotes begin and end tables that were pasted into programs.
    let gap = |c: char| c.is_whitespace() || matches!(c, '\'' | '"');
    let words: Vec<&str> = text.split(gap).filter(|word| !word.is_empty()).collect();
    let lead = columns.map_or(2, |columns| columns.type_at);
    let mut verdict = Parsed::Other;
    for at in 0..words.len() {
        let Some(dtype) = element_type(words[at]) else { continue };
        let integers = words[..at].iter().rev().take_while(|w| integer(w).is_some()).count();
        if integers == 0 {
            continue;
        }
        if integers < lead {
            verdict = Parsed::Broken { begins: false };
            continue;
        }
        let row = &words[at - lead..];
        let shaped = if columns.is_none() { Columns::of_shape(&row[lead + 1..]) } else { None };
        let Some(columns) = columns.or(shaped.as_ref()) else {
            verdict = Parsed::Cut;
            continue;
        };
        match read(row, dtype, columns) {
            // More figures than columns: the header is not whole, or this is two rows.
            Ok((_, used)) if row.get(used).is_some_and(|word| Printed::parse(word).is_some()) => {
                verdict = Parsed::Broken { begins: true };
            }
            Ok((row, used)) => {
                let clean = at == lead && used == words.len();
                return Parsed::Row { row: Box::new(row), clean };
            }
            Err(Failure::TooShort) => verdict = Parsed::Cut,
            Err(Failure::Alien) => verdict = Parsed::Broken { begins: true },
        }
    }
    verdict
}

enum Failure {
    TooShort,
    Alien,
}

fn element_type(word: &str) -> Option<DType> {
    if word.starts_with(|c: char| c.is_ascii_lowercase()) { DType::parse(word) } else { None }
}

/// The row at the start of these words and how many it took.
fn read(words: &[&str], dtype: DType, columns: &Columns) -> Result<(DraftRow, usize), Failure> {
    let mut row = DraftRow {
        size: integer(words[0]).ok_or(Failure::Alien)?,
        dtype: Some(dtype),
        ..DraftRow::default()
    };
    let lead = &columns.all[..columns.type_at];
    if let Some(at) = lead.iter().position(|column| *column == Column::Count) {
        row.count = integer(words[at]);
    }
    let mut at = columns.type_at + 1;
    let last_needed = columns.all.iter().rposition(|c| *c == Column::Wrong || *c == Column::BusBw);
    let mut figures = Vec::new();
    for (index, column) in columns.all.iter().enumerate().skip(at) {
        let Some(&word) = words.get(at) else {
            // Columns behind the figures may be empty.
            if last_needed.is_some_and(|needed| index > needed) {
                break;
            }
            return Err(Failure::TooShort);
        };
        at += match column {
            // rccl-tests leave the reduction of operations that have none blank.
            Column::Redop if Printed::parse(word).is_some() => 0,
            Column::Redop => {
                row.redop = reduction(word).ok_or(Failure::Alien)?;
                1
            }
            Column::Root => {
                row.root = root(word).ok_or(Failure::Alien)?;
                1
            }
            Column::Time | Column::AlgBw | Column::BusBw | Column::Wrong => {
                figure(&mut figures, *column, word, columns.deviation).ok_or(Failure::Alien)?;
                1
            }
            Column::TimeStamp => 2,
            _ => 1,
        };
    }
    let mut placements = figures.into_iter();
    row.out_of_place = placements.next();
    row.in_place = placements.next();
    Ok((row, at.min(words.len())))
}

/// Adds a figure to the placements; a time begins the next placement.
pub(super) fn figure(
    placements: &mut Vec<Figures>,
    column: Column,
    word: &str,
    deviation: bool,
) -> Option<()> {
    if column == Column::Wrong {
        placements.last_mut()?.check = check(word, deviation)?;
        return Some(());
    }
    let number = Printed::parse(word)?;
    match column {
        Column::Time if number.value < 0.0 => return None,
        Column::Time => {
            placements.push(Figures { time: number, algbw: None, busbw: None, check: Check::None });
        }
        Column::AlgBw => placements.last_mut()?.algbw = Some(number),
        _ => placements.last_mut()?.busbw = Some(number),
    }
    Some(())
}

/// `sum`; nothing for `none`; `None` for what is no reduction's name.
pub(super) fn reduction(word: &str) -> Option<Option<String>> {
    let is_word = !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphabetic());
    is_word.then(|| (word != "none").then(|| word.to_owned()))
}

/// A rank; nothing for `-1`; `None` for what is neither.
pub(super) fn root(word: &str) -> Option<Option<u32>> {
    if word.parse() == Ok(-1) { Some(None) } else { word.parse().ok().map(Some) }
}

/// `N/A`, `0`, `2e-07`, `1e-01*`.
pub(super) fn check(word: &str, deviation: bool) -> Option<Check> {
    // An asterisk marks a failure.
    let word = word.trim_end_matches('*');
    if word == "N/A" {
        return Some(Check::None);
    }
    let value = Printed::parse(word)?.sane().unwrap_or(f64::MAX);
    Some(if deviation || value.fract() != 0.0 {
        Check::Deviation(value)
    } else {
        Check::Wrong(value as u64)
    })
}
