//! Writing a graph file.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int32Array, Int64Array, RecordBatch,
    StringArray, UInt16Array, UInt32Array, UInt64Array,
};
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};
use foretrain_core::{Bytes, DType, InputError, NameId, Result};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;

use super::ATTRIBUTE_PREFIX;
use super::header::{Header, KEY, Section};
use crate::attributes::{Attributes, Column};
use crate::kinds::{CollectiveKind, EdgeKind, EdgeOrigin, NodeKind, Phase};
use crate::step_graph::{GroupId, StepGraph};

/// Rows encoded at a time; bounds the intermediate copies.
const BATCH: usize = 1 << 16;
/// Rows per row group; a reader can take one group at a time.
const ROW_GROUP: usize = 1 << 20;
/// Length of the magic at the start of a Parquet file, behind which the edges lie.
const MAGIC: u64 = 4;

/// Columns that are written plainly so that row counts can be checked against the file's length.
const PLAIN: [&str; 3] = ["work_ns", "src", "dst"];

/// Columns of text hold no more.
pub(super) fn check_names(graph: &StepGraph) -> Result<()> {
    let text: usize = graph.names.iter().map(|(_, name)| name.len()).sum();
    match i32::try_from(text) {
        Ok(_) => Ok(()),
        Err(_) => Err(InputError::new("the names of the graph exceed 2 GiB of text")),
    }
}

/// All nodes.
pub(super) fn node_batch(graph: &StepGraph) -> std::result::Result<RecordBatch, ArrowError> {
    let names: ArrayRef = Arc::new(StringArray::from_iter_values(graph.names.iter().map(|n| n.1)));
    batch(node_columns(graph, &names, 0..graph.node_count()))
}

/// All edges.
pub(super) fn edge_batch(graph: &StepGraph) -> std::result::Result<RecordBatch, ArrowError> {
    batch(edge_columns(graph, 0..graph.edges().len()))
}

fn batch(columns: Vec<NamedColumn>) -> std::result::Result<RecordBatch, ArrowError> {
    let schema = schema_of(&columns);
    RecordBatch::try_new(schema, columns.into_iter().map(|column| column.2).collect())
}

pub(super) fn write(graph: &StepGraph) -> Result<Vec<u8>> {
    check_names(graph)?;
    tables(graph).map_err(|error| InputError::new(format!("cannot write the graph: {error}")))?
}

type Written<T> = std::result::Result<T, ParquetError>;

/// The inner error is about the header, the outer about the tables.
fn tables(graph: &StepGraph) -> Written<Result<Vec<u8>>> {
    let edges = write_edges(graph)?;
    let names: ArrayRef = Arc::new(StringArray::from_iter_values(graph.names.iter().map(|n| n.1)));
    let columns = |rows| node_columns(graph, &names, rows);
    let schema = schema_of(&columns(0..0));
    let mut writer = writer(&schema)?;
    // Complete before the first row group, so that the edges lie right behind the magic.
    writer.write_all(&edges)?;
    write_batches(&mut writer, &schema, graph.node_count(), columns)?;
    let section =
        Section { rows: graph.edges().len() as u64, offset: MAGIC, length: edges.len() as u64 };
    let header = match Header::new(graph.node_count() as u64, section, graph).to_json() {
        Ok(json) => json,
        Err(error) => return Ok(Err(error)),
    };
    writer.append_key_value_metadata(KeyValue::new(KEY.to_owned(), header));
    Ok(Ok(writer.into_inner()?))
}

fn write_edges(graph: &StepGraph) -> Written<Vec<u8>> {
    let columns = |rows| edge_columns(graph, rows);
    let schema = schema_of(&columns(0..0));
    let mut writer = writer(&schema)?;
    write_batches(&mut writer, &schema, graph.edges().len(), columns)?;
    writer.into_inner()
}

fn writer(schema: &SchemaRef) -> Written<ArrowWriter<Vec<u8>>> {
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::UNCOMPRESSED)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
        .set_max_row_group_row_count(Some(ROW_GROUP))
        .set_created_by(concat!("foretrain ", env!("CARGO_PKG_VERSION")).to_owned());
    for column in PLAIN {
        properties = properties.set_column_dictionary_enabled(ColumnPath::from(column), false);
    }
    let options = ArrowWriterOptions::new()
        .with_properties(properties.build())
        .with_skip_arrow_metadata(true);
    ArrowWriter::try_new_with_options(Vec::new(), schema.clone(), options)
}

type NamedColumn = (String, bool, ArrayRef);

fn schema_of(columns: &[NamedColumn]) -> SchemaRef {
    let field = |(name, nullable, array): &NamedColumn| {
        Field::new(name.clone(), array.data_type().clone(), *nullable)
    };
    Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()))
}

fn write_batches(
    writer: &mut ArrowWriter<Vec<u8>>,
    schema: &SchemaRef,
    rows: usize,
    columns: impl Fn(Range<usize>) -> Vec<NamedColumn>,
) -> Written<()> {
    for start in (0..rows).step_by(BATCH) {
        let arrays = columns(start..rows.min(start + BATCH)).into_iter().map(|c| c.2).collect();
        writer.write(&RecordBatch::try_new(schema.clone(), arrays)?)?;
    }
    Ok(())
}

fn node_columns(graph: &StepGraph, names: &ArrayRef, rows: Range<usize>) -> Vec<NamedColumn> {
    let t = &graph.nodes;
    let text = |ids: &[NameId]| -> ArrayRef {
        let keys: Int32Array = ids.iter().map(|id| id.get() as i32).collect();
        Arc::new(DictionaryArray::new(keys, names.clone()))
    };
    let must = |name: &str, array: ArrayRef| (name.to_owned(), false, array);
    let may = |name: &str, array: ArrayRef| (name.to_owned(), true, array);
    let r = rows.clone();
    let mut columns = vec![
        must("name", text(&t.name[r.clone()])),
        must("kind", words(NodeKind::ALL, t.kind[r.clone()].iter().map(|v| Some(*v)))),
        must("phase", words(Phase::ALL, t.phase[r.clone()].iter().map(|v| Some(*v)))),
        must("module", text(&t.module[r.clone()])),
        must("queue", array::<UInt32Array, _>(t.queue[r.clone()].iter().map(|q| q.get()))),
        must("work_ns", array::<Int64Array, _>(t.work[r.clone()].iter().map(|w| w.nanos()))),
        must("priority", array::<Int32Array, _>(t.priority[r.clone()].iter().copied())),
        may(
            "group",
            optional::<UInt32Array, _>(t.group[r.clone()].iter().map(|g| g.map(GroupId::get))),
        ),
        may("collective", words(CollectiveKind::ALL, t.collective[r.clone()].iter().copied())),
        must("sequence", array::<UInt32Array, _>(t.sequence[r.clone()].iter().copied())),
        may(
            "bytes",
            optional::<UInt64Array, _>(t.bytes[r.clone()].iter().map(|b| b.map(Bytes::get))),
        ),
        may("dtype", optional_words(t.dtype[r].iter().map(|d| d.map(DType::as_str)))),
    ];
    columns.extend(attribute_columns(&graph.node_attributes, rows));
    columns
}

fn edge_columns(graph: &StepGraph, rows: Range<usize>) -> Vec<NamedColumn> {
    let edges = &graph.edges()[rows.clone()];
    let must = |name: &str, array: ArrayRef| (name.to_owned(), false, array);
    let mut columns = vec![
        must("src", array::<UInt32Array, _>(edges.iter().map(|e| e.src.get()))),
        must("dst", array::<UInt32Array, _>(edges.iter().map(|e| e.dst.get()))),
        must("kind", words(EdgeKind::ALL, edges.iter().map(|e| Some(e.kind)))),
        must("origin", words(EdgeOrigin::ALL, edges.iter().map(|e| Some(e.origin)))),
        must("lag_ns", array::<Int64Array, _>(edges.iter().map(|e| e.lag.nanos()))),
        must("distance", array::<UInt16Array, _>(edges.iter().map(|e| e.distance))),
    ];
    columns.extend(attribute_columns(&graph.edge_attributes, rows));
    columns
}

fn array<A: arrow_array::Array + From<Vec<T>> + 'static, T>(
    values: impl Iterator<Item = T>,
) -> ArrayRef {
    Arc::new(A::from(values.collect::<Vec<T>>()))
}

fn optional<A: arrow_array::Array + From<Vec<Option<T>>> + 'static, T>(
    values: impl Iterator<Item = Option<T>>,
) -> ArrayRef {
    Arc::new(A::from(values.collect::<Vec<Option<T>>>()))
}

/// A word column from a closed vocabulary whose variants are numbered in order.
fn words<W: Word>(all: &[W], values: impl Iterator<Item = Option<W>>) -> ArrayRef {
    let keys: Int32Array = values.map(|v| v.map(Word::key)).collect();
    let words = StringArray::from_iter_values(all.iter().map(|w| w.text()));
    Arc::new(DictionaryArray::new(keys, Arc::new(words)))
}

fn optional_words<'a>(values: impl Iterator<Item = Option<&'a str>>) -> ArrayRef {
    Arc::new(values.collect::<DictionaryArray<Int32Type>>())
}

trait Word: Copy {
    fn key(self) -> i32;
    fn text(self) -> &'static str;
}

macro_rules! impl_word {
    ($($name:ident),+) => {
        $(impl Word for $name {
            fn key(self) -> i32 {
                self as i32
            }
            fn text(self) -> &'static str {
                self.as_str()
            }
        })+
    };
}
impl_word!(NodeKind, Phase, CollectiveKind, EdgeKind, EdgeOrigin);

fn attribute_columns(
    attributes: &Attributes,
    rows: Range<usize>,
) -> impl Iterator<Item = NamedColumn> {
    attributes.iter().map(move |(name, column)| {
        (format!("{ATTRIBUTE_PREFIX}{name}"), true, attribute_array(column, rows.clone()))
    })
}

fn attribute_array(column: &Column, rows: Range<usize>) -> ArrayRef {
    /// The cells of the rows; a column may be shorter than its table.
    fn cells<T>(cells: &[Option<T>], rows: Range<usize>) -> impl Iterator<Item = Option<&T>> {
        rows.map(|row| cells.get(row).and_then(Option::as_ref))
    }
    match column {
        Column::I64(v) => {
            Arc::new(cells(v, rows).map(Option::<&i64>::copied).collect::<Int64Array>())
        }
        Column::F64(v) => {
            Arc::new(cells(v, rows).map(Option::<&f64>::copied).collect::<Float64Array>())
        }
        Column::Bool(v) => {
            Arc::new(cells(v, rows).map(Option::<&bool>::copied).collect::<BooleanArray>())
        }
        Column::Str(v) => {
            let cells = cells(v, rows).map(|cell| cell.map(|text| &**text));
            Arc::new(cells.collect::<DictionaryArray<Int32Type>>())
        }
    }
}
