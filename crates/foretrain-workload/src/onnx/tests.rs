use std::io::Cursor;

use prost::Message;

use super::message::{
    AttributeProto, DimensionProto, NodeProto, ShapeProto, TensorProto, TensorTypeProto, TypeProto,
    ValueInfoProto,
};
use super::*;
use crate::model::OpKind;

/// A graph under construction, written as ONNX does.
#[derive(Default)]
struct Writer {
    graph: Vec<u8>,
}

fn field(number: u32, bytes: &[u8]) -> Vec<u8> {
    let mut field = Vec::new();
    prost::encoding::encode_varint(u64::from(number) << 3 | 2, &mut field);
    prost::encoding::encode_varint(bytes.len() as u64, &mut field);
    field.extend_from_slice(bytes);
    field
}

impl Writer {
    fn input(mut self, name: &str, sides: &[&str]) -> Self {
        let dim = |side: &&str| DimensionProto {
            dim_value: side.parse().ok(),
            dim_param: side.parse::<i64>().is_err().then(|| (*side).to_owned()),
        };
        let shape = ShapeProto { dim: sides.iter().map(dim).collect() };
        let tensor_type = Some(TensorTypeProto { elem_type: 1, shape: Some(shape) });
        let value = ValueInfoProto { name: name.into(), r#type: Some(TypeProto { tensor_type }) };
        self.graph.extend(field(11, &value.encode_to_vec()));
        self
    }

    /// A float weight with all its data.
    fn weight(mut self, name: &str, dims: &[i64]) -> Self {
        let bytes = 4 * dims.iter().product::<i64>() as usize;
        let tensor = TensorProto {
            dims: dims.to_vec(),
            data_type: 1,
            name: name.into(),
            raw_data: vec![0; bytes],
            ..TensorProto::default()
        };
        self.graph.extend(field(5, &tensor.encode_to_vec()));
        self
    }

    fn integers(mut self, name: &str, values: &[i64]) -> Self {
        let tensor = TensorProto {
            dims: vec![values.len() as i64],
            data_type: 7,
            name: name.into(),
            int64_data: values.to_vec(),
            ..TensorProto::default()
        };
        self.graph.extend(field(5, &tensor.encode_to_vec()));
        self
    }

    fn node(mut self, op: &str, inputs: &[&str], output: &str, ints: &[(&str, &[i64])]) -> Self {
        let attribute = |(name, ints): &(&str, &[i64])| AttributeProto {
            name: (*name).into(),
            i: ints.first().copied().unwrap_or(0),
            ints: ints.to_vec(),
            ..AttributeProto::default()
        };
        let node = NodeProto {
            input: inputs.iter().map(|name| (*name).to_owned()).collect(),
            output: vec![output.to_owned()],
            name: String::new(),
            op_type: op.into(),
            attribute: ints.iter().map(attribute).collect(),
        };
        self.graph.extend(field(1, &node.encode_to_vec()));
        self
    }

    fn file(&self) -> Vec<u8> {
        field(7, &self.graph)
    }

    fn model(&self) -> Model {
        parse(Cursor::new(self.file()), "test").unwrap()
    }
}

/// Two convolutions around a residual sum, pooling and a classifier.
fn convolutional(batch: &str) -> Writer {
    Writer::default()
        .input("image", &[batch, "3", "32", "32"])
        .weight("w1", &[16, 3, 3, 3])
        .weight("scale", &[16])
        .weight("shift", &[16])
        .weight("mean", &[16])
        .weight("var", &[16])
        .weight("w2", &[16, 16, 3, 3])
        .weight("b2", &[16])
        .weight("fc", &[10, 16])
        .weight("fcb", &[10])
        .node("Conv", &["image", "w1"], "c1", &[("pads", &[1, 1, 1, 1]), ("strides", &[2, 2])])
        .node("BatchNormalization", &["c1", "scale", "shift", "mean", "var"], "n1", &[])
        .node("Relu", &["n1"], "r1", &[])
        .node("Conv", &["r1", "w2", "b2"], "c2", &[("pads", &[1, 1, 1, 1])])
        .node("Add", &["c2", "r1"], "sum", &[])
        .node("GlobalAveragePool", &["sum"], "pooled", &[])
        .node("Flatten", &["pooled"], "flat", &[("axis", &[1])])
        .node("Gemm", &["flat", "fc", "fcb"], "scores", &[("transB", &[1])])
}

#[test]
fn a_convolutional_network_is_read_with_its_sizes() {
    let model = convolutional("batch").model();
    let weights = 16 * 27 + 32 + 16 * 16 * 9 + 16 + 170;
    assert_eq!(model.parameters(), weights, "running means are not trained");
    let norm = 4.0 * 16.0 * 256.0;
    let expected = 2.0 * 256.0 * (16.0 * 27.0 + 16.0 * 144.0) + norm + 2.0 * 160.0;
    assert_eq!(model.forward(None).get(), expected);
    assert_eq!(model.assumptions, Vec::<String>::new());
    // The residual holds the second layer together.
    let ops: Vec<usize> = model.layers().map(|layer| layer.ops.len()).collect();
    assert_eq!(ops.iter().sum::<usize>(), 7);
    assert!(model.layers().count() >= 3, "{ops:?}");
}

#[test]
fn sizes_are_per_sample_whatever_batch_was_exported() {
    let one = convolutional("N").model();
    let eight = convolutional("8").model();
    assert_eq!(one.forward(None), eight.forward(None));
    assert_eq!(one.blocks, eight.blocks);
    assert!(eight.assumptions[0].contains("batch of 8"));
}

/// One head-split attention with its projections and a tied output layer.
fn attention() -> Writer {
    let mut writer = Writer::default()
        .input("ids", &["batch", "tokens"])
        .weight("table", &[1000, 64])
        .integers("split", &[0, 0, 4, 16])
        .integers("join", &[0, 0, 64])
        .node("Gather", &["table", "ids"], "x", &[]);
    for part in ["q", "k", "v"] {
        let (weight, product, heads, turned) =
            (format!("w{part}"), format!("p{part}"), format!("h{part}"), format!("t{part}"));
        let order: &[i64] = if part == "k" { &[0, 2, 3, 1] } else { &[0, 2, 1, 3] };
        writer = writer
            .weight(&weight, &[64, 64])
            .node("MatMul", &["x", &weight], &product, &[])
            .node("Reshape", &[&product, "split"], &heads, &[])
            .node("Transpose", &[&heads], &turned, &[("perm", order)]);
    }
    writer
        .node("MatMul", &["tq", "tk"], "scores", &[])
        .node("Softmax", &["scores"], "weights", &[("axis", &[-1])])
        .node("MatMul", &["weights", "tv"], "mixed", &[])
        .node("Transpose", &["mixed"], "back", &[("perm", &[0, 2, 1, 3])])
        .node("Reshape", &["back", "join"], "joined", &[])
        .node("Transpose", &["table"], "head", &[("perm", &[1, 0])])
        .node("MatMul", &["joined", "head"], "logits", &[])
}

#[test]
fn attention_is_found_and_shared_weights_count_once() {
    let model = attention().model();
    assert_eq!(model.parameters(), 1000 * 64 + 3 * 64 * 64);
    let ops: Vec<_> = model.layers().flat_map(|layer| &layer.ops).collect();
    let found = ops.iter().find_map(|op| match op.kind {
        OpKind::Attention(shape) => Some((shape.heads, shape.head_dim, shape.value_dim)),
        _ => None,
    });
    assert_eq!(found, Some((4, 16, 16)));
    assert!(!ops.iter().any(|op| op.name == "scores" || op.name == "weights"));
    assert!(ops.iter().any(|op| op.tied && op.name == "logits"));
    let products = 2.0 * 128.0 * (3.0 * 64.0 * 64.0 + 64.0 * 1000.0);
    let scores = 4.0 * 128.0 * 128.0 * 64.0;
    assert_eq!(model.forward(None).get(), products + scores);
    let assumed = model.assumptions.join("\n");
    assert!(assumed.contains("\"tokens\" of the input is not given: 128"), "{assumed}");
}

#[test]
fn unknown_operations_are_named_and_counted_where_a_shape_is_known() {
    let model = convolutional("1").node("FancyThing", &["scores"], "fancy", &[]).model();
    assert!(model.assumptions[0].contains("1 operations FancyThing"), "{:?}", model.assumptions);
}

/// Weights are passed over: memory does not grow with them, and cut files are told.
#[test]
fn damaged_files_are_refused_with_the_place() {
    let file = convolutional("1").file();
    for end in [0, 1, 3, file.len() / 2, file.len() - 1] {
        let error = parse(Cursor::new(&file[..end]), "cut").unwrap_err();
        assert!(error.place().is_some(), "{end}: {error}");
    }
    for text in [&b"{\"a\": 1}"[..], b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", b"\x3a\x00"] {
        assert!(parse(Cursor::new(text), "odd").is_err());
    }
    let huge = Writer::default().weight("w", &[0]).graph;
    let shape = TensorProto { dims: vec![1 << 62, 1 << 62], data_type: 1, ..Default::default() };
    let huge = [huge, field(5, &shape.encode_to_vec())].concat();
    assert!(parse(Cursor::new(field(7, &huge)), "huge").is_err());
}

/// A byte that is wrong gives another model or an error.
#[test]
fn no_single_byte_does_harm() {
    let file = convolutional("8").file();
    for at in 0..file.len() {
        for change in [0x01, 0x80, 0xff] {
            let mut damaged = file.clone();
            damaged[at] ^= change;
            if let Ok(model) = parse(Cursor::new(damaged), "damaged") {
                assert!(model.forward(None).get().is_finite());
                assert_eq!(model.profile(None).parameters(), model.parameters());
            }
        }
    }
}
