//! PyTorch execution traces (the `ExecutionTraceObserver`'s JSON) and Chakra nodes as JSON.
//!
//! The fields decide how a file is read, not its version: `parent` (schema 1.0.1) and `ctrl_deps`
//! (1.0.2 and later) are the same thing. An execution trace lists operators and their tensors but
//! mostly no times; nodes without a recorded duration have zero work and say so in their
//! `provenance` attribute. Files merged with a Kineto trace carry durations and device activity.

mod adopt;
pub(crate) mod communication;
mod cycles;
mod document;
pub(crate) mod draft;
mod flops;
mod groups;
mod hierarchy;
mod loose;
pub(crate) mod lower;
mod operators;
mod parameters;
pub(crate) mod record;
mod shape;
pub(crate) mod tensors;
mod threads;

pub use operators::{Operand, Operator, operators};

use std::borrow::Cow;

use foretrain_core::diagnostics::Severity;
use foretrain_core::{InputError, Ledger, Result};

use crate::graph_file::{ReadGraph, StatedRank};
use document::Document;

/// Versions seen in the wild, oldest first.
pub(crate) const SCHEMAS: [&str; 9] = [
    "0.0.4",
    "1.0.0",
    "1.0.1",
    "1.0.2",
    "1.0.2-chakra.0.0.4",
    "1.0.3-chakra.0.0.4",
    "1.1.0-chakra.0.0.4",
    "1.1.1",
    "1.1.1-chakra.0.0.4",
];

/// The newest version this reader was written for.
pub(crate) const NEWEST_SCHEMA: &str = "1.1.1-chakra.0.0.4";

/// Reads a JSON execution trace of any schema into the step graph of its rank.
///
/// `bytes` is the decompressed file and `path` its name for messages. What was repaired, inferred
/// or left out, and the used-of-seen counts, go to `ledger`.
///
/// # Errors
/// If the file is no JSON object with nodes, or none of its nodes can be used.
pub fn read(bytes: &[u8], path: &str, ledger: &mut Ledger) -> Result<ReadGraph> {
    let text = decode(bytes, ledger);
    let mut document = Document::parse(&text, path, ledger)?;
    report_schema(document.schema.as_deref(), !document.chakra, ledger);
    for (name, count) in &document.unknown {
        ledger.record_many(
            Severity::Warning,
            "unknown-field",
            "a field that no known schema has was not used",
            *count,
            Some(format!("\"{name}\"")),
        );
    }
    ledger.cover("nodes read", document.records.len() as u64, document.seen);
    if document.chakra {
        let (records, world_size) = (&document.records, document.world_size);
        let graph = crate::chakra::from_records(records, world_size, path, ledger)?;
        return Ok(ReadGraph { graph, schema: document.schema, rank: StatedRank::Unknown });
    }
    document.records.sort_by_key(|record| record.id);
    if document.records.is_empty() {
        return Err(no_nodes(document.schema.as_deref(), path));
    }
    let (graph, rank) = lower::lower(&document.records, path, ledger);
    Ok(ReadGraph { graph, schema: document.schema, rank })
}

/// JSON is UTF-8; stray bytes are replaced rather than refused.
fn decode<'a>(bytes: &'a [u8], ledger: &mut Ledger) -> Cow<'a, str> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text = String::from_utf8_lossy(bytes);
    if matches!(text, Cow::Owned(_)) {
        let first = std::str::from_utf8(bytes).err().map_or(0, |error| error.valid_up_to());
        ledger.record_at(
            Severity::Repaired,
            "invalid-utf8",
            "bytes that are not UTF-8 were replaced",
            || format!("byte {first}"),
        );
    }
    text
}

/// Notes a version that is not known, or missing.
pub(crate) fn report_schema(schema: Option<&str>, expected: bool, ledger: &mut Ledger) {
    match schema {
        Some(schema) if SCHEMAS.contains(&schema) => {}
        Some(schema) => ledger.record_many(
            Severity::Warning,
            "unknown-schema",
            &format!(
                "schema {schema} is unknown (newest known: {NEWEST_SCHEMA}); the known fields were used"
            ),
            1,
            None,
        ),
        None if expected => ledger.record(
            Severity::Note,
            "no-schema",
            "the file names no schema; it was read by its fields",
        ),
        None => {}
    }
}

/// The error for a file without a usable node.
pub(crate) fn no_nodes(schema: Option<&str>, path: &str) -> InputError {
    let error = InputError::new("no usable nodes in the execution trace").in_file(path);
    match schema {
        Some(schema) if !SCHEMAS.contains(&schema) => InputError::new(format!(
            "no usable nodes in the execution trace of unknown schema {schema} (newest known: {NEWEST_SCHEMA})"
        ))
        .in_file(path)
        .hint("record it again with a PyTorch release that writes a known schema")
        .hint("or use the Kineto trace of the same run"),
        _ => error.hint("record at least one training step between start() and stop()"),
    }
}
