//! Parquet files: only the columns that are looked at are decoded.

mod cell;

use std::fs::File;
use std::panic::AssertUnwindSafe;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, TimeUnit};
use csv::ByteRecord;
use foretrain_core::{InputError, Result};
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder,
};
use parquet::arrow::{ProjectionMask, parquet_to_arrow_schema};
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::RowGroupMetaData;

use super::{Rows, Step};
use crate::jobs::field::Unit;

const BATCH: usize = 8_192;

pub(super) struct Columns {
    file: File,
    metadata: ArrowReaderMetadata,
    titles: Vec<String>,
    /// Units that types give columns.
    units: Vec<Option<Unit>>,
    reader: ParquetRecordBatchReader,
    /// Columns of the file in the order in which batches hold them.
    kept: Vec<usize>,
    batch: Option<RecordBatch>,
    at: usize,
    cell: Vec<u8>,
}

fn refused(error: &impl std::fmt::Display) -> InputError {
    InputError::new(format!("not a Parquet file that can be read: {error}"))
        .hint("it may be cut short or damaged")
}

/// Refuses codecs that nothing here unpacks before a row is asked for.
fn check_codecs(metadata: &ArrowReaderMetadata) -> Result<()> {
    for column in metadata.metadata().row_groups().iter().flat_map(RowGroupMetaData::columns) {
        let codec = column.compression();
        if matches!(codec, Compression::BROTLI(_) | Compression::LZO) {
            return Err(InputError::new(format!("its columns are packed with {codec}"))
                .hint("write it with zstd, snappy, gzip, lz4 or without compression"));
        }
    }
    Ok(())
}

impl Columns {
    pub(super) fn open(mut file: File) -> Result<Self> {
        foretrain_graph::check_footer(&mut file).map_err(|error| refused(&error))?;
        // What pandas adds to the schema brings dictionaries; the plain types are enough.
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let metadata = guarded(|| ArrowReaderMetadata::load(&file, options))?;
        check_codecs(&metadata)?;
        let titles: Vec<String> =
            metadata.schema().fields().iter().map(|field| field.name().clone()).collect();
        let kept: Vec<usize> = (0..titles.len()).collect();
        let reader = reader(&file, &metadata, &kept)?;
        let units = units(&metadata);
        let (batch, at, cell) = (None, 0, Vec::new());
        Ok(Self { file, metadata, titles, units, reader, kept, batch, at, cell })
    }
}

/// Parquet itself has no lengths of time: Arrow stores them as whole numbers and says so beside.
fn units(metadata: &ArrowReaderMetadata) -> Vec<Option<Unit>> {
    let file = metadata.metadata().file_metadata();
    let said =
        guarded(|| parquet_to_arrow_schema(file.schema_descr(), file.key_value_metadata())).ok();
    let fields = metadata.schema().fields();
    let found = fields.iter().enumerate().map(|(column, field)| {
        let said = || unit_of(said.as_ref()?.fields().get(column)?.data_type());
        unit_of(field.data_type()).or_else(said)
    });
    found.collect()
}

fn unit_of(kind: &DataType) -> Option<Unit> {
    let (DataType::Timestamp(unit, _)
    | DataType::Duration(unit)
    | DataType::Time32(unit)
    | DataType::Time64(unit)) = kind
    else {
        return None;
    };
    Some(match unit {
        TimeUnit::Second => Unit::SECONDS,
        TimeUnit::Millisecond => Unit::MILLIS,
        TimeUnit::Microsecond => Unit::MICROS,
        TimeUnit::Nanosecond => Unit::NANOS,
    })
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
        *self.units.get(column)?
    }

    fn unread(&self, column: usize, takes_lists: bool) -> Option<String> {
        let kind = self.metadata.schema().fields().get(column)?.data_type();
        let is_read = cell::is_read(kind) && (takes_lists || !matches!(kind, DataType::List(_)));
        (!is_read).then(|| cell::name_of(kind))
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
                cell::write(array, self.at, &mut self.cell);
            }
            row.push_field(&self.cell);
        }
        self.at += 1;
        Step::Row
    }
}
