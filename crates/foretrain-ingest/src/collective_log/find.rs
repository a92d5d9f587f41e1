//! Telling logs of collective benchmarks from other files.

use std::path::PathBuf;

use foretrain_core::{InputError, Result};

use super::columns::Columns;
use super::csv::Header;
use super::facts::{Remark, remark};
use super::row::{self, Parsed};
use super::{json, nccl, prefix, sweep};
use crate::source::discover;
use crate::source::sniff::FileKind;

/// Whether a text that begins so is the log of a collective benchmark. `head` may end anywhere.
pub fn looks_like(head: &[u8]) -> bool {
    if json::looks_like_document(head) {
        return true;
    }
    let text = String::from_utf8_lossy(head);
    text.lines().any(|line| {
        let text = prefix::strip(line).text;
        if text.starts_with('{') || text.starts_with("[{") {
            return text.contains("\"algBw\"") && text.contains("\"busBw\"");
        }
        Columns::of_header(text).is_some()
            || Header::of(text).is_some()
            || sweep::is_header(line.trim())
            || sweep::is_header(text)
            || nccl::message(line).is_some()
            || matches!(remark(text), Some(Remark::Begin { per_process: Some(_) }))
            || matches!(row::parse(text, None), Parsed::Row { clean: true, .. })
    })
}

/// The logs among files, directories and patterns, in order of their paths; `None` if there are
/// traces among them or no logs.
///
/// # Errors
/// If a named file cannot be read, or a pattern is malformed.
pub fn find(inputs: &[PathBuf]) -> Result<Option<Vec<PathBuf>>> {
    let mut logs = Vec::new();
    for (path, kind) in discover::kinds(inputs)? {
        match kind? {
            FileKind::CollectiveLog => logs.push(path),
            kind if discover::is_readable(&kind) => return Ok(None),
            _ => {}
        }
    }
    Ok((!logs.is_empty()).then_some(logs))
}

/// What a log of a collective benchmark is, for hints.
pub const EXPECTED: &str = "expected the output of nccl-tests or rccl-tests: text, CSV or JSON";

/// The logs among files, directories and patterns, in order of their paths. What else lies in a
/// directory is passed over: traces of the same run, other tables.
///
/// # Errors
/// If a named file cannot be read or is no log, or a pattern is malformed.
pub fn logs_among(inputs: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut logs = Vec::new();
    for (path, kind) in discover::kinds(inputs)? {
        match kind? {
            FileKind::CollectiveLog => logs.push(path),
            kind if inputs.contains(&path) => {
                let what = kind.describe();
                let message = format!("this is {what}, not the log of a collective benchmark");
                return Err(InputError::new(message).in_file(&path).hint(EXPECTED));
            }
            _ => {}
        }
    }
    Ok(logs)
}
