//! The report as a document.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::report::{SetReport, ValidationReport};

/// Lines of skipped things listed under one reason before the rest is counted.
const LISTED: usize = 40;

/// The report as Markdown: a summary, then each set with its files and what was left out.
pub fn to_markdown(report: &ValidationReport) -> String {
    let mut out = String::from(
        "# Validation\n\n\
         Made by `foretrain validate --data DIR --write docs/validation.md`; do not edit by hand.\n\n\
         Errors are in percent of the measured value: MAPE is the mean of their absolute values, \
         bias the mean of the signed ones (above zero: predictions too long), coverage the share \
         of measurements inside the predicted 80 % interval. No number is fitted to the rows \
         scored here. Rules of replaying were chosen among a few, each argued from how the programs \
         work, with their errors on these files in view; score files nobody has seen with \
         `--extra DIR`. What a set leaves out is listed below it with the reason.\n\n\
         | set | on | n | MAPE | median | p90 | worst | bias | coverage | reference |\n\
         |---|---|---:|---:|---:|---:|---:|---:|---:|---|\n",
    );
    for set in &report.sets {
        let _ = writeln!(out, "{}", summary_row(set));
    }
    for set in &report.sets {
        section(&mut out, set);
    }
    out
}

fn summary_row(set: &SetReport) -> String {
    let reference = set.reference.as_ref().map_or("-".into(), |reference| {
        let median =
            reference.median_ape.map_or(String::new(), |m| format!(", median {} %", number(m)));
        format!("{}: MAPE {} %{median}", cell(&reference.who), number(reference.mape))
    });
    let Some(s) = &set.scores else {
        return format!("| {} | {} | 0 | - | - | - | - | - | - | - |", set.name, cell(&set.on));
    };
    format!(
        "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {reference} |",
        set.name,
        cell(&set.on),
        s.n,
        number(s.mape),
        number(s.median_ape),
        number(s.p90_ape),
        number(s.max_ape),
        signed(s.bias),
        s.coverage80.map_or("-".into(), number),
    )
}

fn section(out: &mut String, set: &SetReport) {
    let _ = write!(out, "\n## {} on {}\n\n{}\n", set.name, set.on, set.about);
    if let Some(median) = set.group_median() {
        let groups = set.groups.len();
        let _ = write!(out, "\nMedian MAPE of the {groups} rows below: {} %.\n", number(median));
    }
    for note in &set.notes {
        let _ = write!(out, "\nNote: {}.\n", cell(note));
    }
    if !set.groups.is_empty() {
        out.push_str("\n| file | n | MAPE | bias | worst | at |\n|---|---:|---:|---:|---:|---|\n");
        for group in &set.groups {
            let _ = writeln!(
                out,
                "| {} | {} | {} | {} | {} | {} |",
                code(&group.what),
                group.scores.n,
                number(group.scores.mape),
                signed(group.scores.bias),
                signed(group.worst_error),
                cell(&group.worst),
            );
        }
    }
    if !set.skipped.is_empty() {
        let _ = write!(out, "\n### Left out of {} on {}\n\n", set.name, set.on);
        let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for skipped in &set.skipped {
            by_reason.entry(&skipped.why).or_default().push(&skipped.what);
        }
        for (why, what) in by_reason {
            let _ = writeln!(out, "- {} ({}):", cell(why), what.len());
            for what in what.iter().take(LISTED) {
                let _ = writeln!(out, "  - {}", code(what));
            }
            if what.len() > LISTED {
                let _ = writeln!(out, "  - and {} more", what.len() - LISTED);
            }
        }
    }
}

/// Text that neither ends a table's cell nor starts markup.
fn cell(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_control())
        .flat_map(|c| {
            let escape = matches!(c, '|' | '*' | '_' | '`' | '<' | '[' | '#' | '\\');
            escape.then_some('\\').into_iter().chain([c])
        })
        .collect()
}

/// A file's name.
fn code(text: &str) -> String {
    let text: String =
        text.chars().filter(|c| !c.is_control()).map(|c| if c == '`' { '\'' } else { c }).collect();
    format!("`{}`", text.replace('|', "\\|"))
}

fn number(value: f64) -> String {
    format!("{value:.2}")
}

fn signed(value: f64) -> String {
    let text = format!("{value:+.2}");
    if matches!(text.as_str(), "+0.00" | "-0.00") { "0.00".into() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validate::report::{Reference, Row, SetOutcome, Skipped};
    use crate::validate::{Root, sets};

    fn sample() -> ValidationReport {
        let dir = tempfile::tempdir().expect("directory");
        let root = Root::data(dir.path()).expect("root");
        let row = |group: &str, what: &str, predicted: f64| Row {
            group: group.into(),
            what: what.into(),
            predicted,
            measured: 100.0,
            reference: Some(105.0),
            ..Row::default()
        };
        let outcome = SetOutcome {
            notes: Vec::new(),
            rows: vec![
                row("a|b.json", "Step#1", 90.0),
                row("a|b.json", "Step#2", 102.0),
                row("c.json", "Step#1", 100.0),
            ],
            skipped: vec![
                Skipped { what: "z.et".into(), why: "not a trace".into() },
                Skipped { what: "y.et".into(), why: "not a trace".into() },
            ],
            reference: Some("the others".into()),
        };
        ValidationReport {
            sets: vec![SetReport::new(sets().next().expect("a set"), &root, outcome, false)],
        }
    }

    #[test]
    fn tables_hold_scores_groups_reference_and_reasons() {
        let report = sample();
        assert_eq!(
            report.sets[0].reference,
            Some(Reference { who: "the others".into(), mape: 5.0, median_ape: Some(5.0) })
        );
        let text = to_markdown(&report);
        for line in [
            "| replay | data | 3 | 4.00 | 2.00 | 8.40 | 10.00 | -2.67 | - | the others: MAPE 5.00 %, median 5.00 % |",
            "| `a\\|b.json` | 2 | 6.00 | -4.00 | -10.00 | Step\\#1 |",
            "| `c.json` | 1 | 0.00 | 0.00 | 0.00 | Step\\#1 |",
            "- not a trace (2):\n  - `y.et`\n  - `z.et`\n",
        ] {
            assert!(text.contains(line), "missing {line}\nin\n{text}");
        }
    }

    #[test]
    fn rows_are_kept_only_if_asked_for() {
        assert!(sample().sets[0].rows.is_empty());
    }

    #[test]
    fn a_set_without_rows_prints_no_numbers() {
        let mut report = sample();
        report.sets[0].scores = None;
        report.sets[0].groups.clear();
        let text = to_markdown(&report);
        assert!(text.contains("| replay | data | 0 | - |"), "{text}");
        assert!(!text.contains("NaN"));
    }
}
