//! A calibration as a page.

pub(crate) mod findings;
mod residuals;

use foretrain_core::{Bytes, Ledger};
use foretrain_cost::calibrate::Fitted;
use foretrain_hardware::collectives::{Choice, Sweep};
use foretrain_predict::collectives::calibrate::{CalibrateAnswer, Reach};

use super::TextStyle;
use super::ledger;
use super::sheet::Sheet;
use super::table::{Side, Table};
use super::units::{counted, name, plain, whole_size};

/// The page for a calibration. `kept_in` is the file that the cluster was written to, `ledger` what
/// reading the logs met.
pub fn calibrate_collectives(
    answer: &CalibrateAnswer,
    kept_in: Option<&str>,
    ledger: &Ledger,
    style: TextStyle,
) -> String {
    let mut sheet = Sheet::new(style);
    about(answer, kept_in, &mut sheet);
    used(answer, &mut sheet);
    constants(answer, &mut sheet);
    picks(answer, &mut sheet);
    residuals::residuals(&answer.report, style, &mut sheet);
    findings(answer, &mut sheet);
    trust(&answer.reach, answer.report.noise, &mut sheet);
    ledger::ledger(&ledger.into(), &mut sheet);
    sheet.finish()
}

fn about(answer: &CalibrateAnswer, kept_in: Option<&str>, sheet: &mut Sheet) {
    let base = answer.file.base.name();
    sheet.heading(&format!("{}: {base} with its collectives as measured", answer.file.name));
    let rows: usize = answer.used.iter().map(|run| run.rows).sum();
    let out = answer.report.residuals.iter().filter(|row| !row.kept).count();
    let out = if out > 0 { format!(", {out} of them kept out of the fit") } else { String::new() };
    sheet.field("rows", &format!("{rows}{out}"));
    let typical = answer.report.typical_residual * 100.0;
    sheet.field(
        "fit",
        &format!("constants of the model alone are {typical:.1} % off in the median; what is left is kept by size"),
    );
    match kept_in {
        Some(file) => sheet.field("written to", &format!("{file}; use it as --on {file}")),
        None => sheet.field("kept", "nowhere; add -o FILE.toml and use it as --on FILE.toml"),
    }
    if !answer.is_self_contained {
        sheet.field(
            "needs",
            &format!(
                "the file that defines {base}, with --hardware beside --on: it is not built in"
            ),
        );
    }
    if !answer.has_many_nodes() {
        sheet.field(
            "one node",
            "nothing is known of the network yet, so several nodes keep the wide interval of usual \
             machines; a log on two nodes is worth most",
        );
    }
}

fn used(answer: &CalibrateAnswer, sheet: &mut Sheet) {
    use Side::{Left, Right};
    sheet.heading("What was used");
    let mut table = Table::new(&[
        ("Log", Left),
        ("Operation", Left),
        ("GPUs", Right),
        ("Nodes", Right),
        ("Rows", Right),
    ]);
    for run in &answer.used {
        table.row(vec![
            file(&run.source),
            run.kind.to_string(),
            run.ranks.to_string(),
            run.nodes.to_string(),
            run.rows.to_string(),
        ]);
    }
    table.keep_whole(1..5);
    sheet.table(table);
    notes(answer, sheet);
    let left_out = answer.left_out.iter().map(|out| {
        let lines = match (out.lines, out.rows) {
            ((_, 0), _) | (_, 0) => String::new(),
            ((first, last), rows) if first == last => {
                format!(", {} on line {first}", counted(rows, "row"))
            }
            ((first, last), rows) => {
                format!(", {} on lines {first} to {last}", counted(rows, "row"))
            }
        };
        format!("{}{lines}: {}", file(&out.source), out.why)
    });
    let left_out: Vec<String> = left_out.collect();
    if !left_out.is_empty() {
        sheet.heading("What was left out");
        for line in &left_out {
            sheet.paragraph("- ", &name(line, 400));
        }
    }
}

/// Each note once, with the logs that it is of.
fn notes(answer: &CalibrateAnswer, sheet: &mut Sheet) {
    let of_runs = answer
        .used
        .iter()
        .flat_map(|run| run.notes.iter().map(|note| (note.clone(), file(&run.source))));
    let of_logs =
        answer.libraries.iter().map(|(log, version)| (format!("it ran with {version}"), file(log)));
    let mut notes: Vec<(String, Vec<String>)> = Vec::new();
    for (note, log) in of_runs.chain(of_logs) {
        match notes.iter_mut().find(|(known, _)| *known == note) {
            Some((_, logs)) if logs.contains(&log) => {}
            Some((_, logs)) => logs.push(log),
            None => notes.push((note, vec![log])),
        }
    }
    for (number, (note, logs)) in notes.iter().enumerate() {
        if number == 0 {
            sheet.blank();
        }
        let more = match logs.len() {
            1 => String::new(),
            count => format!(" and {}", counted(count - 1, "further log")),
        };
        sheet.paragraph("note: ", &format!("{}{more}: {}", logs[0], name(note, 400)));
    }
}

fn constants(answer: &CalibrateAnswer, sheet: &mut Sheet) {
    use Side::{Left, Right};
    let (told, silent): (Vec<&Fitted>, Vec<&Fitted>) =
        answer.report.constants.iter().partition(|fitted| fitted.is_told());
    sheet.heading("Constants that the logs speak of");
    if told.is_empty() {
        sheet.paragraph("", "None: the rows are too few or agree with usual machines.");
    } else {
        let mut table = Table::new(&[
            ("Constant", Left),
            ("Usual", Right),
            ("Spread", Right),
            ("Here", Right),
            ("Spread", Right),
            ("What it is", Left),
        ]);
        let spread = |spread: f64| format!("{:.0} %", spread * 100.0);
        for fitted in told {
            table.row(vec![
                fitted.constant.name().into(),
                plain(fitted.prior),
                spread(fitted.prior_spread),
                plain(fitted.value),
                spread(fitted.spread),
                fitted.constant.describe().trim_end_matches('.').into(),
            ]);
        }
        table.keep_whole(0..5);
        sheet.table(table);
    }
    if !silent.is_empty() {
        let more = counted(silent.len(), "further constant");
        let text = format!("{more} that the rows hardly depend on stay near usual machines'.");
        sheet.blank();
        sheet.paragraph("", &text);
    }
}

/// How the library picks, and what it is taken to have picked.
fn picks(answer: &CalibrateAnswer, sheet: &mut Sheet) {
    use Side::{Left, Right};
    let calibration = &answer.file.calibration;
    let sweeps: Vec<&Sweep> =
        calibration.measured.iter().filter(|sweep| !sweep.ways.is_empty()).collect();
    if sweeps.is_empty() {
        return;
    }
    sheet.heading("How the library picks");
    if answer.has_many_nodes() {
        let rule = match (calibration.choice, calibration.nccl) {
            (Choice::Fastest, _) => {
                "Of several nodes the logs fit no version's cost table: whatever is fastest is taken."
                    .into()
            }
            (Choice::Tuner, None) => {
                "As the cluster's library tells by its own cost table; no other version's fits better."
                    .into()
            }
            (Choice::Tuner, Some((major, minor))) => {
                format!("As NCCL {major}.{minor} tells by its cost table, which fits best.")
            }
        };
        sheet.paragraph("", &rule);
        sheet.blank();
    }
    let mut table = Table::new(&[("Operation", Left), ("GPUs", Right), ("Taken to run", Left)]);
    for sweep in sweeps {
        table.row(vec![sweep.collective.clone(), sweep.ranks.to_string(), ways(sweep)]);
    }
    table.keep_whole([0, 1]);
    sheet.table(table);
}

/// `tree LL from 1 KiB, ring LL from 64 KiB`.
fn ways(sweep: &Sweep) -> String {
    let pairs: Vec<(&String, &Bytes)> = sweep.ways.iter().zip(&sweep.sizes).collect();
    let runs = pairs.chunk_by(|a, b| a.0 == b.0).filter_map(|run| match run {
        [(way, size)] if pairs.len() == 1 => Some(format!("{way} at {}", whole_size(**size))),
        [(way, size), ..] => Some(format!("{way} from {}", whole_size(**size))),
        [] => None,
    });
    runs.collect::<Vec<_>>().join(", ")
}

fn findings(answer: &CalibrateAnswer, sheet: &mut Sheet) {
    let said = findings::said(&answer.report, &answer.shortfalls);
    if said.is_empty() {
        return;
    }
    sheet.heading("What is odd");
    for (number, said) in said.iter().enumerate() {
        if number > 0 {
            sheet.blank();
        }
        sheet.paragraph(&format!("{}. ", number + 1), &said.what);
        sheet.paragraph("   ", &said.advice);
    }
}

fn trust(reach: &[Reach], noise: f64, sheet: &mut Sheet) {
    use Side::{Left, Right};
    sheet.heading("Where to trust it");
    let mut table = Table::new(&[
        ("Operation", Left),
        ("On", Left),
        ("GPUs", Right),
        ("Sizes", Right),
        ("Carries to", Right),
        ("80 % interval, half of it", Left),
    ]);
    for Reach { trust, widths } in reach {
        let ranks = match trust.ranks {
            (fewest, most) if fewest == most => most.to_string(),
            (fewest, most) => format!("{fewest}-{most}"),
        };
        let (least, largest) = trust.sizes;
        let sizes = if least == largest {
            whole_size(largest)
        } else {
            format!("{} - {}", whole_size(least), whole_size(largest))
        };
        let widths = widths.iter().enumerate().map(|(at, width)| {
            let half = format!("{:.0} %", width.half * 100.0);
            match at {
                0 => half,
                _ if width.bytes > largest => format!("{half} at {}", whole_size(width.bytes)),
                _ => format!("{half} on {} GPUs", width.ranks),
            }
        });
        table.row(vec![
            trust.kind.to_string(),
            if trust.many_nodes { "nodes" } else { "one node" }.into(),
            ranks,
            sizes,
            if trust.many_nodes { trust.ranks_until.to_string() } else { "one node".into() },
            widths.collect::<Vec<_>>().join(", "),
        ]);
    }
    table.keep_whole(0..5);
    sheet.table(table);
    sheet.blank();
    sheet.paragraph(
        "",
        &format!(
            "Measured sizes repeat to {:.0} %. Beyond the measured sizes and ranks the interval widens with \
             each doubling; other operations and, without a log of them, several nodes keep the interval \
             of usual machines.",
            noise * 100.0
        ),
    );
}

/// A log's name, short enough for a line.
fn file(path: &str) -> String {
    name(path.rsplit(['/', '\\']).next().unwrap_or(path), 60)
}
