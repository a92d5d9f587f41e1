//! Lines of tables as cells.

use super::super::csv;
use super::super::number::Printed;
use super::unit::Unit;

/// What stands between the cells of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gap {
    Bar,
    Comma,
    Blanks,
}

impl Gap {
    /// What separates the titles on a line.
    pub(super) fn of_titles(line: &str) -> Self {
        if line.contains('|') {
            Self::Bar
        } else if line.contains(',') {
            Self::Comma
        } else {
            Self::Blanks
        }
    }

    /// The titles on a line. Between blanks, titles of several words need two blanks around them.
    pub(super) fn titles(self, line: &str) -> Vec<String> {
        match self {
            Self::Blanks => {
                line.split("  ").flat_map(|part| part.split('\t')).filter_map(filled).collect()
            }
            _ => self.split(line),
        }
    }

    /// The cells of a row. Between blanks, a unit belongs to the number before it.
    pub(super) fn cells(self, line: &str) -> Vec<String> {
        if self != Self::Blanks {
            return self.split(line);
        }
        let mut cells: Vec<String> = Vec::new();
        for word in line.split_whitespace() {
            match cells.last_mut() {
                Some(last) if Unit::parse(word).is_some() && Printed::parse(last).is_some() => {
                    last.push_str(word);
                }
                _ => cells.push(word.to_owned()),
            }
        }
        cells
    }

    fn split(self, line: &str) -> Vec<String> {
        match self {
            Self::Bar => line.trim().trim_matches('|').split('|').map(trimmed).collect(),
            _ => csv::fields(line),
        }
    }
}

fn trimmed(text: &str) -> String {
    text.trim_matches(|c: char| c.is_whitespace() || matches!(c, '`' | '*')).to_owned()
}

fn filled(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// A number and the unit behind it, if there is one: `32KB`, `0.92GBps`, `12.3 ms`, `4096`.
pub(super) fn quantity(cell: &str) -> Option<(Printed, Option<Unit>)> {
    let end = cell.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(cell.len());
    if let Some(number) = Printed::parse(cell) {
        return Some((number, None));
    }
    let number = Printed::parse(&cell[..end])?;
    Some((number, Some(Unit::parse(cell[end..].trim_start())?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_fall_into_the_cells_of_their_titles() {
        for (gap, line, want) in [
            (Gap::Bar, "|  32KB | 0.92GBps |", vec!["32KB", "0.92GBps"]),
            (Gap::Bar, "32KB | 0.92", vec!["32KB", "0.92"]),
            (Gap::Comma, "1024,\"one node, 8 GPUs\"", vec!["1024", "one node, 8 GPUs"]),
            (Gap::Blanks, "4.0 MB  1x4   172.3 us 48.6", vec!["4.0MB", "1x4", "172.3us", "48.6"]),
        ] {
            assert_eq!(gap.cells(line), want, "{line}");
        }
        assert_eq!(
            Gap::Blanks.titles("Size (Bytes)   Duration  x"),
            ["Size (Bytes)", "Duration", "x"]
        );
    }

    #[test]
    fn numbers_come_with_their_units() {
        let value =
            |cell: &str| quantity(cell).map(|(number, unit)| (number.value, unit.is_some()));
        for (cell, want) in [
            ("32KB", Some((32.0, true))),
            ("12.5 ms", Some((12.5, true))),
            ("1e3", Some((1000.0, false))),
            ("4096", Some((4096.0, false))),
            ("12 apples", None),
            ("fast", None),
            ("", None),
            ("µs", None),
        ] {
            assert_eq!(value(cell), want, "{cell}");
        }
    }
}
