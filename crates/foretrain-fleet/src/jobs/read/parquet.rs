//! Parquet files: only the columns that are looked at are decoded.

use std::fs::File;
use std::io::Write;
use std::panic::AssertUnwindSafe;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType, DurationSecondType,
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, TimeUnit};
use csv::ByteRecord;
use foretrain_core::{InputError, Result};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder,
};
use parquet::errors::ParquetError;

use super::{Rows, Step};
use crate::jobs::field::Unit;

const BATCH: usize = 8_192;

pub(super) struct Columns {
    file: File,
    metadata: ArrowReaderMetadata,
    titles: Vec<String>,
    reader: ParquetRecordBatchReader,
    /// Columns of the file in the order in which batches hold them.
    kept: Vec<usize>,
    batch: Option<RecordBatch>,
    at: usize,
    cell: Vec<u8>,
}

fn refused(error: &impl std::fmt::Display) -> InputError {
    InputError::new(format!("not a Parquet file that can be read: {error}"))
        .hint("it may be cut short, or packed with another codec than Snappy")
}

impl Columns {
    pub(super) fn open(mut file: File) -> Result<Self> {
        foretrain_graph::check_footer(&mut file).map_err(|error| refused(&error))?;
        // What pandas adds to the schema brings dictionaries; the plain types are enough.
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let metadata = guarded(|| ArrowReaderMetadata::load(&file, options))?;
        let titles: Vec<String> =
            metadata.schema().fields().iter().map(|field| field.name().clone()).collect();
        let kept: Vec<usize> = (0..titles.len()).collect();
        let reader = reader(&file, &metadata, &kept)?;
        Ok(Self { file, metadata, titles, reader, kept, batch: None, at: 0, cell: Vec::new() })
    }
}

fn reader(
    file: &File,
    metadata: &ArrowReaderMetadata,
    kept: &[usize],
) -> Result<ParquetRecordBatchReader> {
    let file = file.try_clone().map_err(|error| refused(&error))?;
    let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata.clone());
    let roots = ProjectionMask::roots(builder.parquet_schema(), kept.iter().copied());
    guarded(|| builder.with_projection(roots).with_batch_size(BATCH).build())
}

/// What the decoder says. It is not ours; should it panic on a damaged file, that is still only a
/// damaged file.
fn guarded<T>(decode: impl FnOnce() -> std::result::Result<T, ParquetError>) -> Result<T> {
    match std::panic::catch_unwind(AssertUnwindSafe(decode)) {
        Ok(decoded) => decoded.map_err(|error| refused(&error)),
        Err(_) => Err(refused(&GAVE_UP)),
    }
}

const GAVE_UP: &str = "the decoder gave up";

impl Rows for Columns {
    fn titles(&self) -> &[String] {
        &self.titles
    }

    fn unit(&self, column: usize) -> Option<Unit> {
        match self.metadata.schema().fields().get(column)?.data_type() {
            DataType::Timestamp(unit, _) | DataType::Duration(unit) => Some(match unit {
                TimeUnit::Second => Unit::SECONDS,
                TimeUnit::Millisecond => Unit::MILLIS,
                TimeUnit::Microsecond => Unit::MICROS,
                TimeUnit::Nanosecond => Unit::NANOS,
            }),
            _ => None,
        }
    }

    fn keep(&mut self, columns: &[usize]) -> Result<bool> {
        self.kept = columns.to_vec();
        self.kept.sort_unstable();
        self.kept.dedup();
        self.reader = reader(&self.file, &self.metadata, &self.kept)?;
        (self.batch, self.at) = (None, 0);
        Ok(true)
    }

    fn read(&mut self, row: &mut ByteRecord) -> Step {
        while self.batch.as_ref().is_none_or(|batch| self.at >= batch.num_rows()) {
            let next = std::panic::catch_unwind(AssertUnwindSafe(|| self.reader.next()));
            match next {
                Ok(Some(Ok(batch))) => (self.batch, self.at) = (Some(batch), 0),
                Ok(Some(Err(error))) => return Step::Cut(error.to_string()),
                Ok(None) => return Step::End,
                Err(_) => return Step::Cut(GAVE_UP.into()),
            }
        }
        let Some(batch) = &self.batch else { return Step::End };
        row.clear();
        let mut next = self.kept.iter().zip(batch.columns()).peekable();
        for column in 0..self.titles.len() {
            self.cell.clear();
            if let Some((_, array)) = next.next_if(|(kept, _)| **kept == column) {
                write_cell(array, self.at, &mut self.cell);
            }
            row.push_field(&self.cell);
        }
        self.at += 1;
        Step::Row
    }
}

/// Writes a value as text; nested and exotic types stay empty.
fn write_cell(array: &ArrayRef, at: usize, cell: &mut Vec<u8>) {
    if array.is_null(at) {
        return;
    }
    macro_rules! number {
        ($kind:ty) => {{
            // Writing to memory does not fail.
            let _ = write!(cell, "{}", array.as_primitive::<$kind>().value(at));
        }};
    }
    match array.data_type() {
        DataType::Utf8 => cell.extend_from_slice(array.as_string::<i32>().value(at).as_bytes()),
        DataType::LargeUtf8 => {
            cell.extend_from_slice(array.as_string::<i64>().value(at).as_bytes());
        }
        DataType::Binary => cell.extend_from_slice(array.as_binary::<i32>().value(at)),
        DataType::Boolean => {
            let _ = write!(cell, "{}", array.as_boolean().value(at));
        }
        DataType::Int8 => number!(Int8Type),
        DataType::Int16 => number!(Int16Type),
        DataType::Int32 => number!(Int32Type),
        DataType::Int64 => number!(Int64Type),
        DataType::UInt8 => number!(UInt8Type),
        DataType::UInt16 => number!(UInt16Type),
        DataType::UInt32 => number!(UInt32Type),
        DataType::UInt64 => number!(UInt64Type),
        DataType::Float32 => number!(Float32Type),
        DataType::Float64 => number!(Float64Type),
        DataType::Timestamp(TimeUnit::Second, _) => number!(TimestampSecondType),
        DataType::Timestamp(TimeUnit::Millisecond, _) => number!(TimestampMillisecondType),
        DataType::Timestamp(TimeUnit::Microsecond, _) => number!(TimestampMicrosecondType),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => number!(TimestampNanosecondType),
        DataType::Duration(TimeUnit::Second) => number!(DurationSecondType),
        DataType::Duration(TimeUnit::Millisecond) => number!(DurationMillisecondType),
        DataType::Duration(TimeUnit::Microsecond) => number!(DurationMicrosecondType),
        DataType::Duration(TimeUnit::Nanosecond) => number!(DurationNanosecondType),
        _ => {}
    }
}
