//! Chakra execution traces (`.et`): length-delimited protocol buffer messages, first the file's
//! metadata, then one node each.

mod lower;
mod message;
mod wire;

use foretrain_core::diagnostics::Severity;
use foretrain_core::{InputError, Ledger, Result};
use foretrain_graph::StepGraph;

use crate::execution_trace::record::{Record, UnknownFields};
use crate::execution_trace::{no_nodes, report_schema};
use crate::graph_file::{ReadGraph, SeenIds, StatedRank};
use message::{ChakraNode, Metadata};
use wire::Value;

/// Whether the beginning of a file (a few KiB, decompressed) looks like a Chakra trace.
pub fn looks_like(prefix: &[u8]) -> bool {
    let mut rest = prefix;
    let Ok(length) = wire::varint(&mut rest) else { return false };
    let first = &rest[..rest.len().min(usize::try_from(length).unwrap_or(usize::MAX))];
    if length == 0 {
        return starts_a_node(rest);
    }
    let mut fields = first;
    match wire::field(&mut fields) {
        Ok((1, Value::Bytes(version))) => is_version(version),
        Ok((2, Value::Bytes(attribute))) => starts_with_name(attribute),
        // The first attribute may be longer than the prefix: judge by its name.
        Err(wire::Malformed::Truncated) => {
            let mut long = first;
            matches!(wire::varint(&mut long), Ok(0x12))
                && wire::varint(&mut long).is_ok()
                && starts_with_name(long)
        }
        _ => false,
    }
}

fn is_version(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(u8::is_ascii_digit)
        && bytes.len() <= 64
        && bytes.iter().all(u8::is_ascii_graphic)
}

fn starts_with_name(mut attribute: &[u8]) -> bool {
    let name = wire::field(&mut attribute);
    matches!(name, Ok((1, Value::Bytes(name))) if !name.is_empty()
        && name.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_'))
}

fn starts_a_node(mut bytes: &[u8]) -> bool {
    let Ok(length) = wire::varint(&mut bytes) else { return false };
    let Ok(message) = wire::take(&mut bytes, length) else { return false };
    message::is_node(message) && ChakraNode::parse(message, &mut UnknownFields::new()).is_ok()
}

/// Reads a Chakra trace of any schema into the step graph of its rank.
///
/// `bytes` is the decompressed file and `path` its name for messages. What was repaired, inferred
/// or left out, and the used-of-seen counts, go to `ledger`. The file does not tell its rank:
/// `meta.rank` is 0.
///
/// # Errors
/// If the file is no sequence of messages, or none of its nodes can be used.
pub fn read(bytes: &[u8], path: &str, ledger: &mut Ledger) -> Result<ReadGraph> {
    let mut messages = Messages { bytes, rest: bytes, cut: None };
    let mut unknown = UnknownFields::new();
    let mut schema = None;
    let mut nodes = Vec::new();
    let (mut seen, mut ids) = (0u64, SeenIds::default());
    for (at, message) in messages.by_ref().enumerate() {
        if at == 0 && !message::is_node(message) {
            schema = Metadata::parse(message).schema;
            continue;
        }
        seen += 1;
        match ChakraNode::parse(message, &mut unknown) {
            Ok(node) if ids.is_new(node.id, ledger) => nodes.push(node),
            Ok(_) => {}
            Err(error) => {
                ledger.record_at(
                    Severity::Dropped,
                    "damaged-node",
                    "a node cannot be read",
                    || format!("message {at}: {}", describe(error)),
                );
            }
        }
    }
    if let Some((place, message)) = messages.cut {
        if nodes.is_empty() {
            return Err(InputError::new(format!("not a readable Chakra trace: {message}"))
                .at(format!("byte {place}"))
                .in_file(path)
                .hint("expected length-delimited messages as the Chakra converter writes them"));
        }
        let place = Some(format!("byte {place}: {message}"));
        let text = "the file ends early or is damaged; what follows was left out";
        ledger.record_many(Severity::Dropped, "truncated-file", text, 1, place);
    }
    report_schema(schema.as_deref(), true, ledger);
    report_unknown(&unknown, ledger);
    ledger.cover("nodes read", nodes.len() as u64, seen);
    let graph = build(nodes, schema.as_deref(), path, ledger)?;
    Ok(ReadGraph { graph, schema, rank: StatedRank::Unknown })
}

/// Lowers Chakra nodes that were read from JSON.
pub(crate) fn from_records(
    records: &[Record<'_>],
    world_size: Option<u64>,
    path: &str,
    ledger: &mut Ledger,
) -> Result<StepGraph> {
    let nodes = records.iter().filter_map(from_record).collect();
    let mut graph = build(nodes, None, path, ledger)?;
    if let Some(size) = world_size.and_then(|size| u32::try_from(size).ok()) {
        graph.meta.world_size = graph.meta.world_size.max(size);
    }
    Ok(graph)
}

fn from_record<'a>(record: &Record<'a>) -> Option<ChakraNode<'a>> {
    Some(ChakraNode {
        id: record.id?,
        name: record.name.clone(),
        kind: record.node_type.unwrap_or(0),
        control: record.control.clone(),
        data: record.data.clone(),
        start: record.start,
        duration: record.duration,
        shapes: record
            .inputs
            .shapes
            .and_then(|shapes| crate::execution_trace::tensors::compact_shapes(shapes.get())),
        types: record.inputs.types.map(|types| types.get().into()),
        on_cpu: record.on_cpu,
        thread: record.thread,
        stream: record.stream,
        comm_type: record.comm_type,
        bytes: record.bytes,
        peer: record.peer,
        tag: record.tag,
        operations: record.operations,
        dimensions: record.dimensions.clone(),
        communication: record.communication.clone(),
    })
}

/// Builds the graph of nodes with distinct ids.
fn build(
    mut nodes: Vec<ChakraNode<'_>>,
    schema: Option<&str>,
    path: &str,
    ledger: &mut Ledger,
) -> Result<StepGraph> {
    nodes.sort_by_key(|node| node.id);
    if nodes.is_empty() {
        return Err(no_nodes(schema, path));
    }
    Ok(lower::lower(&nodes, path, ledger))
}

fn report_unknown(unknown: &UnknownFields, ledger: &mut Ledger) {
    for (name, count) in unknown {
        ledger.record_many(
            Severity::Warning,
            "unknown-field",
            "a field that no known schema has was not used",
            *count,
            Some(format!("\"{name}\"")),
        );
    }
}

fn describe(error: wire::Malformed) -> String {
    match error {
        wire::Malformed::Truncated => "a length reaches beyond its end".into(),
        wire::Malformed::Varint => "a number has more than ten bytes".into(),
        wire::Malformed::WireType(number) => format!("wire type {number} does not exist"),
    }
}

/// The length-delimited messages of a file, until its end or damage.
struct Messages<'a> {
    bytes: &'a [u8],
    rest: &'a [u8],
    cut: Option<(usize, String)>,
}

impl<'a> Iterator for Messages<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.rest.is_empty() || self.cut.is_some() {
            return None;
        }
        let place = self.bytes.len() - self.rest.len();
        let length = wire::varint(&mut self.rest);
        let message = match length {
            Ok(length) => {
                let left = self.rest.len();
                wire::take(&mut self.rest, length).map_err(|_| {
                    format!("a message of {length} bytes is announced where {left} are left")
                })
            }
            Err(error) => Err(describe(error)),
        };
        match message {
            Ok(message) => Some(message),
            Err(text) => {
                self.cut = Some((place, text));
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_chakra_looks_like_chakra() {
        assert!(looks_like(b"\x07\x0a\x050.0.4"));
        assert!(looks_like(b"\x0f\x12\x0d\x0a\x06schema\xea\x01\x031.0"));
        assert!(!looks_like(b"{\"schema\": \"1.0.1\"}"));
        assert!(!looks_like(b"\x1f\x8b\x08\x00"));
        assert!(!looks_like(b""));
        assert!(!looks_like(b"\x00"));
    }

    #[test]
    fn a_length_beyond_the_file_is_an_error_that_says_so() {
        let error = read(b"\xff\xff\xff\xff\x0f\x0a\x01", "a.et", &mut Ledger::new()).unwrap_err();
        assert!(
            error.to_string().contains("4294967295 bytes is announced where 2 are left"),
            "{error}"
        );
        assert_eq!(error.place(), Some("byte 0"));
    }
}
