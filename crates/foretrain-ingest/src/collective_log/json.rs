//! The JSON forms: documents of nccl-tests, lists and lines of rccl-tests.

use std::io::Read;

use foretrain_core::{DType, InputError, Ledger, Result, Severity};
use serde_json::Value;

use super::Check;
use super::draft::{Draft, DraftRow, Figures};
use super::facts::{Remark, remark};
use super::kind::kind_of;
use super::long::{self, Record};
use super::number::Printed;
use super::row::{check, reduction, root};
use crate::source::read_up_to;

/// Documents are held in memory; a sweep of a thousand sizes takes a megabyte.
const LARGEST: usize = 64 << 20;

/// Starts of the records within documents.
const RECORDS: [&[u8]; 2] = [b"{\"size\"", b"{\"#wrong\""];

/// Whether a text is one JSON value of a benchmark, rather than lines.
pub(super) fn looks_like_document(head: &[u8]) -> bool {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    let has = |key: &str| memchr::memmem::find(text, key.as_bytes()).is_some();
    match text.first() {
        Some(b'[') => has("\"algBw\"") && text[1..].trim_ascii_start().starts_with(b"{"),
        Some(b'{') => (has("\"alg_bw\"") && has("\"results\"")) || has("\"oop_algbw\""),
        _ => false,
    }
}

/// Reads a document. A damaged one gives the records that are whole.
///
/// # Errors
/// If it cannot be read or is larger than any sweep.
pub(super) fn read_document(
    mut text: impl Read,
    path: &str,
    ledger: &mut Ledger,
) -> Result<Vec<Draft>> {
    let bytes = read_up_to(&mut text, LARGEST + 1);
    if bytes.len() > LARGEST {
        return Err(InputError::new("this JSON document is larger than 64 MiB")
            .in_file(path)
            .hint("results of collective benchmarks are small; was something else appended?"));
    }
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    let mut drafts = Vec::new();
    match serde_json::from_slice::<Value>(text) {
        Ok(Value::Array(records)) => {
            for value in &records {
                take_record(value, 0, &mut drafts, ledger);
            }
        }
        Ok(document) => drafts.extend(whole_document(&document, ledger)),
        Err(error) => {
            let message = "JSON is cut off or damaged; the records that are whole were read";
            ledger.record_at(Severity::Dropped, "cut-off", message, || {
                format!("line {} column {}", error.line(), error.column())
            });
            salvage(text, &mut drafts, ledger);
        }
    }
    Ok(drafts)
}

/// A record on a line of its own, such as rccl-tests write; `false` if the line is none.
pub(super) fn line(text: &str, number: u64, drafts: &mut Vec<Draft>, ledger: &mut Ledger) -> bool {
    let text = text.trim_start_matches(['[', ' ']).trim_end_matches([',', ']', ' ']);
    if !text.starts_with('{') || !text.contains("\"algBw\"") {
        return false;
    }
    match serde_json::from_str(text) {
        Ok(value) => take_record(&value, number, drafts, ledger),
        Err(_) => lost(number, "JSON is cut off or damaged", ledger),
    }
    true
}

fn lost(line: u64, why: &str, ledger: &mut Ledger) {
    ledger.cover("rows", 0, 1);
    super::table::record_lost(line, why, ledger);
}

fn take_record(value: &Value, line: u64, drafts: &mut Vec<Draft>, ledger: &mut Ledger) {
    match record(value, line) {
        Some(record) => long::push(drafts, record, ledger),
        None => lost(line, "a figure is missing", ledger),
    }
}

/// A record of rccl-tests.
fn record(value: &Value, line: u64) -> Option<Record> {
    let small = |key| value.get(key).and_then(number).map(|n| n as u32);
    let row = DraftRow { kind: kind_of(value.get("name")?.as_str()?), ..row_of(value, line)? };
    let keys = ["time", "algBw", "busBw", "#wrong"];
    let per_rank = small("gpusPerRank").unwrap_or(1);
    let ranks = small("ranks").or_else(|| small("gpus"));
    Some(Record {
        row,
        in_place: number(value.get("inPlace")?)? != 0.0,
        figures: figures(value, keys)?,
        ranks: ranks.and_then(|ranks| ranks.checked_mul(per_rank)),
        nodes: small("nodes"),
    })
}

/// A document of nccl-tests: `results` since version 2.17, `benchmark` in a patched one.
fn whole_document(document: &Value, ledger: &mut Ledger) -> Option<Draft> {
    let mut draft = Draft::default();
    learn(&mut draft, document);
    draft.printed_average = document.pointer("/average_bus_bandwidth/bandwidth").and_then(printed);
    let list = |key: &str| document.get(key).and_then(Value::as_array).into_iter().flatten();
    for value in list("results") {
        take_row(&mut draft, row_of(value, 0), value, ledger);
    }
    for (size, value) in list("benchmark").filter_map(Value::as_object).flatten() {
        let row = row_of(value, 0)
            .or_else(|| Some(DraftRow { size: size.parse().ok()?, ..described(value, 0) }));
        take_row(&mut draft, row, value, ledger);
    }
    (!draft.rows.is_empty()).then_some(draft)
}

fn take_row(draft: &mut Draft, row: Option<DraftRow>, value: &Value, ledger: &mut Ledger) {
    let placement = |key: &str, prefix: &str| match value.get(key) {
        Some(inner) => figures(inner, ["time", "alg_bw", "bus_bw", "nwrong"]),
        None => {
            figures(value, ["time", "algbw", "busbw", "error"].map(|k| format!("{prefix}_{k}")))
        }
    };
    let row = row.map(|row| DraftRow {
        out_of_place: placement("out_of_place", "oop"),
        in_place: placement("in_place", "ip"),
        ..row
    });
    match row.filter(|row| row.figures().next().is_some()) {
        Some(row) => {
            ledger.cover("rows", 0, 1);
            draft.cpu_time |= value.pointer("/out_of_place/cpu_time").is_some();
            draft.rows.push(row);
        }
        None => lost(0, "a figure is missing", ledger),
    }
}

/// What the head of a document tells.
fn learn(draft: &mut Draft, document: &Value) {
    let program = document.pointer("/args/0").and_then(Value::as_str);
    draft.facts.kind = program.and_then(kind_of);
    let devices = document.pointer("/config/devices").and_then(Value::as_array);
    for device in devices.into_iter().flatten() {
        let text =
            |key: &str| device.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let Some(rank) = device.get("rank").and_then(number) else { continue };
        let (host, device) = (text("hostname"), text("device_info"));
        draft.facts.learn(Remark::Rank { rank: rank as u32, host, device });
    }
    let size = |key: &str| document.pointer(key).and_then(number).map(|n| n as u32);
    let per_process = size("/config/nthreads").zip(size("/config/ngpus"));
    draft.facts.per_process = per_process.and_then(|(t, d)| t.checked_mul(d));
    // One process lists its first device only.
    if draft.facts.listed.len() == 1 && draft.facts.per_process > Some(1) {
        draft.facts.listed.clear();
    }
}

/// The records of a document that does not parse as a whole.
fn salvage(text: &[u8], drafts: &mut Vec<Draft>, ledger: &mut Ledger) {
    let mut draft = Draft::default();
    if let Some(at) = memchr::memmem::find(text, b"\"args\":[\"") {
        let program = text[at + 8..].split(|b| *b == b'"').nth(1).unwrap_or_default();
        let banner = format!("starting: {}", String::from_utf8_lossy(program));
        if let Some(found) = remark(&banner) {
            draft.facts.learn(found);
        }
    }
    for start in RECORDS {
        for at in memchr::memmem::find_iter(text, start) {
            let mut values = serde_json::Deserializer::from_slice(&text[at..]).into_iter::<Value>();
            match values.next() {
                Some(Ok(value)) if value.get("algBw").is_some() => {
                    take_record(&value, 0, drafts, ledger);
                }
                Some(Ok(value)) => take_row(&mut draft, row_of(&value, 0), &value, ledger),
                _ => lost(0, "JSON is cut off or damaged", ledger),
            }
        }
    }
    drafts.extend((!draft.rows.is_empty()).then_some(draft));
}

fn row_of(value: &Value, line: u64) -> Option<DraftRow> {
    let size = number(value.get("size")?)?;
    Some(DraftRow { size: size as u64, ..described(value, line) })
}

/// What a record says beside its size and figures.
fn described(value: &Value, line: u64) -> DraftRow {
    let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::trim);
    DraftRow {
        line,
        count: value.get("count").and_then(number).map(|n| n as u64),
        dtype: text("type").and_then(DType::parse),
        redop: text("redop").and_then(reduction).flatten(),
        root: text("root").and_then(root).flatten(),
        ..DraftRow::default()
    }
}

/// The figures under four keys: time, two bandwidths, check.
fn figures(value: &Value, keys: [impl AsRef<str>; 4]) -> Option<Figures> {
    let [time, algbw, busbw, wrong] = &keys;
    let get = |key: &str| value.get(key).and_then(printed);
    // With --report_cputime the time has another name.
    let time = get(time.as_ref()).or_else(|| get("cpu_time"))?;
    let check = match value.get(wrong.as_ref()) {
        Some(Value::String(text)) => check(text, false).unwrap_or(Check::None),
        Some(value) => number(value).map_or(Check::None, |n| Check::Wrong(n as u64)),
        None => Check::None,
    };
    Some(Figures { time, algbw: get(algbw.as_ref()), busbw: get(busbw.as_ref()), check })
}

/// A number, also one in quotes, as finely as it is written.
fn printed(value: &Value) -> Option<Printed> {
    let number = match value {
        Value::String(text) => Printed::parse(text.trim()),
        Value::Number(number) => Printed::parse(&number.to_string()),
        _ => None,
    };
    number.filter(|number| number.sane().is_some())
}

fn number(value: &Value) -> Option<f64> {
    printed(value).map(|printed| printed.value)
}
