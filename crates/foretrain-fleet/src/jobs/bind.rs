//! Which column holds what, in which unit, and who says so.

use csv::ByteRecord;
use foretrain_core::{InputError, Result};

use super::fault::Fault;
use super::field::{ColumnHint, Dimension, Field, Unit};
use super::read::Rows;
use super::schema::{FEATURES, PLAIN, Schema, is_per_node, unit_of};
use super::style::Style;
use super::titles::{bind_titles, order_dates};
use super::{span, units, value};

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
    /// Other columns of the first rows: it is what lies between two times.
    Times,
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
            Self::Times => "times",
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
    /// How its numbers and dates are written.
    pub(super) style: Style,
    /// Numbers far above all others of the first rows: marks in place of times.
    pub(super) lone: Vec<f64>,
    /// Whether it counts what each node of a job has.
    pub(super) per_node: bool,
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
    /// Fields that titles speak of and cells do not hold.
    pub(super) misfits: Vec<Field>,
    /// What there is to say of columns.
    pub(super) notes: Vec<(Fault, String)>,
    pub(super) style: Style,
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
    let style = Style::of(rows.separator().map(|separator| separator.byte), ahead);
    let mut bound = Bound { style, ..Bound::default() };
    if let Some(separator) = rows.separator().filter(|separator| separator.said) {
        bound.notes.push((Fault::SeparatorLine, format!("{:?}", char::from(separator.byte))));
    }
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
        let title = &titles[column];
        bound.bindings.push(binding(column, title, field, unit, unit_from, &cells, style));
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
            // How dates are written, not a unit.
            Some(Unit::DAY_FIRST | Unit::MONTH_FIRST) => {
                add(column, hint.field, None, UnitFrom::Guess);
            }
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
        bind_titles(rows, ahead, &mut used, &mut taken, &mut bound);
    }
    order_dates(&mut bound, hints, ahead);
    bound.unused =
        titles.iter().zip(&used).filter(|(_, used)| !**used).map(|(t, _)| t.clone()).collect();
    let Bound { bindings, unread, .. } = &mut bound;
    bindings.retain(|binding| {
        let kind = rows.unread(binding.column, binding.field.takes_lists());
        unread.extend(kind.iter().map(|kind| (binding.title.clone(), kind.clone())));
        kind.is_none()
    });
    units::share(&mut bound.bindings);
    units::by_times(&mut bound.bindings, ahead);
    Ok(bound)
}

/// What a column holds, its unit guessed from cells if nobody says it.
pub(super) fn binding(
    column: usize,
    title: &str,
    field: Field,
    unit: Option<Unit>,
    from: UnitFrom,
    cells: &[&[u8]],
    style: Style,
) -> Binding {
    let mut numbers: Vec<f64> = cells
        .iter()
        .filter_map(|cell| style.number(value::given(cell)?))
        .filter(|number| *number > 0.0)
        .collect();
    let dimension = field.dimension();
    let (unit, unit_from) = match unit {
        Some(unit) => (unit, from),
        None => units::guess(dimension, &numbers),
    };
    let in_words = || {
        let mut given = cells.iter().filter_map(|cell| value::given(cell));
        given.any(|cell| match dimension {
            Dimension::Instant => style.date(cell).is_some(),
            Dimension::Span => span::written(cell).is_some(),
            _ => false,
        })
    };
    let itself = matches!(dimension, Dimension::Text)
        || (numbers.is_empty() && in_words())
        || (unit == Unit::ONE && dimension == Dimension::Number);
    let unit_from = if itself { UnitFrom::Itself } else { unit_from };
    let since_1970 = dimension == Dimension::Instant && units::are_dates(&numbers, unit);
    numbers.sort_by(f64::total_cmp);
    let lone = numbers.split_off(units::without_lone(&numbers));
    let per_node = field == Field::Gpus && is_per_node(title);
    let title = title.to_owned();
    Binding { column, title, field, unit, unit_from, since_1970, style, lone, per_node }
}
