//! Which term dominates, and which algorithm is fastest, in words.

use foretrain_predict::collectives::{Choice, Point, Sweep, Term, dominating_term};

use super::super::sheet::Sheet;
use super::super::table::{Side, Table};
use super::super::units::whole_size;
use super::{about_size, column, place};

/// The algorithms of each sweep, where no row names its own.
pub(super) fn algorithms(sweeps: &[Sweep], sheet: &mut Sheet) {
    sheet.heading("Algorithms");
    let mut table =
        Table::new(&[("Operation", Side::Left), ("GPUs", Side::Right), ("Taken", Side::Left)]);
    let all: Vec<(&Sweep, String)> = sweeps.iter().map(|s| (s, chosen(&s.choices))).collect();
    let alike = |a: &(&Sweep, String), b: &(&Sweep, String)| {
        (a.0.setting.kind, &a.1) == (b.0.setting.kind, &b.1)
    };
    for run in all.chunk_by(alike) {
        let (Some((first, chosen)), Some((last, _))) = (run.first(), run.last()) else { continue };
        let mut counts = column(&first.setting);
        if run.len() > 1 {
            counts = format!("{counts}..{}", column(&last.setting));
        }
        table.row(vec![first.setting.kind.to_string(), counts, chosen.clone()]);
    }
    table.keep_whole([0, 1]);
    sheet.table(table);
}

/// A paragraph for each sweep: what its time is.
pub(super) fn terms(sweeps: &[Sweep], sheet: &mut Sheet) {
    if sweeps.is_empty() {
        return;
    }
    sheet.heading("What the time is");
    for (number, sweep) in sweeps.iter().enumerate() {
        if number > 0 {
            sheet.blank();
        }
        let setting = &sweep.setting;
        let latency = match sweep.latency_minor_from {
            Some(size) => format!(
                "From {} on, latency (launch and propagation) costs less than 10 %.",
                about_size(size)
            ),
            None => "Latency (launch and propagation) costs over 10 % at any size.".into(),
        };
        let text = format!(
            "{}, {}: {}. {latency} Taken: {}.",
            setting.kind,
            place(setting),
            dominated(&sweep.points),
            chosen(&sweep.choices)
        );
        sheet.paragraph("", &text);
    }
    sheet.blank();
    sheet.paragraph(
        "",
        "Launch is the time from the call to the first byte, propagation the latency of the hops, \
         transfer the bytes over the narrowest link, reduction what arithmetic takes beyond the \
         transfer.",
    );
}

/// `launch dominates up to 4 KiB, transfer from 8 KiB on`, over the sizes asked.
fn dominated(points: &[Point]) -> String {
    let mut runs: Vec<(Term, &Point, &Point)> = Vec::new();
    for point in points {
        let term = dominating_term(&point.predicted.terms);
        match runs.last_mut() {
            Some((same, _, last)) if *same == term => *last = point,
            _ => runs.push((term, point, point)),
        }
    }
    let count = runs.len();
    let words = runs.iter().enumerate().map(|(at, (term, first, last))| {
        let (first, last) = (whole_size(first.size), whole_size(last.size));
        let term = term.as_str();
        match at {
            _ if count == 1 => format!("{term} dominates at all sizes"),
            0 => format!("{term} dominates up to {last}"),
            at if at + 1 == count => format!("{term} from {first} on"),
            _ if first == last => format!("{term} at {first}"),
            _ => format!("{term} from {first} to {last}"),
        }
    });
    words.collect::<Vec<_>>().join(", ")
}

/// `Tree LL, Tree LL128 from 192 KiB, Ring Simple from 96 MiB`.
fn chosen(choices: &[Choice]) -> String {
    let words = choices.iter().enumerate().map(|(at, choice)| {
        let protocol = choice.protocol.map_or("", |protocol| protocol.as_str());
        let way = format!("{} {protocol}", choice.algorithm.as_str());
        let way = way.trim_end();
        if at == 0 { way.to_owned() } else { format!("{way} from {}", about_size(choice.from)) }
    });
    words.collect::<Vec<_>>().join(", ")
}
