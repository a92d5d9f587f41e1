//! From a layer to what one rank runs of it: kernels, communication, and what it keeps.

mod attention;
mod dense;
mod experts;
mod images;
mod slice;
#[cfg(test)]
mod tests;
mod work;

use foretrain_workload::model::{Elementwise, Layer, Op, OpKind, Tokens};

pub use slice::Slice;
pub(crate) use slice::times;
pub use work::{Comm, Group, Lowered, Owner, Work};

/// What one rank runs of `layer`, and keeps of it, for one micro-batch.
pub fn lower(layer: &Layer, slice: &Slice) -> Lowered {
    let mut lowered = Lowered::default();
    for op in &layer.ops {
        lower_op(op, layer, slice, &mut lowered);
    }
    let rows = slice.outer_rows(layer.tokens);
    lowered.output = slice.activation_bytes(rows * layer.output_width);
    lowered
}

/// A layer that drops anything drops attention's scores too.
fn drops(layer: &Layer) -> bool {
    let dropout = |op: &Op| {
        matches!(
            op.kind,
            OpKind::Elementwise { what: Elementwise::Dropout | Elementwise::DropoutResidual, .. }
        )
    };
    layer.ops.iter().any(dropout)
}

fn lower_op(op: &Op, layer: &Layer, slice: &Slice, out: &mut Lowered) {
    let tokens = if op.on_source { Tokens::Sequence } else { layer.tokens };
    match &op.kind {
        OpKind::Linear { inputs, outputs } => {
            dense::linear(op, *inputs, *outputs, tokens, slice, out);
        }
        OpKind::Attention(shape) => {
            attention::attention(*shape, tokens, drops(layer), slice, out);
        }
        OpKind::Norm { norm, width } => dense::norm(op, *norm, *width, tokens, slice, out),
        OpKind::Elementwise { what, width } => {
            dense::elementwise(op.split, *what, *width, tokens, slice, out);
        }
        OpKind::Embedding { rows, width, lookups } => {
            dense::embedding(op.split, (*rows, *width, *lookups), tokens, slice, out);
        }
        OpKind::CrossEntropy { vocabulary } => {
            dense::cross_entropy(op.split, *vocabulary, tokens, slice, out);
        }
        OpKind::Router { width, experts, top_k } => {
            experts::router((*width, *experts, *top_k), tokens, slice, out);
        }
        OpKind::Experts(shape) => experts::experts(*shape, tokens, slice, out),
        OpKind::Convolution(shape) => images::convolution(op, *shape, slice, out),
        OpKind::BatchNorm { channels, places } => {
            images::batch_norm(channels * places, slice, out);
        }
        OpKind::Pool { inputs, outputs } => images::pool(*inputs, *outputs, slice, out),
        OpKind::Recurrent { inputs, hidden, gates, steps, directions } => {
            let shape = images::Recurrent {
                inputs: *inputs,
                hidden: *hidden,
                gates: *gates,
                steps: *steps,
                directions: *directions,
            };
            images::recurrent(shape, slice, out);
        }
        OpKind::Interaction { vectors, width } => {
            images::interaction(*vectors, *width, slice, out);
        }
    }
}
