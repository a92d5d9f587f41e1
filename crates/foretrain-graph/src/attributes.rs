//! Attributes by name: sparse or dense columns over nodes or edges.

use std::collections::BTreeMap;

use foretrain_core::{InputError, Result};

/// Names of the attributes that Foretrain itself writes. Users may add any other.
pub mod well_known {
    /// i64, ns after the step's start at which the node began in the recording.
    pub const RECORDED_START: &str = "recorded_start_ns";
    /// i64, ns the node lasted in the recording, waiting included.
    pub const RECORDED_DURATION: &str = "recorded_duration_ns";
    /// i64, in how many recorded steps the node was seen.
    pub const STEP_COUNT: &str = "step_count";
    /// f64, robust relative spread (standard deviation over median) of the node's work over steps.
    pub const WORK_SPREAD: &str = "work_spread";
    /// i64, ns of a collective spent waiting for the last member.
    pub const WAIT: &str = "wait_ns";
    /// f64, floating-point operations.
    pub const FLOPS: &str = "flops";
    /// i64, bytes read and written by the node.
    pub const BYTES_MOVED: &str = "bytes_moved";
    /// str, input shapes as JSON.
    pub const SHAPES: &str = "shapes";
    /// str, kernel grid as "x,y,z".
    pub const GRID: &str = "grid";
    /// str, kernel block as "x,y,z".
    pub const BLOCK: &str = "block";
    /// bool, launched in an earlier step and still running in this one.
    pub const CARRY_IN: &str = "carry_in";
    /// str, how an inferred value was deduced.
    pub const PROVENANCE: &str = "provenance";
    /// Value of [`PROVENANCE`] where the recording does not tell how long the node lasts; its work
    /// is zero then.
    pub const NO_DURATION: &str = "no duration";
    /// i64, bytes of parameter gradient that this node completes.
    pub const GRADIENT_BYTES: &str = "gradient_bytes";
}

/// One attribute's values; `None` where a row has none.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Integers.
    I64(Vec<Option<i64>>),
    /// Floating-point numbers.
    F64(Vec<Option<f64>>),
    /// Truth values.
    Bool(Vec<Option<bool>>),
    /// Text.
    Str(Vec<Option<Box<str>>>),
}

impl Column {
    /// Rows in the column.
    pub fn len(&self) -> usize {
        match self {
            Self::I64(v) => v.len(),
            Self::F64(v) => v.len(),
            Self::Bool(v) => v.len(),
            Self::Str(v) => v.len(),
        }
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the row has a value.
    pub fn is_set(&self, row: usize) -> bool {
        fn set<T>(cells: &[Option<T>], row: usize) -> bool {
            cells.get(row).is_some_and(Option::is_some)
        }
        match self {
            Self::I64(v) => set(v, row),
            Self::F64(v) => set(v, row),
            Self::Bool(v) => set(v, row),
            Self::Str(v) => set(v, row),
        }
    }

    /// The type of the cells as one word: "i64", "f64", "bool" or "str".
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::I64(_) => "i64",
            Self::F64(_) => "f64",
            Self::Bool(_) => "bool",
            Self::Str(_) => "str",
        }
    }

    /// Empties one cell.
    pub fn clear(&mut self, row: usize) {
        fn unset<T>(cells: &mut [Option<T>], row: usize) {
            if let Some(cell) = cells.get_mut(row) {
                *cell = None;
            }
        }
        match self {
            Self::I64(v) => unset(v, row),
            Self::F64(v) => unset(v, row),
            Self::Bool(v) => unset(v, row),
            Self::Str(v) => unset(v, row),
        }
    }

    /// Whether two columns hold the same cells; rows beyond the end of either are unset.
    pub fn same_cells(&self, other: &Self) -> bool {
        fn same<T: PartialEq>(a: &[Option<T>], b: &[Option<T>]) -> bool {
            let shared = a.len().min(b.len());
            a[..shared] == b[..shared]
                && a[shared..].iter().chain(&b[shared..]).all(Option::is_none)
        }
        match (self, other) {
            (Self::I64(a), Self::I64(b)) => same(a, b),
            (Self::F64(a), Self::F64(b)) => same(a, b),
            (Self::Bool(a), Self::Bool(b)) => same(a, b),
            (Self::Str(a), Self::Str(b)) => same(a, b),
            _ => false,
        }
    }

    fn shrink_to_fit(&mut self) {
        match self {
            Self::I64(v) => v.shrink_to_fit(),
            Self::F64(v) => v.shrink_to_fit(),
            Self::Bool(v) => v.shrink_to_fit(),
            Self::Str(v) => v.shrink_to_fit(),
        }
    }

    /// Puts the rows of `other`, if of the same type, behind the first `at` rows.
    fn append(&mut self, at: usize, other: &Self) {
        self.resize(at);
        match (self, other) {
            (Self::I64(a), Self::I64(b)) => a.extend_from_slice(b),
            (Self::F64(a), Self::F64(b)) => a.extend_from_slice(b),
            (Self::Bool(a), Self::Bool(b)) => a.extend_from_slice(b),
            (Self::Str(a), Self::Str(b)) => a.extend_from_slice(b),
            _ => {}
        }
    }

    /// A column of this type without rows.
    fn empty_like(&self) -> Self {
        match self {
            Self::I64(_) => Self::I64(vec![]),
            Self::F64(_) => Self::F64(vec![]),
            Self::Bool(_) => Self::Bool(vec![]),
            Self::Str(_) => Self::Str(vec![]),
        }
    }

    /// Grows (with empty cells) or cuts the column to `rows`.
    pub fn resize(&mut self, rows: usize) {
        match self {
            Self::I64(v) => v.resize(rows, None),
            Self::F64(v) => v.resize(rows, None),
            Self::Bool(v) => v.resize(rows, None),
            Self::Str(v) => v.resize(rows, None),
        }
    }

    /// Keeps the rows for which `keep` is true, in order.
    pub fn retain_rows(&mut self, keep: &[bool]) {
        fn filter<T>(values: &mut Vec<T>, keep: &[bool]) {
            let mut keep = keep.iter().copied().chain(std::iter::repeat(false));
            values.retain(|_| keep.next().unwrap_or(false));
        }
        match self {
            Self::I64(v) => filter(v, keep),
            Self::F64(v) => filter(v, keep),
            Self::Bool(v) => filter(v, keep),
            Self::Str(v) => filter(v, keep),
        }
    }
}

/// Named columns over the rows of one table. Cells that were never set read as `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attributes {
    columns: BTreeMap<String, Column>,
}

macro_rules! typed_access {
    ($set:ident, $get:ident, $variant:ident, $type:ty, $out:ty, $read:expr) => {
        /// Sets one cell. A column of another type by that name is replaced.
        pub fn $set(&mut self, name: &str, row: usize, value: $type) {
            let column = self.columns.entry(name.to_owned()).or_insert(Column::$variant(vec![]));
            if !matches!(column, Column::$variant(_)) {
                *column = Column::$variant(vec![]);
            }
            if let Column::$variant(cells) = column {
                if cells.len() <= row {
                    cells.resize(row + 1, None);
                }
                cells[row] = Some(value);
            }
        }
        /// Reads one cell; `None` if unset or if the column has another type.
        pub fn $get(&self, name: &str, row: usize) -> Option<$out> {
            match self.columns.get(name)? {
                Column::$variant(cells) => cells.get(row)?.as_ref().map($read),
                _ => None,
            }
        }
    };
}

impl Attributes {
    typed_access!(set_i64, get_i64, I64, i64, i64, |v| *v);
    typed_access!(set_f64, get_f64, F64, f64, f64, |v| *v);
    typed_access!(set_bool, get_bool, Bool, bool, bool, |v| *v);
    typed_access!(set_str, get_str, Str, Box<str>, &str, |v| &**v);

    pub(crate) fn shrink_to_fit(&mut self) {
        self.columns.values_mut().for_each(Column::shrink_to_fit);
    }

    /// The column by this name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.get(name)
    }

    /// Adds or replaces a whole column.
    pub fn insert_column(&mut self, name: impl Into<String>, column: Column) {
        self.columns.insert(name.into(), column);
    }

    /// Removes a column.
    pub fn remove_column(&mut self, name: &str) -> Option<Column> {
        self.columns.remove(name)
    }

    /// All columns in order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Column)> {
        self.columns.iter().map(|(name, column)| (name.as_str(), column))
    }

    /// Keeps the rows for which `keep` is true in every column.
    pub fn retain_rows(&mut self, keep: &[bool]) {
        for column in self.columns.values_mut() {
            column.resize(keep.len());
            column.retain_rows(keep);
        }
    }

    /// Empties every cell of one row.
    pub fn clear_row(&mut self, row: usize) {
        for column in self.columns.values_mut() {
            column.clear(row);
        }
    }

    /// Whether the columns of both could be joined.
    ///
    /// # Errors
    /// If both have a column of one name but of different types.
    pub fn check_types(&self, other: &Attributes) -> Result<()> {
        for (name, theirs) in other.iter() {
            if let Some(ours) = self.column(name)
                && ours.type_name() != theirs.type_name()
            {
                return Err(InputError::new(format!(
                    "attribute \"{name}\" is {} in one graph and {} in the other",
                    ours.type_name(),
                    theirs.type_name()
                ))
                .hint("give one of the two another name"));
            }
        }
        Ok(())
    }

    /// Puts the rows of `other` behind the first `at` rows here. A column of another type than
    /// the one here by that name is left out; [`check_types`](Self::check_types) tells before.
    pub fn append_rows(&mut self, at: usize, other: &Attributes) {
        for (name, theirs) in other.iter() {
            let ours = self.columns.entry(name.to_owned()).or_insert_with(|| theirs.empty_like());
            ours.append(at, theirs);
        }
    }

    /// Whether two sets of columns hold the same names, types and cells; rows beyond the end of a
    /// column are unset.
    pub fn same_cells(&self, other: &Self) -> bool {
        self.columns.len() == other.columns.len()
            && self.iter().zip(other.iter()).all(|(a, b)| a.0 == b.0 && a.1.same_cells(b.1))
    }

    /// The longest column's rows.
    pub fn rows(&self) -> usize {
        self.columns.values().map(Column::len).max().unwrap_or(0)
    }

    /// Copies every cell of row `from` to row `to`.
    pub fn duplicate_row(&mut self, from: usize, to: usize) {
        fn duplicate<T: Clone>(cells: &mut Vec<Option<T>>, from: usize, to: usize) {
            if let Some(Some(value)) = cells.get(from).cloned() {
                if cells.len() <= to {
                    cells.resize(to + 1, None);
                }
                cells[to] = Some(value);
            }
        }
        for column in self.columns.values_mut() {
            match column {
                Column::I64(cells) => duplicate(cells, from, to),
                Column::F64(cells) => duplicate(cells, from, to),
                Column::Bool(cells) => duplicate(cells, from, to),
                Column::Str(cells) => duplicate(cells, from, to),
            }
        }
    }

    /// Copies every cell of `row` in `other` to `to` here.
    pub fn copy_row(&mut self, to: usize, other: &Attributes, row: usize) {
        for (name, column) in other.iter() {
            match column {
                Column::I64(v) => {
                    if let Some(Some(x)) = v.get(row) {
                        self.set_i64(name, to, *x);
                    }
                }
                Column::F64(v) => {
                    if let Some(Some(x)) = v.get(row) {
                        self.set_f64(name, to, *x);
                    }
                }
                Column::Bool(v) => {
                    if let Some(Some(x)) = v.get(row) {
                        self.set_bool(name, to, *x);
                    }
                }
                Column::Str(v) => {
                    if let Some(Some(x)) = v.get(row) {
                        self.set_str(name, to, x.clone());
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_sparse_and_typed() {
        let mut a = Attributes::default();
        a.set_i64("tokens", 2, 7);
        a.set_str("owner", 0, "me".into());
        assert_eq!(a.get_i64("tokens", 2), Some(7));
        assert_eq!(a.get_i64("tokens", 0), None);
        assert_eq!(a.get_f64("tokens", 2), None);
        a.retain_rows(&[false, false, true]);
        assert_eq!(a.get_i64("tokens", 0), Some(7));
        assert_eq!(a.get_str("owner", 0), None);
    }
}
