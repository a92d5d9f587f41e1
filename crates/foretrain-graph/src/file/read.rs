//! Reading a graph file.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema};
use bytes::Bytes;
use foretrain_core::{InputError, Nanos, Result};
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::FileReader;

use super::header::{Header, KEY};
use super::read_columns::{Budget, Columns};
use super::{Limits, damaged, pages};
use crate::attributes::{Attributes, Column};
use crate::kinds::{CollectiveKind, EdgeKind, EdgeOrigin, NodeKind, Phase};
use crate::step_graph::{Edge, GroupId, NodeId, QueueId, StepGraph};

const BATCH: usize = 1 << 16;
/// Bytes one row takes in memory without attributes.
const NODE_BYTES: usize = 80;
const EDGE_BYTES: usize = 32;

/// The columns before the attributes, with their types and whether cells may be empty.
fn node_fields() -> Vec<Field> {
    vec![
        text("name", false),
        text("kind", false),
        text("phase", false),
        text("module", false),
        Field::new("queue", DataType::UInt32, false),
        Field::new("work_ns", DataType::Int64, false),
        Field::new("priority", DataType::Int32, false),
        Field::new("group", DataType::UInt32, true),
        text("collective", true),
        Field::new("sequence", DataType::UInt32, false),
        Field::new("bytes", DataType::UInt64, true),
        text("dtype", true),
    ]
}

fn edge_fields() -> Vec<Field> {
    vec![
        Field::new("src", DataType::UInt32, false),
        Field::new("dst", DataType::UInt32, false),
        text("kind", false),
        text("origin", false),
        Field::new("lag_ns", DataType::Int64, false),
        Field::new("distance", DataType::UInt16, false),
    ]
}

/// Text is decoded as a dictionary: each distinct value once, whatever the file claims.
fn text_type() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

fn text(name: &str, nullable: bool) -> Field {
    Field::new(name, text_type(), nullable)
}

pub(super) fn read(bytes: Bytes, limits: &Limits) -> Result<StepGraph> {
    let mut budget = Budget::new(bytes.len(), limits);
    let (reader, rows) = pages::open(bytes.clone(), "node")?;
    let metadata = Arc::new(reader.metadata().clone());
    let header = header_of(&metadata)?;
    expect_rows("node", header.nodes, rows)?;
    let edges = edge_section(&bytes, &header)?;

    let mut graph = StepGraph::new();
    read_table(bytes, metadata, "node", node_fields(), NODE_BYTES, &mut budget, |columns| {
        add_nodes(&mut graph, columns)
    })
    .map(|attributes| graph.node_attributes = attributes)?;

    let (reader, rows) = pages::open(edges.clone(), "edge")?;
    expect_rows("edge", header.edges.rows, rows)?;
    let metadata = Arc::new(reader.metadata().clone());
    read_table(edges, metadata, "edge", edge_fields(), EDGE_BYTES, &mut budget, |columns| {
        add_edges(&mut graph, columns)
    })
    .map(|attributes| graph.edge_attributes = attributes)?;

    graph.queues = header.queues;
    graph.groups = header.groups;
    graph.meta = header.meta;
    Ok(graph)
}

fn header_of(metadata: &ParquetMetaData) -> Result<Header> {
    let entries = metadata.file_metadata().key_value_metadata().map_or(&[][..], Vec::as_slice);
    let entry = entries.iter().find(|entry| entry.key == KEY).and_then(|e| e.value.as_deref());
    Header::parse(entry.ok_or_else(|| {
        InputError::new("the Parquet file is not a graph file: it has no \"foretrain\" header")
            .hint("a graph file that another program rewrote loses its header and its edges")
    })?)
}

fn expect_rows(what: &str, header: u64, rows: usize) -> Result<()> {
    if header != rows as u64 || u32::try_from(rows).is_err() {
        return Err(damaged(format!("the header counts {header} {what}s, the table {rows}")));
    }
    Ok(())
}

fn edge_section(bytes: &Bytes, header: &Header) -> Result<Bytes> {
    let start = usize::try_from(header.edges.offset).ok();
    let end = start.and_then(|start| start.checked_add(usize::try_from(header.edges.length).ok()?));
    match (start, end) {
        (Some(start), Some(end)) if end <= bytes.len() => Ok(bytes.slice(start..end)),
        _ => Err(damaged("the edge table lies beyond the end of the file")
            .hint("a graph file that another program rewrote loses its edges")),
    }
}

/// Decodes a table batch by batch: the fixed columns go to `add`, the attributes are returned.
fn read_table(
    bytes: Bytes,
    metadata: Arc<ParquetMetaData>,
    what: &str,
    mut fields: Vec<Field>,
    row_bytes: usize,
    budget: &mut Budget,
    mut add: impl FnMut(&Columns<'_>) -> Result<()>,
) -> Result<Attributes> {
    let rows = usize::try_from(metadata.file_metadata().num_rows()).unwrap_or(usize::MAX);
    budget.take(rows, row_bytes)?;
    let fixed = fields.len();
    let found = ArrowReaderMetadata::try_new(
        metadata.clone(),
        ArrowReaderOptions::new().with_skip_arrow_metadata(true),
    )
    .map_err(damaged)?;
    let mut attributes = attribute_columns(found.schema(), what, &fields, rows, budget)?;
    fields.extend(attributes.iter().map(|(name, column)| {
        let name = format!("{}{name}", super::ATTRIBUTE_PREFIX);
        Field::new(name, attribute_type(column), true)
    }));
    let options = ArrowReaderOptions::new().with_schema(Arc::new(Schema::new(fields)));
    let metadata = ArrowReaderMetadata::try_new(metadata, options)
        .map_err(|error| damaged(format!("the {what} table has other columns ({error})")))?;
    let batches = ParquetRecordBatchReaderBuilder::new_with_metadata(bytes, metadata)
        .with_batch_size(BATCH)
        .build()
        .map_err(damaged)?;
    let mut done = 0;
    for batch in batches {
        let batch: RecordBatch = batch.map_err(damaged)?;
        let columns = Columns::new(&batch);
        done += batch.num_rows();
        if done > rows {
            break;
        }
        add(&columns)?;
        for (i, (_, column)) in attributes.iter_mut().enumerate() {
            columns.extend_attribute(fixed + i, column, budget)?;
        }
    }
    if done != rows {
        return Err(damaged(format!("the {what} table has {done} rows instead of {rows}")));
    }
    let mut all = Attributes::default();
    for (name, column) in attributes {
        all.insert_column(name, column);
    }
    Ok(all)
}

/// Empty columns for the attributes of the schema, which must begin with the fixed columns.
fn attribute_columns(
    schema: &Schema,
    what: &str,
    fixed: &[Field],
    rows: usize,
    budget: &mut Budget,
) -> Result<Vec<(String, Column)>> {
    let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
    if let Some(missing) = fixed.iter().find(|f| !names.contains(&f.name().as_str())) {
        return Err(damaged(format!("the {what} table has no column \"{}\"", missing.name())));
    }
    let mut columns: Vec<(String, Column)> = Vec::new();
    for field in schema.fields().iter().skip(fixed.len()) {
        let shown = field.name().escape_debug();
        let Some(name) = field.name().strip_prefix(super::ATTRIBUTE_PREFIX) else {
            return Err(damaged(format!("the {what} table has an unknown column \"{shown}\""))
                .hint("columns of your own are named \"attr:...\""));
        };
        let (column, width) = match field.data_type() {
            DataType::Int64 => (Column::I64(Vec::new()), 16),
            DataType::Float64 => (Column::F64(Vec::new()), 16),
            DataType::Boolean => (Column::Bool(Vec::new()), 1),
            DataType::Utf8 => (Column::Str(Vec::new()), 16),
            other => {
                return Err(damaged(format!("column \"{shown}\" is of type {other}"))
                    .hint("attributes are int64, float64, bool or string"));
            }
        };
        budget.take(rows, width)?;
        columns.push((name.to_owned(), column));
    }
    Ok(columns)
}

fn attribute_type(column: &Column) -> DataType {
    match column {
        Column::I64(_) => DataType::Int64,
        Column::F64(_) => DataType::Float64,
        Column::Bool(_) => DataType::Boolean,
        Column::Str(_) => text_type(),
    }
}

fn add_nodes(graph: &mut StepGraph, columns: &Columns<'_>) -> Result<()> {
    let t = &mut graph.nodes;
    columns.names(0, &mut graph.names, &mut t.name)?;
    columns.words(1, "node kind", NodeKind::parse, &mut t.kind)?;
    columns.words(2, "phase", Phase::parse, &mut t.phase)?;
    columns.names(3, &mut graph.names, &mut t.module)?;
    t.queue.extend(columns.u32(4)?.iter().map(|&v| QueueId::new(v)));
    t.work.extend(columns.i64(5)?.iter().map(|&v| Nanos::from_nanos(v)));
    t.priority.extend_from_slice(columns.i32(6)?);
    t.group.extend(columns.optional_u32(7)?.map(|v| v.map(GroupId::new)));
    columns.optional_words(8, "collective", CollectiveKind::parse, &mut t.collective)?;
    t.sequence.extend_from_slice(columns.u32(9)?);
    t.bytes.extend(columns.optional_u64(10)?.map(|v| v.map(foretrain_core::Bytes::new)));
    columns.optional_words(11, "element type", foretrain_core::DType::parse, &mut t.dtype)
}

fn add_edges(graph: &mut StepGraph, columns: &Columns<'_>) -> Result<()> {
    let (mut kinds, mut origins) = (Vec::new(), Vec::new());
    columns.words(2, "edge kind", EdgeKind::parse, &mut kinds)?;
    columns.words(3, "edge origin", EdgeOrigin::parse, &mut origins)?;
    let (src, dst) = (columns.u32(0)?, columns.u32(1)?);
    let (lag, distance) = (columns.i64(4)?, columns.u16(5)?);
    graph.edges.extend((0..kinds.len()).map(|i| Edge {
        src: NodeId::new(src[i]),
        dst: NodeId::new(dst[i]),
        kind: kinds[i],
        origin: origins[i],
        lag: Nanos::from_nanos(lag[i]),
        distance: distance[i],
    }));
    Ok(())
}
