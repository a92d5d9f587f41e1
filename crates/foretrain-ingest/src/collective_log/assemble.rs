//! From drafts to runs: what a run is of, how many took part, and whether its figures agree.

use foretrain_core::{Bandwidth, Bytes, Ledger, Nanos, Severity};
use foretrain_graph::CollectiveKind;

use super::draft::{Draft, DraftRow, Figures};
use super::kind::kind_of;
use super::number::Printed;
use super::{Known, LogOptions, Row, Run, Timing, check, derive, ranks};

/// The runs of all tables. A table that holds several element types, reductions or roots (`-d all
/// -o all`) is several runs.
pub(super) fn runs(
    drafts: Vec<Draft>,
    path: &str,
    options: &LogOptions,
    ledger: &mut Ledger,
) -> Vec<Run> {
    let mut runs = Vec::new();
    for mut draft in drafts {
        check::drop_odd_sizes(&mut draft, ledger);
        check::half_rows(&draft.rows, ledger);
        check::mend_unit(&mut draft, ledger);
        check::average(&draft, ledger);
        for rows in draft.rows.chunk_by(DraftRow::same_sweep) {
            let run = run(&draft, rows, path, options, ledger);
            ledger.cover("rows", run.as_ref().map_or(0, |run| run.rows.len()) as u64, 0);
            runs.extend(run);
        }
    }
    runs
}

fn run(
    draft: &Draft,
    rows: &[DraftRow],
    path: &str,
    options: &LogOptions,
    ledger: &mut Ledger,
) -> Option<Run> {
    let first = rows.first()?;
    let listed = ranks::listed(draft, first.line, ledger);
    let known = listed.as_ref().map(|known| known.value);
    let kind = kind(draft, rows, path, options, known, ledger);
    let ranks = ranks::reconcile(listed, draft, rows, kind.value, ledger);
    let timed;
    let rows = if draft.untimed {
        timed = derive::times(rows, kind.value, ranks.as_ref().map(|known| known.value), ledger);
        &timed
    } else {
        rows
    };
    let (first, last) = (rows.first()?, rows.last()?);
    check::bandwidths(rows, kind.value, ranks.as_ref().map(|known| known.value), ledger);
    note_wrong(rows, ledger);
    if draft.cpu_time {
        let message =
            "times are those of the issuing thread (--report_cputime), not of the operation";
        ledger.record_at(Severity::Warning, "cpu-time", message, || format!("line {}", first.line));
    }
    let facts = &draft.facts;
    let all_listed =
        ranks.as_ref().is_some_and(|r| facts.listed.len() as u64 == u64::from(r.value));
    let hosts = u32::try_from(facts.hosts.len()).ok().filter(|_| all_listed);
    Some(Run {
        kind,
        nodes: facts.nodes.or(hosts).or(facts.communicator_nodes),
        device: facts.devices.first().filter(|_| facts.devices.len() == 1).cloned(),
        ranks,
        dtype: first.dtype,
        redop: first.redop.clone(),
        root: first.root,
        cpu_time: draft.cpu_time,
        time_inferred: draft.untimed,
        lines: (first.line, last.line),
        rows: rows.iter().map(row).collect(),
    })
}

fn row(row: &DraftRow) -> Row {
    Row {
        line: row.line,
        size: Bytes::new(row.size),
        count: row.count,
        out_of_place: row.out_of_place.as_ref().and_then(timing),
        in_place: row.in_place.as_ref().and_then(timing),
        processor: row.processor.and_then(Printed::sane).map(Nanos::from_micros_f64),
    }
}

/// Figures whose time is a number.
fn timing(figures: &Figures) -> Option<Timing> {
    let rate = |printed: Option<Printed>| printed?.sane().map(Bandwidth::from_gb_per_sec);
    Some(Timing {
        time: Nanos::from_micros_f64(figures.time.sane()?),
        algbw: rate(figures.algbw),
        busbw: rate(figures.busbw),
        check: figures.check,
    })
}

fn kind(
    draft: &Draft,
    rows: &[DraftRow],
    path: &str,
    options: &LogOptions,
    ranks: Option<u32>,
    ledger: &mut Ledger,
) -> Known<CollectiveKind> {
    let line = rows.first().map_or(0, |row| row.line);
    if let Some(kind) = options.kind {
        return Known::stated(kind, "asked for");
    }
    if let Some(kind) = draft.facts.kind.or(rows.first().and_then(|row| row.kind)) {
        return Known::stated(kind, "named in the log");
    }
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    if let Some(kind) = kind_of(name) {
        let message = "operation not named in the log; taken from the file's name";
        ledger.record_at(Severity::Inferred, "kind-from-name", message, || format!("{kind}"));
        return Known::inferred(kind, "file name");
    }
    if let Some(kind) = kind_of_shape(rows, ranks) {
        let message = "operation not named; told from reduction, root, sizes and bandwidths";
        ledger.record_at(Severity::Inferred, "kind-from-table", message, || {
            format!("{kind}, table of line {line}")
        });
        return Known::inferred(kind, "shape of the table");
    }
    let message = "operation not named in the log and not told by its table; say which it is";
    ledger
        .record_at(Severity::Warning, "kind-unknown", message, || format!("table of line {line}"));
    Known::inferred(CollectiveKind::Unknown, "not known")
}

/// The operation that alone explains a table: a root, a reduction, whether the size counts the
/// buffers of all ranks, and whether the bandwidths differ by more than one operation could.
fn kind_of_shape(rows: &[DraftRow], ranks: Option<u32>) -> Option<CollectiveKind> {
    use CollectiveKind as K;
    let biggest = rows.iter().max_by_key(|row| row.size)?;
    let (reduces, rooted) = (biggest.redop.is_some(), biggest.root.is_some());
    if rooted {
        return Some(if reduces { K::Reduce } else { K::Broadcast });
    }
    let bytes = biggest.dtype?.bytes_of(biggest.count?);
    if bytes != biggest.size && reduces {
        return Some(K::ReduceScatter);
    }
    // Of the others only an all-reduce has a bus bandwidth above its algorithm bandwidth.
    let exceeds = |figures: &Figures| match (figures.algbw, figures.busbw) {
        (Some(algbw), Some(busbw)) => busbw.range().0 > algbw.range().1,
        _ => false,
    };
    let is_all_reduce = reduces && bytes == biggest.size && ranks != Some(2);
    (is_all_reduce && biggest.figures().any(exceeds)).then_some(K::AllReduce)
}

fn note_wrong(rows: &[DraftRow], ledger: &mut Ledger) {
    for row in rows {
        if row.figures().filter_map(timing).any(|timing| timing.is_wrong()) {
            let message = "the tool found wrong results: its times may mean nothing";
            ledger.record_at(Severity::Warning, "wrong-results", message, || {
                format!("line {}", row.line)
            });
        }
    }
}
