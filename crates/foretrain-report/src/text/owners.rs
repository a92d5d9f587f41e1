//! Breakdowns side by side.

use foretrain_core::Nanos;
use foretrain_predict::{Breakdown, Owner};

use super::sheet::Sheet;
use super::table::{Side, Table};
use super::units::{ms, name, percent_of};

/// Breakdowns that stand side by side within 100 columns.
pub(super) const SIDE_BY_SIDE: usize = 4;
/// Owners below this share of every shown step are summed up.
const SMALL: f64 = 0.0005;

/// One column: its heading, the breakdown, and the role of a group by its name.
pub(super) struct Column<'a> {
    pub(super) heading: String,
    pub(super) breakdown: &'a Breakdown,
    pub(super) role: &'a dyn Fn(&str) -> Option<&'static str>,
}

/// The table of who owns the time of each column.
pub(super) fn owners(columns: &[Column<'_>], sheet: &mut Sheet) {
    let mut rows: Vec<(Row, Vec<Nanos>)> = Vec::new();
    for (at, column) in columns.iter().enumerate() {
        for (owner, time) in &column.breakdown.parts {
            let row = Row::new(owner, column.role);
            let known = rows.iter().position(|(r, _)| *r == row).unwrap_or_else(|| {
                rows.push((row, vec![Nanos::ZERO; columns.len()]));
                rows.len() - 1
            });
            rows[known].1[at] += *time;
        }
    }
    rows.sort_by(|a, b| a.0.cmp(&b.0));
    let totals: Vec<Nanos> = columns.iter().map(|column| column.breakdown.total()).collect();
    let mut headers = vec![("Owner of the time, ms", Side::Left)];
    headers.extend(columns.iter().map(|column| (column.heading.as_str(), Side::Right)));
    let mut table = Table::new(&headers);
    let cell = |time: Nanos, total: Nanos| match time {
        Nanos::ZERO => "-".to_owned(),
        _ => format!("{} {:>7}", ms(time), percent_of(time, total)),
    };
    let mut small = vec![Nanos::ZERO; columns.len()];
    for (row, times) in &rows {
        let share =
            |(time, total): (&Nanos, &Nanos)| time.nanos() as f64 / total.nanos().max(1) as f64;
        if times.iter().zip(&totals).map(share).fold(0.0, f64::max) < SMALL {
            small.iter_mut().zip(times).for_each(|(sum, time)| *sum += *time);
            continue;
        }
        let mut cells = vec![row.label.clone()];
        cells.extend(times.iter().zip(&totals).map(|(time, total)| cell(*time, *total)));
        table.row(cells);
    }
    if small.iter().any(|time| *time > Nanos::ZERO) {
        let mut cells = vec!["others, each below 0.05 %".to_owned()];
        cells.extend(small.iter().zip(&totals).map(|(time, total)| cell(*time, *total)));
        table.row(cells);
    }
    let mut cells = vec!["step".to_owned()];
    cells.extend(totals.iter().map(|total| format!("{} {:>7}", ms(*total), "100.0 %")));
    table.row(cells);
    table.keep_whole(1..=columns.len());
    sheet.table(table);
}

/// The owner of most of a breakdown and its share, as words.
pub(super) fn largest(breakdown: &Breakdown) -> String {
    let largest = breakdown.parts.iter().max_by_key(|(_, time)| *time);
    largest.map_or_else(String::new, |(owner, time)| {
        let word = match owner {
            Owner::ExposedCommunication { kind, .. } => kind.as_str(),
            other => other.code(),
        };
        let share = time.nanos() as f64 / breakdown.total().nanos().max(1) as f64;
        format!("{word} {:.0} %", share * 100.0)
    })
}

/// A row of the breakdown: an owner, whatever the size of its group.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    precedence: usize,
    label: String,
}

impl Row {
    fn new(owner: &Owner, role: &dyn Fn(&str) -> Option<&'static str>) -> Self {
        let precedence = match owner {
            Owner::Compute => 0,
            Owner::ExposedCommunication { .. } => 1,
            Owner::StragglerWait => 2,
            Owner::Copy => 3,
            Owner::Input => 4,
            Owner::LaunchBound => 5,
            Owner::Host => 6,
        };
        let label = match owner {
            Owner::ExposedCommunication { group, kind } => {
                format!("exposed {kind}, {}", group_name(group, role(group)))
            }
            other => other.describe(),
        };
        Self { precedence, label }
    }
}

/// A group for people: its role if known, and its name if that tells anything. Sizes and members
/// are left out: they change along a row.
pub(super) fn group_name(group: &str, role: Option<&'static str>) -> String {
    let end = group.find(" (").or_else(|| group.find(" [")).unwrap_or(group.len());
    let group = name(group[..end].trim_start_matches("unnamed "), 24);
    match role.filter(|role| *role != "unknown") {
        Some(role) if group == role || group.is_empty() => role.to_owned(),
        Some(role) => format!("{role} group {group}"),
        None if group.is_empty() => "group unknown".to_owned(),
        None => format!("group {group}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_named_by_role_and_without_their_size() {
        assert_eq!(
            group_name("data-parallel (64 replicas)", Some("data-parallel")),
            "data-parallel"
        );
        assert_eq!(group_name("0 [0-1]", Some("data-parallel")), "data-parallel group 0");
        assert_eq!(group_name("unnamed #2", None), "group #2");
        assert_eq!(group_name("12", Some("tensor-parallel")), "tensor-parallel group 12");
        assert_eq!(group_name("12", Some("unknown")), "group 12");
        assert_eq!(group_name("", None), "group unknown");
    }
}
