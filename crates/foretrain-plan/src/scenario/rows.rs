//! Rows as lines of JSON and as Parquet.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, UInt32Array, UInt64Array,
};
use foretrain_core::{InputError, Result};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::Compression;
use parquet::file::properties::{EnabledStatistics, WriterProperties};

use super::ResultRow;

/// One row per line.
pub fn to_json_lines(rows: &[ResultRow]) -> String {
    let mut text = String::new();
    for row in rows {
        // Plain data; none of it fails to serialise.
        text.push_str(&serde_json::to_string(row).unwrap_or_default());
        text.push('\n');
    }
    text
}

/// Reads lines of JSON.
///
/// # Errors
/// If the file cannot be read or a line is no row, with its number.
pub fn read_rows(path: &Path) -> Result<Vec<ResultRow>> {
    let text = std::fs::read_to_string(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::InvalidData => InputError::new("not a file of rows in JSON lines")
            .in_file(path)
            .hint("shards are merged from .jsonl; write the merged rows as .parquet"),
        _ => InputError::io(&error, path),
    })?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(number, line)| {
            serde_json::from_str(line).map_err(|error| {
                let message = error.to_string();
                let message = message.split(" at line ").next().unwrap_or_default().to_owned();
                InputError::new(message)
                    .at(format!("line {}, column {}", number + 1, error.column()))
                    .in_file(path)
                    .hint("a file that `foretrain plan --scenarios ... --out` wrote has such rows; one that was cut off does not")
            })
        })
        .collect()
}

/// A Parquet file with a column for each field of a row.
///
/// # Errors
/// If the text of all rows is beyond what a column can hold.
pub fn to_parquet(rows: &[ResultRow]) -> Result<Vec<u8>> {
    let failed = |error: &dyn std::fmt::Display| {
        InputError::new(format!("cannot write the rows as Parquet: {error}"))
    };
    let batch =
        RecordBatch::try_from_iter_with_nullable(columns(rows)).map_err(|error| failed(&error))?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::UNCOMPRESSED)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_created_by(concat!("foretrain ", env!("CARGO_PKG_VERSION")).to_owned())
        .build();
    let options =
        ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
    let mut writer = ArrowWriter::try_new_with_options(Vec::new(), batch.schema(), options)
        .map_err(|error| failed(&error))?;
    writer.write(&batch).map_err(|error| failed(&error))?;
    writer.into_inner().map_err(|error| failed(&error))
}

fn columns(rows: &[ResultRow]) -> Vec<(&'static str, ArrayRef, bool)> {
    let text = |of: &dyn Fn(&ResultRow) -> Option<String>| -> ArrayRef {
        Arc::new(rows.iter().map(of).collect::<StringArray>())
    };
    let integers = |of: &dyn Fn(&ResultRow) -> Option<i64>| -> ArrayRef {
        Arc::new(rows.iter().map(of).collect::<Int64Array>())
    };
    let sizes = |of: &dyn Fn(&ResultRow) -> Option<u64>| -> ArrayRef {
        Arc::new(rows.iter().map(of).collect::<UInt64Array>())
    };
    let numbers = |of: &dyn Fn(&ResultRow) -> Option<f64>| -> ArrayRef {
        Arc::new(rows.iter().map(of).collect::<Float64Array>())
    };
    let devices: ArrayRef = Arc::new(rows.iter().map(|row| row.devices).collect::<UInt32Array>());
    vec![
        ("study", text(&|row| Some(row.study.clone())), false),
        ("scenario", sizes(&|row| Some(row.scenario)), false),
        ("model", text(&|row| Some(row.model.clone())), false),
        ("cluster", text(&|row| Some(row.cluster.clone())), false),
        ("devices", devices, false),
        ("outcome", text(&|row| Some(row.outcome.as_str().to_owned())), false),
        ("reason", text(&|row| row.reason.clone()), true),
        ("layout", text(&|row| row.layout.clone()), true),
        ("step_ns", integers(&|row| row.step_ns), true),
        ("step_low_ns", integers(&|row| row.step_low_ns), true),
        ("step_high_ns", integers(&|row| row.step_high_ns), true),
        ("tokens_per_second", numbers(&|row| row.tokens_per_second), true),
        ("mfu", numbers(&|row| row.mfu), true),
        ("dollars_per_million_tokens", numbers(&|row| row.dollars_per_million_tokens), true),
        ("memory_bytes", sizes(&|row| row.memory_bytes), true),
        ("looked_at", sizes(&|row| Some(row.looked_at)), false),
    ]
}
