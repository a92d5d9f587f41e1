//! Which column holds what, in which unit, and who says so.

use csv::ByteRecord;
use foretrain_core::{InputError, Result};

use super::field::{ColumnHint, Dimension, Field, Unit};
use super::instant::{self, BELIEVED};
use super::read::Rows;
use super::schema::{FEATURES, PLAIN, Schema, bindable, unit_of};
use super::{span, value};

/// Who says in which unit a column is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitFrom {
    /// The schema.
    Schema,
    /// The column's title.
    Title,
    /// The user.
    User,
    /// The types of the file.
    File,
    /// Nobody: by the size of its first values.
    Guess,
    /// It needs none: text, dates, plain numbers.
    Itself,
}

impl UnitFrom {
    /// The word in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Schema => "schema",
            Self::Title => "title",
            Self::User => "given",
            Self::File => "file",
            Self::Guess => "guessed",
            Self::Itself => "",
        }
    }
}

/// A column that is read.
#[derive(Clone, Debug)]
pub struct Binding {
    /// Position of the column.
    pub column: usize,
    /// Its title.
    pub title: String,
    /// What it holds.
    pub field: Field,
    /// Its unit.
    pub unit: Unit,
    /// Who says so.
    pub unit_from: UnitFrom,
    /// Whether it holds numbers since 1970.
    pub(super) since_1970: bool,
}

impl Binding {
    /// Whether its unit may be another than the guess. Dates in numbers tell their unit by their size,
    /// and what is above one can only be percent of a whole.
    pub fn is_guess(&self) -> bool {
        let is_sure = self.since_1970 || self.unit == Unit::PERCENT;
        self.unit_from == UnitFrom::Guess && !is_sure
    }
}

/// The columns of a table.
#[derive(Clone, Debug, Default)]
pub(super) struct Bound {
    pub(super) bindings: Vec<Binding>,
    /// Titles of columns that nothing is read from.
    pub(super) unused: Vec<String>,
    /// Columns of types that their fields cannot be read from, and the types.
    pub(super) unread: Vec<(String, String)>,
}

impl Bound {
    pub(super) fn has(&self, field: Field) -> bool {
        self.bindings.iter().any(|binding| binding.field == field)
    }
}

/// Finds out what columns hold: first what the user says, then the schema, then (for tables of
/// unknown make) the titles.
pub(super) fn bind(
    rows: &dyn Rows,
    schema: &'static Schema,
    hints: &[ColumnHint],
    ahead: &[ByteRecord],
) -> Result<Bound> {
    let titles = rows.titles();
    let mut bound = Bound::default();
    let mut taken: Vec<Field> = Vec::new();
    let mut used = vec![false; titles.len()];
    let mut add = |column: usize, field: Field, unit: Option<Unit>, from: UnitFrom| {
        let (unit, unit_from) = match rows.unit(column) {
            Some(unit) => (Some(unit), UnitFrom::File),
            None => (unit, from),
        };
        used[column] = true;
        taken.push(field);
        let cells: Vec<&[u8]> = ahead.iter().filter_map(|row| row.get(column)).collect();
        bound.bindings.push(binding(column, &titles[column], field, unit, unit_from, &cells));
    };
    for hint in hints {
        let same = |title: &&String| title.eq_ignore_ascii_case(&hint.column);
        let Some(column) = titles.iter().position(|title| same(&title)) else {
            return Err(InputError::new(format!("no column {:?}", hint.column))
                .hint(format!("its columns are {}", titles.join(", "))));
        };
        if let (Some(said), Some(unit)) = (hint.unit, rows.unit(column))
            && said != unit
        {
            let (column, unit, said) = (&hint.column, unit.name, said.name);
            let error =
                InputError::new(format!("column {column:?} is of a type in {unit}, not {said}"));
            return Err(error.hint(format!("leave out \":{said}\": the file tells the unit")));
        }
        let named = || unit_of(&titles[column], hint.field.dimension());
        match hint.unit {
            Some(unit) => add(column, hint.field, Some(unit), UnitFrom::User),
            None => add(column, hint.field, named(), UnitFrom::Title),
        }
    }
    let hinted: Vec<Field> = hints.iter().map(|hint| hint.field).collect();
    if let Some((_, twice)) =
        hinted.iter().enumerate().find(|(index, field)| hinted[..*index].contains(field))
    {
        return Err(InputError::new(format!("two columns are named for {:?}", twice.name()))
            .hint("give --column once for each field"));
    }
    for known in schema.columns.iter().filter(|known| !hinted.contains(&known.field)) {
        let found = titles.iter().position(|title| title.eq_ignore_ascii_case(known.title));
        if let Some(column) = found {
            add(column, known.field, Some(known.unit), UnitFrom::Schema);
        }
    }
    // Our own table may have more columns than it is known by: arrivals, for one.
    if [&raw const PLAIN, &raw const FEATURES].contains(&(schema as *const Schema)) {
        bind_titles(titles, ahead, &mut used, &mut taken, rows, &mut bound);
    }
    bound.unused =
        titles.iter().zip(&used).filter(|(_, used)| !**used).map(|(t, _)| t.clone()).collect();
    let Bound { bindings, unread, .. } = &mut bound;
    bindings.retain(|binding| {
        let kind = rows.unread(binding.column, binding.field.takes_lists());
        unread.extend(kind.iter().map(|kind| (binding.title.clone(), kind.clone())));
        kind.is_none()
    });
    share_units(&mut bound.bindings);
    Ok(bound)
}

fn bind_titles(
    titles: &[String],
    ahead: &[ByteRecord],
    used: &mut [bool],
    taken: &mut Vec<Field>,
    rows: &dyn Rows,
    bound: &mut Bound,
) {
    for (column, title) in titles.iter().enumerate() {
        if used[column] {
            continue;
        }
        let cells: Vec<&[u8]> = ahead.iter().filter_map(|row| row.get(column)).collect();
        let Some((field, unit)) = bindable(title, &cells, taken) else { continue };
        used[column] = true;
        taken.push(field);
        let (unit, from) = match rows.unit(column) {
            Some(unit) => (Some(unit), UnitFrom::File),
            None => (unit, UnitFrom::Title),
        };
        bound.bindings.push(binding(column, title, field, unit, from, &cells));
    }
}

/// What a column holds, its unit guessed from cells if nobody says it.
pub(super) fn binding(
    column: usize,
    title: &str,
    field: Field,
    unit: Option<Unit>,
    from: UnitFrom,
    cells: &[&[u8]],
) -> Binding {
    let numbers: Vec<f64> = cells
        .iter()
        .filter_map(|cell| value::number(value::given(cell)?))
        .filter(|number| *number > 0.0)
        .collect();
    let dimension = field.dimension();
    let (unit, unit_from) = match unit {
        Some(unit) => (unit, from),
        None => guess(dimension, &numbers),
    };
    let in_words = || {
        let mut given = cells.iter().filter_map(|cell| value::given(cell));
        given.any(|cell| match dimension {
            Dimension::Instant => instant::date(cell).is_some(),
            Dimension::Span => span::written(cell).is_some(),
            _ => false,
        })
    };
    let itself = matches!(dimension, Dimension::Text)
        || (numbers.is_empty() && in_words())
        || (unit == Unit::ONE && dimension == Dimension::Number);
    let unit_from = if itself { UnitFrom::Itself } else { unit_from };
    let since_1970 = dimension == Dimension::Instant && are_dates(&numbers, unit);
    Binding { column, title: title.to_owned(), field, unit, unit_from, since_1970 }
}

/// Whether half of these or more are dates when they count since 1970 in this unit: nobody's relative
/// times are that long.
fn are_dates(numbers: &[f64], unit: Unit) -> bool {
    let dated = |number: &&f64| BELIEVED.contains(&((**number * unit.factor) as i64));
    !numbers.is_empty() && 2 * numbers.iter().filter(dated).count() >= numbers.len()
}

/// A unit by the size of the first values.
fn guess(dimension: Dimension, numbers: &[f64]) -> (Unit, UnitFrom) {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    // A few values in another unit must not tell it.
    let at = |tenths: usize| sorted.get(sorted.len() * tenths / 10).copied().unwrap_or(0.0);
    let (median, high) = (at(5), at(9));
    let unit = match dimension {
        Dimension::Text | Dimension::Number => return (Unit::ONE, UnitFrom::Itself),
        // A time since 1970 tells its unit by its size; another is short of three years.
        Dimension::Instant => {
            let dates = BY_SIZE.into_iter().find(|unit| are_dates(numbers, *unit));
            dates.unwrap_or_else(|| by_size(high, [1e8, 1e11, 1e14]))
        }
        // No usual run takes longer than ten days, or less than a second.
        Dimension::Span => by_size(median, [1e6, 1e9, 1e12]),
        Dimension::Share if high > 1.5 => Unit::PERCENT,
        Dimension::Share => Unit::ONE,
        Dimension::Size if median >= 1e6 => Unit::BYTES,
        Dimension::Size if median >= 1e3 => Unit::MIB,
        Dimension::Size => Unit::GIB,
    };
    (unit, UnitFrom::Guess)
}

/// Units of times whose columns do not name them.
const BY_SIZE: [Unit; 4] = [Unit::SECONDS, Unit::MILLIS, Unit::MICROS, Unit::NANOS];

/// A value below a limit is of the unit before it.
fn by_size(value: f64, limits: [f64; 3]) -> Unit {
    BY_SIZE[limits.iter().filter(|limit| value >= **limit).count()]
}

/// Where only one of a table's times tells its unit, guessed ones follow it: tables keep to one
/// unit more often than not, and a column of small values tells little.
fn share_units(bindings: &mut [Binding]) {
    let timed = |binding: &Binding| {
        matches!(binding.field.dimension(), Dimension::Instant | Dimension::Span)
    };
    let said = |binding: &&Binding| {
        timed(binding) && matches!(binding.unit_from, UnitFrom::Title | UnitFrom::User)
    };
    let mut units: Vec<Unit> = bindings.iter().filter(said).map(|b| b.unit).collect();
    units.dedup();
    let sole = match units.as_slice() {
        [unit] => Some(*unit),
        // Of guesses the finest holds for relative times: only large values betray it.
        [] => bindings
            .iter()
            .filter(|b| timed(b) && b.is_guess())
            .map(|b| b.unit)
            .min_by(|a, b| a.factor.total_cmp(&b.factor)),
        _ => None,
    };
    let Some(unit) = sole else { return };
    for binding in bindings {
        if timed(binding) && binding.is_guess() {
            binding.unit = unit;
        }
    }
}
