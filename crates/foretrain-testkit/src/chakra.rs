//! Made-up Chakra files, encoded by derived messages and not by the reader's own code.

use prost::Message;

/// The first message of a file.
#[derive(Clone, PartialEq, Message)]
pub struct Metadata {
    /// Schema version, in the newer encoding.
    #[prost(string, tag = "1")]
    pub version: String,
    /// Further facts.
    #[prost(message, repeated, tag = "2")]
    pub attributes: Vec<Attribute>,
}

/// One node.
#[derive(Clone, PartialEq, Message)]
pub struct Node {
    /// Number of the node.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// Name.
    #[prost(string, tag = "2")]
    pub name: String,
    /// Node type of the schema.
    #[prost(int32, tag = "3")]
    pub kind: i32,
    /// Control dependencies.
    #[prost(uint64, repeated, tag = "4")]
    pub control: Vec<u64>,
    /// Data dependencies.
    #[prost(uint64, repeated, tag = "5")]
    pub data: Vec<u64>,
    /// Start in microseconds.
    #[prost(uint64, tag = "6")]
    pub start: u64,
    /// Duration in microseconds.
    #[prost(uint64, tag = "7")]
    pub duration: u64,
    /// Further facts.
    #[prost(message, repeated, tag = "10")]
    pub attributes: Vec<Attribute>,
}

/// A named attribute.
#[derive(Clone, PartialEq, Message)]
pub struct Attribute {
    /// Name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Value.
    #[prost(oneof = "Content", tags = "7, 9, 13, 27, 28, 29")]
    pub content: Option<Content>,
}

/// An attribute's value.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Content {
    /// 32-bit number.
    #[prost(int32, tag = "7")]
    Int32(i32),
    /// 64-bit number.
    #[prost(int64, tag = "9")]
    Int64(i64),
    /// 64-bit number without sign.
    #[prost(uint64, tag = "13")]
    Uint64(u64),
    /// Truth value.
    #[prost(bool, tag = "27")]
    Bool(bool),
    /// List.
    #[prost(message, tag = "28")]
    Bools(Bools),
    /// Text.
    #[prost(string, tag = "29")]
    Text(String),
}

/// A list of truth values.
#[derive(Clone, PartialEq, Message)]
pub struct Bools {
    /// The values.
    #[prost(bool, repeated, tag = "1")]
    pub values: Vec<bool>,
}

/// An attribute.
pub fn attribute(name: &str, content: Content) -> Attribute {
    Attribute { name: name.into(), content: Some(content) }
}

/// A node with data dependencies.
pub fn node(id: u64, name: &str, kind: i32, data: &[u64]) -> Node {
    Node { id, name: name.into(), kind, data: data.to_vec(), ..Node::default() }
}

/// A whole file.
pub fn file(schema: &str, nodes: &[Node]) -> Vec<u8> {
    let attributes = vec![attribute("schema", Content::Text(schema.into()))];
    let mut bytes =
        Metadata { version: String::new(), attributes }.encode_length_delimited_to_vec();
    for node in nodes {
        bytes.extend(node.encode_length_delimited_to_vec());
    }
    bytes
}

/// A small run with both halves of a collective, a copy and messages.
pub fn sample() -> Vec<Node> {
    use Content::{Bool, Int32, Int64, Text, Uint64};
    let on_cpu = |truth| attribute("is_cpu_op", Bool(truth));
    let mut nodes = vec![
        node(0, "aten::mm", 4, &[]),
        node(1, "gemm", 4, &[0]),
        node(2, "nccl:all_reduce", 7, &[0]),
        node(3, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", 7, &[2]),
        node(4, "load", 2, &[3]),
        node(5, "send", 5, &[4]),
        node(6, "recv", 6, &[4]),
    ];
    nodes[0].attributes = vec![on_cpu(true), attribute("tid", Int64(1))];
    nodes[1].attributes =
        vec![on_cpu(false), attribute("stream", Int64(7)), attribute("num_ops", Uint64(1000))];
    nodes[1].duration = 2598;
    nodes[2].attributes = vec![on_cpu(true), attribute("tid", Int64(1))];
    nodes[3].attributes = vec![
        on_cpu(false),
        attribute("stream", Int64(7)),
        attribute("comm_type", Int64(0)),
        attribute("comm_size", Int64(1 << 32)),
        attribute("pg_name", Text("2".into())),
    ];
    nodes[3].duration = 20_031;
    nodes[3].control = vec![2];
    nodes[4].attributes = vec![attribute("tensor_size", Uint64(640))];
    nodes[5].attributes = vec![attribute("comm_dst", Int32(1)), attribute("comm_tag", Int32(3))];
    nodes[6].attributes = vec![attribute("comm_src", Int32(7)), attribute("comm_size", Int64(64))];
    nodes
}
