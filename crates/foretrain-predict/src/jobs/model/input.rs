//! What a step copies to the device, as a model's description tells it.

use foretrain_core::Bytes;
use foretrain_plan::Training;
use foretrain_workload::model::{Model, Op, OpKind, Sample};

use super::Tables;
use crate::jobs::figure::{Basis, Figure};

/// Token ids and look-ups are 8-byte integers, other data 4-byte floats, as PyTorch's loaders give
/// them. Labels count where they are as long as the sample.
pub(super) fn input(model: &Model, training: &Training) -> Figure<Bytes> {
    const ID: u64 = 8;
    let samples = training.global_batch;
    match model.sample {
        Sample::Tokens { .. } => {
            let bytes = Bytes::new(samples * training.sequence * 2 * ID);
            Figure::new(bytes, Basis::Assumed, "token ids and labels of 8 B each")
        }
        Sample::Pair { .. } => {
            let bytes = Bytes::new(samples * (training.sequence + 2 * training.target) * ID);
            Figure::new(bytes, Basis::Assumed, "ids of source and target, and labels, of 8 B each")
        }
        Sample::Fixed => {
            let first = model.blocks.first().and_then(|block| {
                let op = block
                    .layer
                    .ops
                    .iter()
                    .find(|op| !matches!(op.kind, OpKind::Embedding { .. }))?;
                Some(model.sample.positions(block.layer.tokens, None) * numbers_in(op)?)
            });
            let ids = Tables::of(model, training).lookups;
            match (first, ids) {
                (None, 0) => Figure::missing("the description does not tell how large a sample is"),
                (first, ids) => {
                    let bytes = samples * first.unwrap_or(0) * 4 + ids * ID;
                    let how = "what the first operation reads, in f32; look-ups of 8 B each";
                    Figure::new(Bytes::new(bytes), Basis::Model, how)
                }
            }
        }
    }
}

/// Numbers that an operation reads per position.
fn numbers_in(op: &Op) -> Option<u64> {
    match &op.kind {
        OpKind::Convolution(shape) => {
            let along = |size: u64, kernel: u64, padding: Option<u64>| match padding {
                // What the filter passes over, zeros around left out.
                Some(padding) => ((size - 1) * shape.stride + shape.dilation * (kernel - 1) + 1)
                    .saturating_sub(2 * padding),
                None => size * shape.stride,
            };
            let rows = along(shape.size.0, shape.kernel.0, shape.padding.map(|p| p.0));
            let columns = along(shape.size.1, shape.kernel.1, shape.padding.map(|p| p.1));
            Some(shape.inputs * rows * columns)
        }
        OpKind::Linear { inputs, .. } => Some(*inputs),
        OpKind::Recurrent { inputs, steps, .. } => Some(inputs * steps),
        OpKind::Norm { width, .. } | OpKind::Elementwise { width, .. } => Some(*width),
        _ => None,
    }
}
