//! One look for all tables: no frames, a rule under the header, numbers to the right.

use comfy_table::{
    CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, Table as Grid, TableStyle,
    Width,
};
use foretrain_core::words::printable;

/// Which side a column's cells stand on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Left,
    Right,
}

/// A table under construction.
pub(super) struct Table {
    grid: Grid,
    columns: Vec<(String, Side)>,
    rows: Vec<Vec<String>>,
}

const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('-'));

impl Table {
    /// A table with these columns.
    pub(super) fn new(columns: &[(&str, Side)]) -> Self {
        let mut grid = Grid::new();
        grid.load_style(STYLE);
        grid.force_no_tty();
        grid.set_content_arrangement(ContentArrangement::Dynamic);
        grid.set_header(columns.iter().map(|(name, _)| printable(name).into_owned()));
        for (index, (_, side)) in columns.iter().enumerate() {
            if let Some(column) = grid.column_mut(index) {
                column.set_padding((0, if index + 1 < columns.len() { 2 } else { 0 }));
                column.set_cell_alignment(match side {
                    Side::Left => CellAlignment::Left,
                    Side::Right => CellAlignment::Right,
                });
            }
        }
        let columns = columns.iter().map(|(name, side)| ((*name).to_owned(), *side)).collect();
        Self { grid, columns, rows: Vec::new() }
    }

    /// Adds a row; cells beyond the columns are a mistake of the caller.
    pub(super) fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.columns.len());
        self.grid.add_row(cells.iter().map(|cell| printable(cell).into_owned()));
        self.rows.push(cells);
    }

    /// Whether no row was added.
    pub(super) fn is_empty(&self) -> bool {
        self.grid.is_empty()
    }

    /// Never breaks the cells of these columns.
    pub(super) fn keep_whole(&mut self, columns: impl IntoIterator<Item = usize>) {
        for index in columns {
            if let Some(column) = self.grid.column_mut(index) {
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
    }

    /// Breaks the cells of a column beyond this width.
    pub(super) fn at_most(&mut self, column: usize, width: u16) {
        if let Some(column) = self.grid.column_mut(column) {
            column.set_constraint(ColumnConstraint::UpperBoundary(Width::Fixed(width)));
        }
    }

    /// Titles with the side that cells stand on.
    pub(super) fn columns(&self) -> &[(String, Side)] {
        &self.columns
    }

    /// Cells as they were given.
    pub(super) fn rows(&self) -> &[Vec<String>] {
        &self.rows
    }

    /// The lines of the table within a width.
    pub(super) fn lines(mut self, width: usize) -> Vec<String> {
        self.grid.set_width(u16::try_from(width).unwrap_or(u16::MAX));
        self.grid.lines().map(|line| line.trim_end().to_owned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_right_and_long_text_is_broken() {
        let mut table = Table::new(&[("what", Side::Left), ("ms", Side::Right)]);
        table.row(vec!["compute and a few more words than fit".into(), "1.5".into()]);
        table.row(vec!["wait".into(), "12.25".into()]);
        table.keep_whole([1]);
        let lines = table.lines(24);
        assert!(lines.iter().all(|line| line.chars().count() <= 24), "{lines:#?}");
        assert!(lines[0].starts_with("what") && lines[0].ends_with("ms"));
        assert!(lines.last().is_some_and(|l| l.starts_with("wait") && l.ends_with("12.25")));
    }
}
