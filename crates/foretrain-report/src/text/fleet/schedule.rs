//! Policies side by side.

use foretrain_core::units::significant;
use foretrain_core::words::{counted, of_number};
use foretrain_fleet::schedule::compare::{Mean, Metric, PolicyResult};
use foretrain_fleet::schedule::{Answer, Ending, KNOWN};

use crate::text::TextStyle;
use crate::text::ledger;
use crate::text::sheet::Sheet;
use crate::text::table::{Side, Table};
use crate::text::units::percent;

/// How policies would have placed the jobs of a table.
pub fn fleet_schedule(
    answer: &Answer,
    ledger: &foretrain_core::Ledger,
    style: TextStyle,
) -> String {
    let mut sheet = Sheet::new(style);
    let (jobs, rows) = (answer.jobs, answer.used.rows);
    let missing = if answer.cut_short { "; a file is cut short, more may be missing" } else { "" };
    let of_rows = format!("{}: {jobs} of {}{missing}", answer.source, counted(rows, "row"));
    sheet.field("jobs", &of_rows);
    sheet.field("cluster", &answer.machines);
    let drawn = answer.runs - 1;
    if drawn > 0 {
        sheet.field(
            "runs",
            &format!(
                "{} per policy: the table, and {} as many jobs drawn from it; +- is a 90 % interval of \
                 the mean",
                answer.runs,
                if drawn == 1 { "once".into() } else { format!("{drawn} times") }
            ),
        );
    }
    for (why, count) in &answer.used.left_out {
        sheet.field("left out", &format!("{count} of {}: {why}", counted(rows, "row")));
    }
    let counts = KNOWN.iter().zip(answer.used.known).skip(1);
    let known: Vec<String> = counts.map(|(what, count)| format!("{what} {count}")).collect();
    sheet.field("known", &format!("of {}: {}", counted(jobs, "job"), known.join(", ")));

    let (unit, per_unit) = unit(&answer.results);
    sheet.heading(&format!("Times ({unit})"));
    times(&answer.results, per_unit, &mut sheet);
    if answer.results.iter().any(|result| result.savings.is_some()) {
        let first = answer.results[0].policy.name;
        sheet.heading(&format!("Saved over {first}"));
        savings(&answer.results, &mut sheet);
    }
    sheet.heading("Use of the cluster");
    uses(&answer.results, &mut sheet);

    sheet.blank();
    for result in &answer.results {
        let run = &result.table;
        if run.unfinished > 0 {
            let why = match run.ending {
                Ending::Cut => "when the run was cut",
                Ending::Failures => {
                    "when it was given up: nodes fail so often that between checkpoints no job gets on"
                }
                Ending::Stuck => "as the policy never starts what is left",
                Ending::Done => "when the run ended",
            };
            sheet.warning(&format!(
                "under {} {} of {} had not finished {why}; no times are given, as those of some jobs \
                 say nothing of all",
                result.policy.name,
                run.unfinished,
                counted(jobs, "job"),
            ));
        }
    }
    if let Some(why) = &answer.impossible {
        let count = answer.results.first().map_or(0, |result| result.table.impossible);
        sheet.warning(&format!(
            "{count} of {} {} never started, as {why}",
            counted(jobs, "job"),
            of_number(count, "was", "were")
        ));
    }
    for note in &answer.notes {
        sheet.paragraph("note: ", note);
    }
    ledger::ledger(&ledger.into(), &mut sheet);
    sheet.finish()
}

/// Hours for long runs, seconds for short ones.
fn unit(results: &[PolicyResult]) -> (&'static str, f64) {
    let longest = results.iter().map(|result| result.table.makespan.secs_f64()).fold(0.0, f64::max);
    if longest > 36_000.0 { ("h", 3_600.0) } else { ("s", 1.0) }
}

fn times(results: &[PolicyResult], per_unit: f64, sheet: &mut Sheet) {
    let columns = [
        Metric::Makespan,
        Metric::MeanCompletion,
        Metric::MedianCompletion,
        Metric::P99Completion,
        Metric::MeanWait,
        Metric::MedianWait,
        Metric::P99Wait,
        Metric::MeanWaited,
    ];
    let mut table = Table::new(&[
        ("Policy", Side::Left),
        ("Makespan", Side::Right),
        ("JCT mean", Side::Right),
        ("median", Side::Right),
        ("p99", Side::Right),
        ("Wait mean", Side::Right),
        ("median", Side::Right),
        ("p99", Side::Right),
        ("Waited mean", Side::Right),
    ]);
    for result in results {
        let mut cells = vec![result.policy.name.to_owned()];
        cells.extend(columns.map(|metric| {
            let value = mean(result, metric).map(|value| value.mean / per_unit);
            value.map_or_else(|| "-".into(), |value| significant(value, 4))
        }));
        table.row(cells);
    }
    table.keep_whole(0..9);
    sheet.table(table);
    sheet.paragraph(
        "",
        "JCT is from submission to end, wait until the first GPUs, and waited all time without GPUs, that \
         after pre-emptions and failures too.",
    );
}

fn savings(results: &[PolicyResult], sheet: &mut Sheet) {
    let mut table = Table::new(&[
        ("Policy", Side::Left),
        ("Makespan", Side::Right),
        ("JCT mean", Side::Right),
        ("Wait mean", Side::Right),
        ("Waited mean", Side::Right),
    ]);
    for result in results {
        let Some(savings) = result.savings else { continue };
        let mut cells = vec![result.policy.name.to_owned()];
        cells.extend(savings.map(saved));
        table.row(cells);
    }
    table.keep_whole(0..5);
    sheet.table(table);
}

/// `23.4 % +- 2.1`.
fn saved(mean: Mean) -> String {
    let value = percent(mean.mean);
    match mean.half_width {
        Some(half) => format!("{value} +- {:.1}", 100.0 * half),
        None => value,
    }
}

fn uses(results: &[PolicyResult], sheet: &mut Sheet) {
    let mut table = Table::new(&[
        ("Policy", Side::Left),
        ("With a job", Side::Right),
        ("Computing", Side::Right),
        ("Fragments", Side::Right),
        ("Memory", Side::Right),
        ("Energy (MWh)", Side::Right),
        ("Pre-empted", Side::Right),
        ("Moved", Side::Right),
        ("Failed", Side::Right),
    ]);
    for result in results {
        let share =
            |metric| mean(result, metric).map_or_else(|| "-".into(), |value| percent(value.mean));
        let energy = mean(result, Metric::Energy).map_or(0.0, |value| value.mean / 1e3);
        let [preempted, moved, failed] = result.table.disturbed.map(|count| count.to_string());
        table.row(vec![
            result.policy.name.to_owned(),
            share(Metric::Allocated),
            share(Metric::Utilisation),
            share(Metric::Fragmentation),
            share(Metric::Memory),
            significant(energy, 4),
            preempted,
            moved,
            failed,
        ]);
    }
    table.keep_whole(0..9);
    sheet.table(table);
    sheet.paragraph(
        "",
        "With a job and computing are shares of all GPU-time. Computing is each job's utilisation alone, \
         scaled by the rate at which it gets on: what jobs cost each other is none. Fragments are the \
         share of idle GPU-time that no usual job of the table could use where it was.",
    );
}

fn mean(result: &PolicyResult, metric: Metric) -> Option<Mean> {
    let at = Metric::ALL.iter().position(|other| *other == metric)?;
    result.means.get(at).copied().flatten()
}
