//! Checks on a Parquet file before its columns are decoded, so that no claim in it can make the
//! decoder allocate more than the file could hold.

use std::io::Cursor;

use bytes::Bytes;
use foretrain_core::Result;
use parquet::basic::Compression;
use parquet::column::page::Page;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};

use super::{damaged, footer};

/// Opens a table and checks its row groups and pages; returns the row count too.
pub(super) fn open(bytes: Bytes, what: &str) -> Result<(SerializedFileReader<Bytes>, usize)> {
    let length = bytes.len();
    footer::check_footer(&mut Cursor::new(&bytes)).map_err(|error| damaged(error.message()))?;
    let reader = SerializedFileReader::new(bytes)
        .map_err(|error| damaged(format!("the {what} table is no Parquet file ({error})")))?;
    let mut rows = 0usize;
    for index in 0..reader.num_row_groups() {
        let group = reader.get_row_group(index).map_err(damaged)?;
        let group_rows = usize::try_from(group.metadata().num_rows()).map_err(damaged)?;
        rows = rows.saturating_add(group_rows);
        check_chunks(group.metadata(), group_rows)?;
        // Both tables hold 8 bytes per row in columns that are never compressed.
        if rows > length / 8 {
            return Err(damaged(format!(
                "the {what} table claims {rows} rows or more, but has only {length} bytes"
            )));
        }
        for column in 0..group.num_columns() {
            check_pages(&*group, column, group_rows)?;
        }
    }
    Ok((reader, rows))
}

fn check_chunks(group: &RowGroupMetaData, rows: usize) -> Result<()> {
    for column in group.columns() {
        let name = column.column_path().string();
        if column.compression() != Compression::UNCOMPRESSED {
            return Err(damaged(format!("column \"{name}\" is compressed")));
        }
        if usize::try_from(column.num_values()) != Ok(rows)
            || column.column_descr().max_rep_level() > 0
        {
            return Err(damaged(format!("column \"{name}\" does not hold one value per row")));
        }
    }
    Ok(())
}

fn check_pages(group: &dyn RowGroupReader, column: usize, rows: usize) -> Result<()> {
    let mut pages = group.get_column_page_reader(column).map_err(damaged)?;
    let mut values = 0usize;
    while let Some(page) = pages.get_next_page().map_err(damaged)? {
        match page {
            Page::DictionaryPage { ref buf, num_values, .. } => {
                if num_values as usize > buf.len() {
                    return Err(damaged("a dictionary claims more entries than it has bytes"));
                }
            }
            Page::DataPage { num_values, .. } | Page::DataPageV2 { num_values, .. } => {
                values = values.saturating_add(num_values as usize);
            }
        }
        if values > rows {
            break;
        }
    }
    if values == rows { Ok(()) } else { Err(damaged("pages and row counts disagree")) }
}
