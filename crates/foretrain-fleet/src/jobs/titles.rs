//! Columns of tables of unknown make, by what their titles and cells say.

use csv::ByteRecord;

use super::bind::{Bound, UnitFrom, binding};
use super::fault::Fault;
use super::field::{ColumnHint, Dimension, Field, Unit};
use super::read::Rows;
use super::schema::{Meant, meant, rank};
use super::style::Order;
use super::{instant, value};

/// Binds columns that are free by their titles; of two that hold the same only one is read.
pub(super) fn bind_titles(
    rows: &dyn Rows,
    ahead: &[ByteRecord],
    used: &mut [bool],
    taken: &mut Vec<Field>,
    bound: &mut Bound,
) {
    let (style, titles) = (bound.style, rows.titles());
    let given = bound.bindings.len();
    for (column, title) in titles.iter().enumerate() {
        if used[column] {
            continue;
        }
        let cells = cells_of(column, ahead);
        let (field, unit) = match meant(title, &cells, taken, style) {
            Some(Meant::Held(field, unit)) => (field, unit),
            Some(Meant::Misfit(field)) => {
                misfit(title, field, &cells, bound);
                continue;
            }
            None => match meant(title, &cells, &[], style) {
                Some(Meant::Held(field, unit)) => (field, unit),
                _ => continue,
            },
        };
        let (unit, from) = match rows.unit(column) {
            Some(unit) => (Some(unit), UnitFrom::File),
            None => (unit, UnitFrom::Title),
        };
        if field == Field::Devices && lists_or_numbers(&cells) {
            bound.notes.push((Fault::ListsOrNumbers, format!("column {title:?}")));
        }
        let new = binding(column, title, field, unit, from, &cells, style);
        let Some(at) = bound.bindings.iter().position(|binding| binding.field == field) else {
            used[column] = true;
            taken.push(field);
            bound.bindings.push(new);
            continue;
        };
        // Names and users are often told twice, in other words; what the user or a schema says stands.
        let same_title = bound.bindings[at].title.eq_ignore_ascii_case(title);
        if at < given || (field.dimension() == Dimension::Text && !same_title) {
            continue;
        }
        let old = &mut bound.bindings[at];
        let is_better = (old.is_guess() && !new.is_guess())
            || (old.is_guess() == new.is_guess() && rank(title) < rank(&old.title));
        let twin = if is_better { std::mem::replace(old, new) } else { new };
        let read = &bound.bindings[at];
        used[twin.column] = false;
        used[read.column] = true;
        let note = format!(
            "{}: column {} ({:?}) is read, column {} ({:?}) is not",
            field.name(),
            read.column + 1,
            read.title,
            twin.column + 1,
            twin.title
        );
        bound.notes.push((Fault::ColumnTwin, note));
    }
}

fn cells_of(column: usize, ahead: &[ByteRecord]) -> Vec<&[u8]> {
    ahead.iter().filter_map(|row| row.get(column)).collect()
}

/// Whether all cells are pairs, which may be numbers with a decimal comma.
fn lists_or_numbers(cells: &[&[u8]]) -> bool {
    let mut given = cells.iter().filter_map(|cell| value::given(cell)).peekable();
    given.peek().is_some() && given.all(|cell| value::comma(cell).is_some())
}

/// Notes a column whose title is understood and none of whose cells is.
fn misfit(title: &str, field: Field, cells: &[&[u8]], bound: &mut Bound) {
    let Some(cell) = cells.iter().find_map(|cell| value::given(cell)) else { return };
    let shown = String::from_utf8_lossy(&cell[..cell.len().min(60)]);
    let (name, style) = (field.name(), bound.style);
    let expected = match field.dimension() {
        Dimension::Instant if instant::slashed(cell).is_some() && style.order == Order::Open => {
            format!(
                "the day or the month may come first; say --column {name}={title}:dmy or \
                 {name}={title}:mdy"
            )
        }
        Dimension::Instant => {
            "write 2024-03-01 08:00:00, or a number since 1970 or the table's origin".to_owned()
        }
        Dimension::Span => "write a number, 01:30:00, or 1h30m".to_owned(),
        Dimension::Size => "write a number, or 16 GiB".to_owned(),
        _ => "write a number".to_owned(),
    };
    let note = format!("column {title:?} ({name}): {shown:?}; {expected}");
    bound.notes.push((Fault::ColumnUnread, note));
    bound.misfits.push(field);
}

/// Gives dates whose day or month may come first the order that the user says, or that other dates
/// of the table tell, and notes it.
pub(super) fn order_dates(bound: &mut Bound, hints: &[ColumnHint], ahead: &[ByteRecord]) {
    for at in 0..bound.bindings.len() {
        let binding = &mut bound.bindings[at];
        if binding.field.dimension() != Dimension::Instant {
            continue;
        }
        let said = hints.iter().find(|hint| hint.field == binding.field).and_then(|hint| hint.unit);
        let (column, title, field) = (binding.column, binding.title.clone(), binding.field);
        let order = match said {
            Some(Unit::DAY_FIRST) => Order::Day,
            Some(Unit::MONTH_FIRST) => Order::Month,
            _ => binding.style.order,
        };
        let told = order == binding.style.order;
        binding.style.order = order;
        let cells = cells_of(column, ahead);
        if !cells.iter().any(|cell| instant::slashed(cell.trim_ascii()).is_some()) {
            continue;
        }
        match order {
            Order::Day | Order::Month if told => {
                let first = if order == Order::Day { "the day" } else { "the month" };
                let note = format!("column {title:?}: {first} comes first");
                bound.notes.push((Fault::DateOrder, note));
            }
            Order::Open => misfit(&title, field, &cells, bound),
            _ => binding.unit_from = UnitFrom::Itself,
        }
    }
}
