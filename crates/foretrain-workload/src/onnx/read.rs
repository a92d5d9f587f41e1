//! The graph of an ONNX file: nodes, shapes, and constants without their data.

use std::io::{Read, Seek};

use foretrain_core::Result;
use prost::Message;

use super::message::{NodeProto, TensorProto, ValueInfoProto};
use super::wire::{Field, Wire};

/// Constants of no more bytes are kept: shapes and axes, not weights.
const SMALL: u64 = 4096;

/// What is kept of a file.
#[derive(Default)]
pub(super) struct Graph {
    pub(super) nodes: Vec<NodeProto>,
    pub(super) constants: Vec<TensorProto>,
    pub(super) inputs: Vec<ValueInfoProto>,
    pub(super) values: Vec<ValueInfoProto>,
}

/// Reads a file's graph; weights are passed over, and no other file is opened.
pub(super) fn graph(source: impl Read + Seek) -> Result<Graph> {
    const GRAPH: u32 = 7;
    let mut wire = Wire::new(source)?;
    let end = wire.end();
    let mut graph = None;
    while let Some(field) = wire.field(end)? {
        match field {
            Field::Bytes(GRAPH, length) => graph = Some(graph_of(&mut wire, length)?),
            Field::Bytes(_, length) => wire.pass(length)?,
            Field::Integer(..) | Field::Other => {}
        }
    }
    graph.ok_or_else(|| {
        wire.error("not an ONNX model: it holds no graph").hint("export with `torch.onnx.export`")
    })
}

fn graph_of<R: Read + Seek>(wire: &mut Wire<R>, length: u64) -> Result<Graph> {
    const NODE: u32 = 1;
    const INITIALIZER: u32 = 5;
    const INPUT: u32 = 11;
    const OUTPUT: u32 = 12;
    const VALUE: u32 = 13;
    let end = wire.end_of(length)?;
    let mut graph = Graph::default();
    while let Some(field) = wire.field(end)? {
        match field {
            Field::Bytes(NODE, length) => graph.nodes.push(message(wire, length)?),
            Field::Bytes(INITIALIZER, length) => graph.constants.push(constant(wire, length)?),
            Field::Bytes(INPUT, length) => graph.inputs.push(message(wire, length)?),
            Field::Bytes(OUTPUT | VALUE, length) => graph.values.push(message(wire, length)?),
            Field::Bytes(_, length) => wire.pass(length)?,
            Field::Integer(..) | Field::Other => {}
        }
    }
    Ok(graph)
}

fn message<M: Message + Default, R: Read + Seek>(wire: &mut Wire<R>, length: u64) -> Result<M> {
    let bytes = wire.bytes(length)?;
    M::decode(&bytes[..]).map_err(|error| wire.error(format!("a damaged message: {error}")))
}

/// A constant of an initialiser: its name, type and shape, and its data if it is small.
fn constant<R: Read + Seek>(wire: &mut Wire<R>, length: u64) -> Result<TensorProto> {
    const DIMS: u32 = 1;
    const DATA_TYPE: u32 = 2;
    const NAME: u32 = 8;
    if length <= SMALL {
        return message(wire, length);
    }
    let end = wire.end_of(length)?;
    let mut tensor = TensorProto::default();
    while let Some(field) = wire.field(end)? {
        match field {
            Field::Integer(DIMS, dim) => tensor.dims.push(dim.cast_signed()),
            Field::Integer(DATA_TYPE, kind) => tensor.data_type = i32::try_from(kind).unwrap_or(0),
            Field::Bytes(DIMS, length) if length <= SMALL => {
                let packed = wire.bytes(length)?;
                tensor.dims.extend(varints(&packed));
            }
            Field::Bytes(NAME, length) if length <= SMALL => {
                tensor.name = String::from_utf8_lossy(&wire.bytes(length)?).into_owned();
            }
            Field::Bytes(_, length) => wire.pass(length)?,
            Field::Integer(..) | Field::Other => {}
        }
        if tensor.dims.len() > 64 {
            return Err(wire.error("a constant of more than 64 dimensions"));
        }
    }
    Ok(tensor)
}

fn varints(mut bytes: &[u8]) -> Vec<i64> {
    let mut numbers = Vec::new();
    while let Ok(number) = prost::encoding::decode_varint(&mut bytes) {
        numbers.push(number.cast_signed());
    }
    numbers
}
