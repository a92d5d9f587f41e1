//! How long jobs ran and waited, and what they held.

use foretrain_core::diagnostics::Coverage;
use foretrain_core::words::counted;
use foretrain_fleet::jobs::Status;
use foretrain_fleet::pai::distribution::{Distributions, Group, QUANTILES, Spread};

use super::{amount, those_of};
use crate::text::sheet::Sheet;
use crate::text::table::{Side, Table};
use crate::text::units::percent;

pub(super) fn distributions(found: &Distributions, sheet: &mut Sheet) {
    let lines: Vec<(&str, Spread)> = [
        ("run time (s)", found.run_seconds()),
        ("wait (s)", found.wait_seconds()),
        ("GPUs", found.gpus()),
        ("GPU-hours", found.gpu_hours()),
    ]
    .into_iter()
    .filter_map(|(what, spread)| Some((what, spread?)))
    .collect();
    if lines.is_empty() {
        return;
    }
    sheet.heading("Distributions");
    let titles: Vec<String> =
        QUANTILES.iter().map(|part| format!("p{:.0}", part * 100.0)).collect();
    let mut columns = vec![("Of", Side::Left), ("Rows", Side::Right), ("Mean", Side::Right)];
    columns.extend(titles.iter().map(|title| (title.as_str(), Side::Right)));
    columns.push(("Most", Side::Right));
    let mut table = Table::new(&columns);
    for (what, spread) in &lines {
        let mut cells = vec![(*what).to_owned(), spread.rows.to_string(), amount(spread.mean)];
        cells.extend(spread.quantiles.map(amount));
        cells.push(amount(spread.most));
        table.row(cells);
    }
    sheet.table(table);
    let rows = |used| those_of(Coverage { used, total: found.rows() }, "row", "has", "have");
    let with = |spread: Option<Spread>| rows(spread.map_or(0, |spread| spread.rows));
    sheet.field("run times", &format!("{} one", with(found.run_seconds())));
    sheet.field("waits", &format!("{} one", with(found.wait_seconds())));
    sheet.field("arrivals", &format!("{} a time of submission", rows(found.submitted())));
    groups("Jobs by their GPUs", "GPUs", &found.by_gpus(), sheet);
    let statuses: Vec<(&str, Group)> = found
        .by_status()
        .into_iter()
        .map(|(status, group)| (Status::name(status), group))
        .collect();
    groups("Jobs by how they ended", "Status", &statuses, sheet);
    if !statuses.is_empty() && found.without_status() > 0 {
        sheet.field(
            "no status",
            &format!("{} of {}", found.without_status(), counted(found.rows(), "row")),
        );
    }
}

fn groups(heading: &str, column: &str, groups: &[(&str, Group)], sheet: &mut Sheet) {
    if groups.is_empty() {
        return;
    }
    sheet.heading(heading);
    let jobs: u64 = groups.iter().map(|(_, group)| group.jobs).sum();
    let seconds: f64 = groups.iter().map(|(_, group)| group.gpu_seconds).sum();
    // Where GPU-hours are not known of all jobs, of how many they are.
    let partly = groups.iter().any(|(_, group)| group.timed < group.jobs);
    let mut columns = vec![
        (column, Side::Left),
        ("Jobs", Side::Right),
        ("", Side::Right),
        ("GPU-hours", Side::Right),
        ("", Side::Right),
    ];
    if partly {
        columns.push(("Of jobs", Side::Right));
    }
    let mut table = Table::new(&columns);
    for (name, group) in groups {
        let held = |text: String| if group.timed > 0 { text } else { "-".into() };
        let mut cells = vec![
            (*name).to_owned(),
            group.jobs.to_string(),
            percent(group.jobs as f64 / jobs as f64),
            held(amount(group.gpu_seconds / 3600.0)),
            held(percent(group.gpu_seconds / seconds)),
        ];
        if partly {
            cells.push(format!("{} of {}", group.timed, group.jobs));
        }
        table.row(cells);
    }
    sheet.table(table);
}
