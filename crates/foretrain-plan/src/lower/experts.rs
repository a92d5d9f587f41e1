//! Routed experts: the choice, the way there, the products, the way back.

use foretrain_core::{Bytes, DType};
use foretrain_cost::kernels::{Gemm, MemoryKind, Operation};
use foretrain_graph::CollectiveKind;
use foretrain_workload::model::{Experts, Tokens};

use super::dense::{cast, gemm};
use super::slice::Slice;
use super::work::{Comm, Group, Lowered, Owner, Work, kernel, memory};

/// Scores in f32, softmax, the best few, and how many tokens go where.
pub(super) fn router(
    (width, experts, top_k): (u64, u64, u64),
    tokens: Tokens,
    slice: &Slice,
    out: &mut Lowered,
) {
    let rows = slice.outer_rows(tokens);
    let scores = Bytes::new(4 * rows * experts);
    let chosen = Bytes::new(4 * rows * (experts + top_k));
    let dtype = slice.precision.unquantised();
    out.forward.push(kernel(gemm((rows, experts, width), dtype, DType::F32), Owner::Expert));
    out.forward.push(memory(MemoryKind::Softmax, (scores + scores, chosen), Owner::Expert, 8));
    let weights =
        kernel(gemm((width, experts, rows), dtype, slice.precision.gradients), Owner::Expert);
    out.before([
        memory(MemoryKind::Softmax, (scores + scores, scores), Owner::Expert, 6),
        kernel(gemm((rows, width, experts), dtype, slice.precision.activations), Owner::Expert),
    ]);
    if slice.lora.is_none() {
        out.backward.insert(0, weights.clone());
        out.weights.insert(0, weights);
    }
    out.keep(scores + scores);
}

pub(super) fn experts(shape: Experts, tokens: Tokens, slice: &Slice, out: &mut Lowered) {
    // With experts whole on a rank, tensor-parallel ranks bring different tokens.
    let spread = slice.expert_tensor == 1 && slice.tensor > 1;
    let rows =
        if spread { slice.rows(tokens).div_ceil(slice.tensor) } else { slice.outer_rows(tokens) };
    let routed = rows * shape.top_k;
    let local = shape.experts.div_ceil(slice.expert).max(1);
    // The busiest rank decides. Ranks that divide an expert bring their tokens together.
    let gathered = if slice.sequence_parallel { slice.expert_tensor } else { 1 };
    let busiest = (routed * gathered * u64::from(slice.imbalance)).div_ceil(1000);
    let each = busiest.div_ceil(local).max(1);
    let hidden = shape.hidden.div_ceil(slice.expert_tensor);
    let sides = if shape.gated { 2 } else { 1 };
    let precision = slice.precision;
    let dtype = precision.compute;
    let product = |m, n, k, output| {
        let gemm = Gemm { batch: local, m, n, k, dtype, output };
        kernel(Operation::Gemm(gemm), Owner::Expert)
    };
    let size = |numbers| slice.activation_bytes(numbers);
    let moved =
        |numbers| memory(MemoryKind::Copy, (size(numbers), size(numbers)), Owner::Expert, 1);
    let activations = precision.activations;
    let busiest_width = busiest * shape.width;

    let mut arrive = vec![moved(routed * shape.width)];
    let mut leave = Vec::new();
    if slice.expert > 1 {
        let busiest_sent = (routed * u64::from(slice.imbalance)).div_ceil(1000);
        let copies = if slice.expert_dedup {
            u32::try_from(shape.top_k).unwrap_or(u32::MAX).max(1)
        } else {
            1
        };
        let exchange =
            |bytes| Comm { kind: CollectiveKind::AllToAll, bytes, group: Group::Expert, copies };
        let dispatch = Work::Comm(exchange(size(busiest_sent * shape.width)));
        arrive.push(dispatch.clone());
        leave.push(dispatch);
    }
    if slice.expert_tensor > 1 && slice.sequence_parallel {
        let bytes = size(busiest_width);
        let group = Group::ExpertTensor;
        arrive.push(Work::Comm(Comm { kind: CollectiveKind::AllGather, bytes, group, copies: 1 }));
        leave.insert(
            0,
            Work::Comm(Comm { kind: CollectiveKind::ReduceScatter, bytes, group, copies: 1 }),
        );
    } else if slice.expert_tensor > 1 {
        let bytes = size(busiest_width);
        let group = Group::ExpertTensor;
        leave.insert(
            0,
            Work::Comm(Comm { kind: CollectiveKind::AllReduce, bytes, group, copies: 1 }),
        );
    }
    if local > 1 {
        arrive.push(moved(busiest_width));
        leave.insert(0, moved(busiest_width));
    }
    leave.push(moved(routed * shape.width));
    let inner = busiest * hidden;
    let activation =
        memory(MemoryKind::Elementwise, (size(sides * inner), size(inner)), Owner::Expert, 1);
    let up = product(each, sides * hidden, shape.width, activations);
    let down = product(each, shape.width, hidden, activations);
    let casts = |numbers| precision.casts().then(|| cast(slice, numbers));
    out.forward.extend(arrive.iter().cloned());
    out.forward.extend(casts(busiest_width));
    out.forward.extend([up, activation]);
    out.forward.extend(casts(inner));
    out.forward.push(down);
    out.forward.extend(leave.iter().cloned());

    // Backward: the way back first, then the products in reverse, then the way there.
    let activation = memory(
        MemoryKind::Elementwise,
        (size((sides + 1) * inner), size(sides * inner)),
        Owner::Expert,
        1,
    );
    let mut to_inputs = Vec::from_iter(casts(busiest_width));
    to_inputs.extend([product(each, hidden, shape.width, activations), activation]);
    to_inputs.extend(casts(sides * inner));
    to_inputs.push(product(each, shape.width, sides * hidden, activations));
    let to_weights = [
        product(hidden, shape.width, each, precision.gradients),
        product(shape.width, sides * hidden, each, precision.gradients),
    ];
    let trained = slice.lora.is_none();
    let inputs: Vec<Work> = arrive.iter().cloned().chain(to_inputs).chain(leave).collect();
    let weights: Vec<Work> = to_weights.into_iter().filter(|_| trained).collect();
    out.backward.splice(0..0, inputs.iter().chain(&weights).cloned());
    out.inputs.splice(0..0, inputs);
    out.weights.splice(0..0, weights);
    out.keep(size(busiest_width + (sides + 1) * inner + routed * shape.width));
    out.need(size(2 * busiest_width));
}
