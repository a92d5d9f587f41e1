//! From one node of a graph to one operation of a model.

use super::message::NodeProto;
use super::shape::{Shape, keeps_shape, numbers};
use super::values::{Values, Weight};
use crate::model::{Conv2d, Elementwise, Norm, Op, OpKind, Parameter, SelfAttention, Split};

/// What a node does to a sample.
pub(super) struct Step {
    /// `None` for what takes no time of its own: views, shapes, constants.
    pub(super) op: Option<Op>,
    /// Positions that the operation is applied to; `None` if it has no opinion: its width is then
    /// that of the whole sample.
    pub(super) positions: Option<u64>,
    /// It works on these scores of attention: if they are multiplied by values, all steps on them
    /// are one kernel.
    pub(super) scores: Option<usize>,
}

const NOTHING: Step = Step { op: None, positions: None, scores: None };

/// The operation of a node; shapes of its results are worked out on the way.
pub(super) fn step(node: &NodeProto, values: &mut Values) -> Step {
    if values.take_constant(node) {
        return NOTHING;
    }
    values.infer(node);
    let (kind, positions) = match kind(node, values) {
        Some(found) => found,
        None if is_view(&node.op_type) => return NOTHING,
        None => {
            let width = node.output.first().and_then(|name| values.sample_numbers(name));
            values.stranger(&node.op_type, width.is_some());
            let what = Elementwise::Scale;
            (OpKind::Elementwise { what, width: width.unwrap_or(1) }, None)
        }
    };
    let name = node.output.first().map_or(node.op_type.as_str(), String::as_str);
    let mut op = Op::new(super::values::cut(name), kind, Split::Whole);
    if let OpKind::Attention(_) | OpKind::Elementwise { .. } = op.kind
        && node.input.iter().all(|name| values.is_constant(name))
    {
        return NOTHING;
    }
    add_parameters(&mut op, node, values);
    let scores = match op.kind {
        OpKind::Attention(_) => None,
        _ => values.follow_scores(node),
    };
    Step { op: Some(op), positions, scores }
}

/// Weights among the operands, each counted where it is first used.
fn add_parameters(op: &mut Op, node: &NodeProto, values: &mut Values) {
    // Running means and variances are kept, not trained.
    let trained = if node.op_type == "BatchNormalization" { 3 } else { usize::MAX };
    for (at, input) in node.input.iter().enumerate().take(trained) {
        let Some(weight) = values.weight(input).cloned() else { continue };
        let name = if at < 2 && op.parameters.is_empty() { "weight" } else { "bias" };
        match values.count(&weight) {
            Some(elements) => op.parameters.push(Parameter { name, elements, divided: false }),
            None => op.tied = true,
        }
    }
}

/// Kind and positions of an operation that is known.
fn kind(node: &NodeProto, values: &mut Values) -> Option<(OpKind, Option<u64>)> {
    let output = node.output.first()?;
    let input = node.input.first()?;
    let whole = values.sample_numbers(output);
    let each = |what| Some((OpKind::Elementwise { what, width: whole? }, None));
    match node.op_type.as_str() {
        "Conv" => {
            let filter = values.shape(node.input.get(1)?)?.clone();
            Some((convolution(node, &filter, values.shape(output)?)?, Some(1)))
        }
        "Gemm" => {
            let filter = values.shape(node.input.get(1)?)?;
            let turned = node.int("transB", 0) != 0;
            let (inputs, outputs) = (*filter.first()?, *filter.get(1)?);
            let (inputs, outputs) = if turned { (outputs, inputs) } else { (inputs, outputs) };
            Some((OpKind::Linear { inputs, outputs }, Some(whole?.checked_div(outputs)?)))
        }
        "MatMul" => product(node, values),
        "BatchNormalization" => {
            let channels = *values.shape(input)?.get(1)?;
            let places = whole?.checked_div(channels)?;
            Some((OpKind::BatchNorm { channels, places }, Some(1)))
        }
        "LayerNormalization" => norm(Norm::Layer, *values.shape(input)?.last()?, whole?),
        "SimplifiedLayerNormalization" | "RMSNormalization" => {
            norm(Norm::Rms, *values.shape(input)?.last()?, whole?)
        }
        "InstanceNormalization" | "GroupNormalization" => norm(Norm::Layer, whole?, whole?),
        "MaxPool" | "AveragePool" | "LpPool" | "GlobalAveragePool" | "GlobalMaxPool"
        | "ReduceMean" | "ReduceSum" | "ReduceMax" => {
            let inputs = values.sample_numbers(input)?;
            Some((OpKind::Pool { inputs, outputs: whole? }, None))
        }
        "Gather" => {
            let Weight { shape, .. } = values.weight(input)?;
            let [rows, width] = shape[..] else { return None };
            let lookups = values.sample_numbers(node.input.get(1)?)?;
            Some((OpKind::Embedding { rows, width, lookups: 1 }, Some(lookups)))
        }
        "Relu" => each(Elementwise::Relu),
        "Dropout" => each(Elementwise::Dropout),
        "Add" | "Sub" => each(Elementwise::Residual),
        "Mul" | "Div" | "Pow" | "Where" | "Min" | "Max" | "PRelu" | "Softmax" | "LogSoftmax" => {
            each(Elementwise::Scale)
        }
        "Concat" | "Split" | "Slice" | "Expand" | "Pad" => each(Elementwise::Scale),
        name if keeps_shape(name) && !is_view(name) => each(Elementwise::Activation),
        _ => None,
    }
    .filter(|(_, positions)| *positions != Some(0))
}

/// What moves no data, or only that of shapes.
fn is_view(name: &str) -> bool {
    matches!(
        name,
        "Reshape"
            | "Transpose"
            | "Flatten"
            | "Squeeze"
            | "Unsqueeze"
            | "Identity"
            | "Cast"
            | "Shape"
            | "ConstantOfShape"
            | "Range"
            | "Gather"
            | "Equal"
            | "Not"
            | "And"
            | "Or"
            | "Less"
            | "Greater"
            | "Size"
            | "Concat"
            | "Slice"
            | "Expand"
            | "Constant"
    )
}

fn norm(norm: Norm, width: u64, whole: u64) -> Option<(OpKind, Option<u64>)> {
    Some((OpKind::Norm { norm, width }, Some(whole.checked_div(width)?)))
}

/// One-dimensional filters get a height of 1; the depth of three-dimensional ones goes with it.
fn convolution(node: &NodeProto, filter: &Shape, output: &Shape) -> Option<OpKind> {
    let plane = |sides: &[u64]| -> Option<(u64, u64)> {
        let (last, first) = sides.split_last()?;
        Some((numbers(first)?, *last))
    };
    let groups = u64::try_from(node.int("group", 1)).ok().filter(|groups| *groups > 0)?;
    let stride = node.ints("strides").last().copied().unwrap_or(1);
    let dilation = node.ints("dilations").last().copied().unwrap_or(1);
    Some(OpKind::Convolution(Conv2d {
        inputs: filter.get(1)?.checked_mul(groups)?,
        outputs: *filter.first()?,
        kernel: plane(filter.get(2..)?)?,
        stride: u64::try_from(stride).ok()?.max(1),
        padding: padding(node, filter.len().checked_sub(2)?),
        dilation: u64::try_from(dilation).ok()?.max(1),
        size: plane(output.get(2..)?)?,
        groups,
    }))
}

/// Zeros before the first row and column; `None` where an exporter leaves them to be worked out, or
/// they differ from those behind.
fn padding(node: &NodeProto, sides: usize) -> Option<(u64, u64)> {
    if !matches!(node.text("auto_pad"), b"" | b"NOTSET") {
        return None;
    }
    let pads = node.ints("pads");
    if pads.is_empty() {
        return Some((0, 0));
    }
    let (before, behind) = pads.split_at_checked(sides)?;
    let at = |back: usize| match sides.checked_sub(back) {
        Some(at) => u64::try_from(*before.get(at)?).ok(),
        None => Some(0),
    };
    if before == behind { Some((at(2)?, at(1)?)) } else { None }
}

/// A product with weights, or of attention. The second product of attention stands for all of it.
fn product(node: &NodeProto, values: &mut Values) -> Option<(OpKind, Option<u64>)> {
    let (a, b) = (node.input.first()?, node.input.get(1)?);
    let (left, right) = (values.shape(a)?, values.shape(b)?);
    let (inputs, outputs) = (*left.last()?, *right.last()?);
    let whole = values.sample_numbers(node.output.first()?)?;
    let linear = (OpKind::Linear { inputs, outputs }, Some(whole.checked_div(outputs)?));
    if values.weight(a).is_some() || values.weight(b).is_some() {
        return Some(linear);
    }
    let [.., heads, queries, _] = left[..] else { return Some(linear) };
    match values.join_scores(a) {
        Some(head_dim) => {
            let what = "products of queries, keys and values are counted as unmasked attention in one kernel";
            values.assume(what);
            let shape = SelfAttention {
                heads,
                kv_heads: heads,
                head_dim,
                value_dim: outputs,
                causal: false,
                window: None,
                cross: false,
            };
            Some((OpKind::Attention(shape), Some(queries)))
        }
        None => {
            values.begin_scores(node.output.first()?, inputs);
            Some(linear)
        }
    }
}
