//! Chakra's messages: metadata, nodes and their attributes, in the encodings of all versions.
//!
//! Field numbers after `et_def.proto` of the MLCommons Chakra schema 0.0.4 and the attribute
//! layout before it.

use std::borrow::Cow;

use foretrain_core::Nanos;

use super::wire::{self, Malformed, Value};
use crate::execution_trace::record::{Communication, UnknownFields};

/// The first message of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Metadata {
    pub(super) schema: Option<String>,
}

/// One node with the attributes that matter here.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChakraNode<'a> {
    pub(crate) id: u64,
    pub(crate) name: Cow<'a, str>,
    pub(crate) kind: i64,
    pub(crate) control: Vec<u64>,
    pub(crate) data: Vec<u64>,
    pub(crate) start: Option<Nanos>,
    /// Microseconds.
    pub(crate) duration: Option<f64>,
    pub(crate) shapes: Option<Box<str>>,
    pub(crate) types: Option<Cow<'a, str>>,
    pub(crate) on_cpu: Option<bool>,
    pub(crate) thread: Option<i64>,
    pub(crate) stream: Option<i64>,
    pub(crate) comm_type: Option<i64>,
    pub(crate) bytes: Option<u64>,
    pub(crate) peer: Option<i64>,
    pub(crate) tag: Option<i64>,
    pub(crate) operations: Option<u64>,
    pub(crate) dimensions: Option<Vec<u64>>,
    pub(crate) communication: Option<Box<Communication<'a>>>,
}

/// The content of an attribute.
#[derive(Clone, Debug, Default, PartialEq)]
enum Content<'a> {
    #[default]
    None,
    Int(i64),
    Uint(u64),
    Float(f64),
    Bool(bool),
    Text(Cow<'a, str>),
    List(Vec<u64>),
}

impl<'a> Content<'a> {
    fn int(&self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(*value),
            Self::Uint(value) => i64::try_from(*value).ok(),
            Self::Bool(value) => Some(i64::from(*value)),
            Self::Float(value) if value.fract() == 0.0 && value.abs() < 9e15 => Some(*value as i64),
            Self::Text(text) => text.trim().parse().ok(),
            _ => None,
        }
    }
    fn unsigned(&self) -> Option<u64> {
        match self {
            Self::Uint(value) => Some(*value),
            other => other.int().and_then(|value| u64::try_from(value).ok()),
        }
    }
    fn text(self) -> Option<Cow<'a, str>> {
        match self {
            Self::Text(text) if !text.is_empty() => Some(text),
            Self::Int(value) => Some(value.to_string().into()),
            Self::Uint(value) => Some(value.to_string().into()),
            _ => None,
        }
    }
    fn list(self) -> Option<Vec<u64>> {
        match self {
            Self::List(items) => Some(items),
            _ => None,
        }
    }
}

/// Whether the message is a node rather than metadata: only nodes have an id or a type.
pub(super) fn is_node(bytes: &[u8]) -> bool {
    let mut node = false;
    let _ = wire::fields(bytes, |number, value| {
        node |= matches!((number, value), (1 | 3, Value::Varint(_)));
    });
    node
}

impl Metadata {
    /// Reads the metadata; damage ends it early.
    pub(super) fn parse(bytes: &[u8]) -> Self {
        let mut metadata = Self::default();
        let _ = wire::fields(bytes, |number, value| match (number, value) {
            (1, Value::Bytes(text)) => {
                metadata.schema = Some(short(&String::from_utf8_lossy(text)));
            }
            (2, Value::Bytes(attribute)) => {
                if let Ok((name, content)) = parse_attribute(attribute)
                    && name == "schema"
                {
                    metadata.schema =
                        content.text().map(|text| short(&text)).or(metadata.schema.take());
                }
            }
            _ => {}
        });
        metadata
    }
}

fn short(text: &str) -> String {
    text.chars().take(80).collect()
}

impl<'a> ChakraNode<'a> {
    /// Reads one node message.
    pub(super) fn parse(bytes: &'a [u8], unknown: &mut UnknownFields) -> Result<Self, Malformed> {
        let mut node = Self::default();
        let mut damage = Ok(());
        wire::fields(bytes, |number, value| {
            let outcome = node.set_field(number, value, unknown);
            if damage.is_ok() {
                damage = outcome;
            }
        })?;
        damage.map(|()| node)
    }

    fn set_field(
        &mut self,
        number: u64,
        value: Value<'a>,
        unknown: &mut UnknownFields,
    ) -> Result<(), Malformed> {
        match (number, value) {
            (1, Value::Varint(id)) => self.id = id,
            (2, Value::Bytes(name)) => self.name = String::from_utf8_lossy(name),
            (3, Value::Varint(kind)) => self.kind = kind as i64,
            (4, deps) => wire::repeated(deps, &mut self.control)?,
            (5, deps) => wire::repeated(deps, &mut self.data)?,
            (6, Value::Varint(start)) => self.start = Some(micros(start)),
            (7, Value::Varint(duration)) => self.duration = Some(duration as f64),
            (8, Value::Bytes(inputs)) => self.set_inputs(inputs)?,
            (9, Value::Bytes(_)) => {}
            (10, Value::Bytes(attribute)) => {
                let (name, content) = parse_attribute(attribute)?;
                self.set_attribute(&name, content, unknown);
            }
            (other, _) => count(unknown, &format!("node field {other}")),
        }
        Ok(())
    }

    fn set_inputs(&mut self, bytes: &'a [u8]) -> Result<(), Malformed> {
        wire::fields(bytes, |number, value| match (number, value) {
            (2, Value::Bytes(text)) => {
                self.shapes =
                    crate::execution_trace::tensors::compact_shapes(&String::from_utf8_lossy(text));
            }
            (3, Value::Bytes(text)) => self.types = Some(String::from_utf8_lossy(text)),
            _ => {}
        })
    }

    fn set_attribute(&mut self, name: &str, content: Content<'a>, unknown: &mut UnknownFields) {
        match name {
            "is_cpu_op" => self.on_cpu = content.int().map(|value| value != 0),
            "tid" => self.thread = content.int(),
            "stream" => self.stream = content.int(),
            "comm_type" => self.comm_type = content.int(),
            "comm_size" | "tensor_size" => self.bytes = content.unsigned().or(self.bytes),
            "comm_src" | "comm_dst" => self.peer = content.int(),
            "comm_tag" => self.tag = content.int(),
            "num_ops" => self.operations = content.unsigned(),
            "involved_dim" => self.dimensions = content.list(),
            "pg_name" | "comm_group" => {
                if let Some(group) = content.text() {
                    self.communication.get_or_insert_default().group = Some(group);
                }
            }
            "pg_desc" => {
                self.communication.get_or_insert_default().description = content.text();
            }
            "pg_size" => self.communication.get_or_insert_default().size = content.unsigned(),
            "runtime" => self.duration = content.unsigned().map(|v| v as f64).or(self.duration),
            other if IGNORED.contains(&other) => {}
            other => count(unknown, other),
        }
    }
}

fn micros(count: u64) -> Nanos {
    Nanos::from_micros(i64::try_from(count).unwrap_or(i64::MAX))
}

/// Attributes that the step graph has no use for.
const IGNORED: [&str; 22] = [
    "rf_id",
    "fw_parent",
    "seq_id",
    "scope",
    "fw_tid",
    "op_schema",
    "kernel_backend",
    "kernel_file",
    "tensor_range",
    "comm_priority",
    "collective_name",
    "dtype",
    "in_msg_nelems",
    "out_msg_nelems",
    "in_split_size",
    "out_split_size",
    "global_rank_start",
    "global_rank_stride",
    "tensor_loc",
    "local_mem",
    "is_wait",
    "cpu_id",
];

fn count(unknown: &mut UnknownFields, name: &str) {
    if let Some(seen) = unknown.get_mut(name) {
        *seen += 1;
    } else if unknown.len() < 64 {
        unknown.insert(name.chars().take(80).collect(), 1);
    }
}

/// Name and content of an attribute.
///
/// Since schema 0.0.4 the content is one of many typed fields (`int64_val` = 9, `bool_list` = 28).
/// Before, as in ONNX: `f` = 2, `i` = 3, `s` = 4, `ints` = 8, with the type in a field of its own.
/// The wire types keep the two apart.
fn parse_attribute(bytes: &[u8]) -> Result<(String, Content<'_>), Malformed> {
    let mut name = String::new();
    let mut content = Content::None;
    let mut list = Vec::new();
    let mut damage = Ok(());
    wire::fields(bytes, |number, value| {
        use Content as C;
        match (number, value) {
            (1, Value::Bytes(text)) => name = String::from_utf8_lossy(text).into_owned(),
            (2 | 5, Value::Fixed32(bits)) => content = C::Float(f32::from_bits(bits).into()),
            (3, Value::Fixed64(bits)) => content = C::Float(f64::from_bits(bits)),
            (3 | 7 | 9, Value::Varint(int)) => content = C::Int(int as i64),
            (11 | 13, Value::Varint(int)) => content = C::Uint(int),
            (15 | 17, Value::Varint(int)) => content = C::Int(zigzag(int)),
            (19 | 23, Value::Fixed32(int)) => content = C::Uint(int.into()),
            (21, Value::Fixed64(int)) => content = C::Uint(int),
            (25, Value::Fixed64(int)) => content = C::Int(int as i64),
            (27, Value::Varint(truth)) => content = C::Bool(truth != 0),
            (4 | 29 | 31, Value::Bytes(text)) => content = C::Text(String::from_utf8_lossy(text)),
            (8 | 10 | 12 | 14 | 28, packed @ (Value::Varint(_) | Value::Bytes(_))) => {
                let outcome = read_list(packed, &mut list);
                if damage.is_ok() {
                    damage = outcome;
                }
            }
            _ => {}
        }
    })?;
    damage?;
    if !list.is_empty() {
        content = Content::List(list);
    }
    Ok((name, content))
}

/// Numbers in a list message (field 1, packed or not), or bare as in the old layout.
fn read_list(value: Value<'_>, list: &mut Vec<u64>) -> Result<(), Malformed> {
    let Value::Bytes(bytes) = value else { return wire::repeated(value, list) };
    // A list message starts with the key of its field 1.
    if !matches!(bytes.first(), Some(0x08 | 0x0a)) {
        return wire::repeated(value, list);
    }
    let mut damage = Ok(());
    wire::fields(bytes, |_, item| {
        let outcome = wire::repeated(item, list);
        if damage.is_ok() {
            damage = outcome;
        }
    })?;
    damage
}

fn zigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zigzag_is_undone() {
        assert_eq!([0, 1, 2, 3, u64::MAX].map(zigzag), [0, -1, 1, -2, i64::MIN]);
    }

    #[test]
    fn old_and_new_attributes_are_read() {
        // name "comm_size", old int field 3.
        let old = [b"\x0a\x09comm_size".as_slice(), &[0x18, 0x80, 0x02]].concat();
        assert_eq!(parse_attribute(&old), Ok(("comm_size".into(), Content::Int(256))));
        // uint64 field 13.
        let new = [b"\x0a\x09comm_size".as_slice(), &[0x68, 0x80, 0x02]].concat();
        assert_eq!(parse_attribute(&new), Ok(("comm_size".into(), Content::Uint(256))));
        // bool_list field 28 = message {1: packed}.
        let dims = [b"\x0a\x01d".as_slice(), &[0xe2, 0x01, 0x04, 0x0a, 0x02, 0x01, 0x00]].concat();
        assert_eq!(parse_attribute(&dims), Ok(("d".into(), Content::List(vec![1, 0]))));
        // old ints, packed without a message around.
        let ints = [b"\x0a\x01d".as_slice(), &[0x42, 0x02, 0x01, 0x00]].concat();
        assert_eq!(parse_attribute(&ints), Ok(("d".into(), Content::List(vec![1, 0]))));
    }
}
