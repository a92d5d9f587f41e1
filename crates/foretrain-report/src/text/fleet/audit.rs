//! The page of `fleet audit`.

use foretrain_core::diagnostics::Coverage;
use foretrain_core::units::significant;
use foretrain_core::words::{counted, of_number};
use foretrain_fleet::audit::{Arrivals, Audit, Gap, Join, Period, TableAudit};
use foretrain_fleet::jobs::{Kind, UnitFrom};

use super::machines::of_machines;
use super::{amount, amount_of, day, of, those_of};
use crate::text::TextStyle;
use crate::text::ledger;
use crate::text::sheet::Sheet;
use crate::text::table::{Side, Table};
use crate::text::units::{name, percent};

/// Rows of a list before the rest is only counted.
pub(super) const SHOWN: usize = 12;
/// Characters for the coverage of columns, beside days and rows.
const WIDTH: usize = 64;

/// The page of `fleet audit`.
pub fn fleet_audit(audit: &Audit, style: TextStyle) -> String {
    let mut sheet = Sheet::new(style);
    for table in &audit.tables {
        of_table(table, &mut sheet);
    }
    for join in &audit.joins {
        of_join(join, &mut sheet);
    }
    of_machines(audit, &mut sheet);
    if let Some(gap) = &audit.gap {
        of_gap(gap, &mut sheet);
    }
    ledger::ledger(&(&audit.ledger).into(), &mut sheet);
    sheet.finish()
}

fn of_table(table: &TableAudit, sheet: &mut Sheet) {
    sheet.heading(&format!("{}: {}", heading(table.kind), name(&table.name, 80)));
    sheet.field("schema", &format!("{} ({})", table.schema.name, table.schema.about));
    let missing = if table.cut_short { "; the file is cut short, more may be missing" } else { "" };
    sheet.field("rows", &format!("{} read{missing}", of(table.rows)));
    if let Some(arrivals) = table.arrivals {
        sheet.field("arrivals", &said(arrivals, table.submitted));
        sheet.field(
            "run times",
            &format!("{} one", those_of(table.run_times, "row", "has", "have")),
        );
        let seen = table.duplicates;
        let mut repeated = format!(
            "{} of {} {} before, {} of them in an identical row",
            seen.ids,
            counted(seen.compared, "id"),
            of_number(seen.ids, "occurs", "occur"),
            seen.rows
        );
        if seen.elsewhere > 0 {
            repeated += &format!(
                "; {} {} in an earlier table of jobs, {} of them in an identical row: counted twice",
                seen.elsewhere,
                of_number(seen.elsewhere, "occurs", "occur"),
                seen.elsewhere_rows
            );
        }
        sheet.field("duplicates", &repeated);
    }
    let mut columns = Table::new(&[
        ("Column", Side::Left),
        ("Holds", Side::Left),
        ("Unit", Side::Left),
        ("Usable", Side::Right),
        ("Rows", Side::Right),
        ("", Side::Right),
    ]);
    for column in &table.columns {
        let binding = &column.binding;
        let unit = match binding.unit_from {
            UnitFrom::Itself => String::new(),
            from => format!("{} ({})", binding.unit.name, from.name()),
        };
        let coverage = column.coverage;
        columns.row(vec![
            name(&binding.title, 40),
            binding.field.name().into(),
            unit,
            coverage.used.to_string(),
            coverage.total.to_string(),
            percent(coverage.used as f64 / coverage.total as f64),
        ]);
    }
    sheet.table(columns);
    if !table.unused.is_empty() {
        let titles: Vec<String> =
            table.unused.iter().take(30).map(|title| name(title, 40)).collect();
        sheet.field("not read", &titles.join(", "));
    }
    if table.kind != Kind::Machines && table.kind != Kind::Samples {
        of_periods(table, sheet);
    }
}

fn heading(kind: Kind) -> &'static str {
    match kind {
        Kind::Jobs => "Jobs",
        Kind::Parts => "Parts of jobs",
        Kind::Machines => "Machines",
        Kind::Samples => "GPU samples",
    }
}

fn said(arrivals: Arrivals, submitted: Coverage) -> String {
    let said = match arrivals {
        Arrivals::Submitted if submitted.used < submitted.total => {
            let rows = those_of(submitted, "row", "has", "have");
            return format!("known for some: {rows} a time of submission");
        }
        Arrivals::Submitted => "known: a time of submission",
        Arrivals::Started => {
            "unknown: only starts are known, so no waits; name a column with --column submit=COLUMN"
        }
        Arrivals::SpansOnly => {
            "unknown and not made up: no row tells a submission or a start, so durations and waits can \
             be described and nothing can be replayed; name a column with --column submit=COLUMN"
        }
        Arrivals::Untimed => "unknown: no row tells a time",
    };
    said.into()
}

fn of_periods(table: &TableAudit, sheet: &mut Sheet) {
    let Some(first) = table.periods.first() else {
        sheet.field(
            "days",
            &format!(
                "none: {} {} no date",
                counted(table.undated, "row"),
                of_number(table.undated, "has", "have")
            ),
        );
        return;
    };
    let last = table.periods.last().unwrap_or(first);
    let days: u64 = table.periods.iter().map(|period| period.days).sum();
    let span = last.last.saturating_sub(first.first).saturating_add(1);
    let about = format!(
        "{}: rows on {days} of {span}; {} without a date",
        days_of(first.first, last.last),
        counted(table.undated, "row")
    );
    sheet.field("days", &about);
    let shown = most_rows(&table.periods);
    let (varying, hidden_columns) = by_column(&table.periods, sheet);
    if varying.is_empty() {
        return;
    }
    let mut titles: Vec<(&str, Side)> = vec![("Days", Side::Left), ("Rows", Side::Right)];
    titles.extend(varying.iter().map(|column| (first.filled[*column].0.name(), Side::Right)));
    let mut periods = Table::new(&titles);
    for period in &shown {
        let mut cells = vec![days_of(period.first, period.last), period.rows.to_string()];
        cells.extend(varying.iter().map(|column| {
            let rows = period.filled.get(*column).map_or(0, |(_, rows)| *rows);
            percent(rows as f64 / period.rows as f64)
        }));
        periods.row(cells);
    }
    sheet.table(periods);
    if hidden_columns > 0 {
        let columns = counted(hidden_columns, "more column");
        sheet.line(&format!("{columns} that differ less; --json has all"));
    }
    let hidden = table.periods.len() - shown.len();
    if hidden > 0 {
        let text =
            format!("{} with fewer rows; --json lists every day", counted(hidden, "more period"));
        sheet.line(&text);
    }
}

/// Says which columns are full or empty on all days; the positions of the others, those that differ
/// most between periods, and how many more there are.
fn by_column(periods: &[Period], sheet: &mut Sheet) -> (Vec<usize>, usize) {
    let Some(first) = periods.first() else { return (Vec::new(), 0) };
    let (mut full, mut empty) = (Vec::new(), Vec::new());
    let mut varying: Vec<(usize, f64)> = Vec::new();
    for (column, (field, _)) in first.filled.iter().enumerate() {
        let of = |period: &Period| period.filled.get(column).map_or(0, |(_, rows)| *rows);
        let shares = periods.iter().map(|period| of(period) as f64 / period.rows as f64);
        let (least, most) =
            shares.fold((1.0_f64, 0.0_f64), |(least, most), s| (least.min(s), most.max(s)));
        if least >= 1.0 {
            full.push(field.name());
        } else if most <= 0.0 {
            empty.push(field.name());
        } else {
            varying.push((column, most - least));
        }
    }
    for (title, names) in [("in all rows", full), ("in no row", empty)] {
        if !names.is_empty() {
            sheet.field(title, &names.join(", "));
        }
    }
    varying.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let mut left = WIDTH;
    let fits = |column: &usize| {
        let width = 2 + first.filled[*column].0.name().len().max("100.0 %".len());
        let fits = width <= left;
        left = left.saturating_sub(width);
        fits
    };
    let all = varying.len();
    let mut columns: Vec<usize> =
        varying.into_iter().map(|(column, _)| column).take_while(fits).collect();
    let hidden = all - columns.len();
    columns.sort_unstable();
    (columns, hidden)
}

/// The periods with the most rows, in order of time.
fn most_rows(periods: &[Period]) -> Vec<&Period> {
    let mut most: Vec<&Period> = periods.iter().collect();
    most.sort_by_key(|period| std::cmp::Reverse(period.rows));
    most.truncate(SHOWN);
    most.sort_by_key(|period| period.first);
    most
}

fn days_of(first: i64, last: i64) -> String {
    if first == last { day(first) } else { format!("{} to {}", day(first), day(last)) }
}

fn of_join(join: &Join, sheet: &mut Sheet) {
    sheet.heading(&format!("Jobs joined to {}", name(&join.parts, 80)));
    let unnamed = match join.unnamed {
        0 => String::new(),
        unnamed => {
            format!("; {unnamed} more {} no id to join by", of_number(unnamed, "has", "have"))
        }
    };
    sheet.field(
        "jobs",
        &format!(
            "{} {} a row in it{unnamed}",
            of(join.jobs),
            of_number(join.jobs.used, "has", "have")
        ),
    );
    sheet.field(
        "rows",
        &format!("{} {} a job there is", of(join.rows), of_number(join.rows.used, "names", "name")),
    );
    if let Some((first, last)) = join.days {
        sheet.field("its days", &days_of(first, last));
    }
    if join.on_several_machines > 0 {
        let text = format!("{} on several machines", counted(join.on_several_machines, "job"));
        sheet.field("spread", &text);
    }
    let mut table = Table::new(&[
        ("Days of the jobs", Side::Left),
        ("Joined", Side::Right),
        ("Jobs", Side::Right),
        ("", Side::Right),
    ]);
    for period in join.periods.iter().take(SHOWN) {
        let jobs = period.jobs;
        let share = jobs.used as f64 / jobs.total as f64;
        // Of a few among many, one decimal is nothing.
        let share = if share > 0.0 && share < 0.01 {
            format!("{} %", significant(share * 100.0, 2))
        } else {
            percent(share)
        };
        table.row(vec![
            days_of(period.first, period.last),
            jobs.used.to_string(),
            jobs.total.to_string(),
            share,
        ]);
    }
    if !table.is_empty() {
        sheet.table(table);
    }
    if join.periods.len() > SHOWN {
        sheet.line(&counted(join.periods.len() - SHOWN, "more period"));
    }
}

fn of_gap(gap: &Gap, sheet: &mut Sheet) {
    sheet.heading("GPU samples against jobs");
    let total = gap.compared + gap.outside;
    sheet.field(
        "compared",
        &format!(
            "{} of {} {} within the span of the jobs",
            gap.compared,
            counted(total, "GPU sample"),
            of_number(gap.compared, "lies", "lie")
        ),
    );
    if gap.busy == 0.0 {
        sheet.field("busy", "no GPU sample is above 5 %");
        return;
    }
    let text = format!(
        "{} on average; jobs held {}",
        amount_of(gap.mean_busy, "GPU"),
        amount(gap.mean_held)
    );
    sheet.field("busy", &text);
    let whole = if gap.by_machine { "machine by machine" } else { "over the whole fleet" };
    let text = format!(
        "{} of {} busy GPU samples ({}) have no job of the table, {whole}",
        amount(gap.unexplained),
        amount(gap.busy),
        percent(gap.share())
    );
    sheet.field("unexplained", &text);
    if gap.open_ended > 0 {
        let jobs = counted(gap.open_ended, "job");
        let text = format!("{jobs} taken to hold GPUs from the start on, so the gap may be larger");
        sheet.field("without end", &text);
    }
    if gap.incomplete() {
        let or = match gap.clocks_differ {
            true => {
                "; or the clocks differ: only jobs or only samples say in which time zone they are, and \
                 a shift of hours between the two would explain it"
            }
            false => "",
        };
        sheet.warning(&format!(
            "job table incomplete: {} of the busy GPU time belongs to no job in it{or}",
            percent(gap.share())
        ));
    }
    let mut table =
        Table::new(&[("Machine", Side::Left), ("Busy samples without a job", Side::Right)]);
    for (machine, unexplained) in &gap.machines {
        table.row(vec![name(machine, 60), amount(*unexplained)]);
    }
    if !table.is_empty() {
        sheet.table(table);
    }
}
