//! Rows as Parquet, which pandas, polars and DuckDB open as it is: a column for each field.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float64Type, Int32Type, Int64Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, UInt32Array, UInt64Array,
};
use arrow_schema::{DataType, Field, Schema};
use foretrain_core::{InputError, Result};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::Compression;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;

use super::{Outcome, ResultRow};

/// How a Parquet file begins.
pub(super) const MAGIC: &[u8] = b"PAR1";
/// Columns that are written plainly, so that the number of rows can be held against the file's size.
const PLAIN: [&str; 2] = ["scenario", "looked_at"];

/// A Parquet file of these rows.
///
/// # Errors
/// If the text of all rows is beyond what a column can hold.
pub fn to_parquet(rows: &[ResultRow]) -> Result<Vec<u8>> {
    let failed = |error: &dyn std::fmt::Display| {
        InputError::new(format!("cannot write the rows as Parquet: {error}"))
    };
    let batch =
        RecordBatch::try_from_iter_with_nullable(columns(rows)).map_err(|error| failed(&error))?;
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::UNCOMPRESSED)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_created_by(concat!("foretrain ", env!("CARGO_PKG_VERSION")).to_owned());
    for column in PLAIN {
        properties = properties.set_column_dictionary_enabled(ColumnPath::from(column), false);
    }
    let options = ArrowWriterOptions::new()
        .with_properties(properties.build())
        .with_skip_arrow_metadata(true);
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
    let devices: ArrayRef =
        Arc::new(rows.iter().map(|row| Some(row.devices)).collect::<UInt32Array>());
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

fn damaged(what: impl std::fmt::Display) -> InputError {
    InputError::new(format!("not a readable file of rows: {what}"))
        .hint("the file may be damaged or cut off, or another program wrote it; write it again")
}

/// Reads what [`to_parquet`] writes.
///
/// # Errors
/// If it is something else, or damaged.
pub(super) fn from_parquet(bytes: Vec<u8>) -> Result<Vec<ResultRow>> {
    // The decoder is not ours; should it panic on a damaged file, that is still only a damaged file.
    std::panic::catch_unwind(|| read(bytes.into()))
        .unwrap_or_else(|_| Err(damaged("the Parquet decoder gave up")))
}

fn read(bytes: bytes::Bytes) -> Result<Vec<ResultRow>> {
    foretrain_graph::check_table(bytes.clone(), "row").map_err(|error| damaged(error.message()))?;
    let options = ArrowReaderOptions::new().with_schema(Arc::new(schema()));
    let batches = ParquetRecordBatchReaderBuilder::try_new_with_options(bytes, options)
        .and_then(ParquetRecordBatchReaderBuilder::build)
        .map_err(damaged)?;
    let mut rows = Vec::new();
    for batch in batches {
        let batch = batch.map_err(damaged)?;
        for at in 0..batch.num_rows() {
            rows.push(row(&batch, at)?);
        }
    }
    Ok(rows)
}

/// As [`columns`] has it, but text is decoded as a dictionary: each distinct value once, whatever
/// the file claims.
fn schema() -> Schema {
    let dictionary = || DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let fields = columns(&[]).into_iter().map(|(name, array, nullable)| {
        let kind = match array.data_type() {
            DataType::Utf8 => dictionary(),
            other => other.clone(),
        };
        Field::new(name, kind, nullable)
    });
    Schema::new(fields.collect::<Vec<_>>())
}

fn row(batch: &RecordBatch, at: usize) -> Result<ResultRow> {
    let cells = Cells { batch, at };
    let missing = |name: &str| damaged(format!("column \"{name}\" has an empty cell"));
    let must_text = |name: &str| cells.text(name)?.ok_or_else(|| missing(name));
    let must_size = |name: &str| cells.number::<UInt64Type>(name)?.ok_or_else(|| missing(name));
    let outcome = must_text("outcome")?;
    Ok(ResultRow {
        study: must_text("study")?,
        scenario: must_size("scenario")?,
        model: must_text("model")?,
        cluster: must_text("cluster")?,
        devices: cells.number::<UInt32Type>("devices")?.ok_or_else(|| missing("devices"))?,
        outcome: Outcome::ALL
            .into_iter()
            .find(|known| known.as_str() == outcome)
            .ok_or_else(|| damaged(format!("{outcome:?} is no outcome")))?,
        reason: cells.text("reason")?,
        layout: cells.text("layout")?,
        step_ns: cells.number::<Int64Type>("step_ns")?,
        step_low_ns: cells.number::<Int64Type>("step_low_ns")?,
        step_high_ns: cells.number::<Int64Type>("step_high_ns")?,
        tokens_per_second: cells.number::<Float64Type>("tokens_per_second")?,
        mfu: cells.number::<Float64Type>("mfu")?,
        dollars_per_million_tokens: cells.number::<Float64Type>("dollars_per_million_tokens")?,
        memory_bytes: cells.number::<UInt64Type>("memory_bytes")?,
        looked_at: must_size("looked_at")?,
    })
}

/// One row of a batch.
struct Cells<'a> {
    batch: &'a RecordBatch,
    at: usize,
}

impl<'a> Cells<'a> {
    fn column(&self, name: &str) -> Result<&'a ArrayRef> {
        let column = self.batch.column_by_name(name);
        column.ok_or_else(|| damaged(format!("there is no column \"{name}\"")))
    }

    fn number<T: ArrowPrimitiveType>(&self, name: &str) -> Result<Option<T::Native>> {
        let array = self.column(name)?.as_primitive_opt::<T>();
        let array =
            array.ok_or_else(|| damaged(format!("column \"{name}\" is of another type")))?;
        Ok(array.is_valid(self.at).then(|| array.value(self.at)))
    }

    fn text(&self, name: &str) -> Result<Option<String>> {
        let wrong = || damaged(format!("column \"{name}\" is not text"));
        let array = self.column(name)?.as_dictionary_opt::<Int32Type>().ok_or_else(wrong)?;
        let words = array.values().as_string_opt::<i32>().ok_or_else(wrong)?;
        let Some(word) = array.key(self.at) else { return Ok(None) };
        if word >= words.len() {
            return Err(damaged(format!("column \"{name}\" points beyond its words")));
        }
        Ok(Some(words.value(word).to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<ResultRow> {
        let row = |scenario: u64| ResultRow {
            study: "00ff".into(),
            scenario,
            model: "m".into(),
            cluster: "c".into(),
            devices: 8,
            outcome: Outcome::Fits,
            reason: None,
            layout: Some("tp=8".into()),
            step_ns: Some(-1),
            step_low_ns: None,
            step_high_ns: Some(i64::MAX),
            tokens_per_second: Some(0.1),
            mfu: None,
            dollars_per_million_tokens: Some(1e-9),
            memory_bytes: Some(u64::MAX),
            looked_at: 0,
        };
        let refused = ResultRow { outcome: Outcome::Refused, reason: Some("no".into()), ..row(1) };
        vec![row(0), refused]
    }

    #[test]
    fn what_is_written_is_read() {
        assert_eq!(from_parquet(to_parquet(&rows()).unwrap()).unwrap(), rows());
        assert_eq!(from_parquet(to_parquet(&[]).unwrap()).unwrap(), []);
    }

    #[test]
    fn damage_is_told_and_does_no_harm() {
        let whole = to_parquet(&rows()).unwrap();
        assert!(from_parquet(whole[..whole.len() / 2].to_vec()).is_err());
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x55;
            // Text and numbers may be others; nothing worse may come of it.
            let _ = from_parquet(bytes);
        }
    }
}
