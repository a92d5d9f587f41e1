//! Linear layers, norms, elementwise operations, embedding and loss.

use foretrain_core::{Bytes, DType};
use foretrain_cost::kernels::{Gemm, MemoryKind, Operation};
use foretrain_graph::CollectiveKind;
use foretrain_workload::model::{Elementwise, Norm, Op, Split, Tokens};

use super::slice::{Slice, bytes, times};
use super::work::{Comm, Group, Lowered, Owner, Work, comm, kernel, memory};
use crate::software::Fusion;

/// A linear layer as one rank runs it.
struct Linear {
    rows: u64,
    inputs: u64,
    outputs: u64,
}

impl Linear {
    fn forward(&self, dtype: DType, output: DType) -> Operation {
        gemm((self.rows, self.outputs, self.inputs), dtype, output)
    }
    fn inputs_gradient(&self, dtype: DType, output: DType) -> Operation {
        gemm((self.rows, self.inputs, self.outputs), dtype, output)
    }
    fn weights_gradient(&self, dtype: DType, output: DType) -> Operation {
        gemm((self.inputs, self.outputs, self.rows), dtype, output)
    }
}

pub(super) const fn gemm((m, n, k): (u64, u64, u64), dtype: DType, output: DType) -> Operation {
    Operation::Gemm(Gemm { batch: 1, m, n, k, dtype, output })
}

pub(super) fn linear(
    op: &Op,
    inputs: u64,
    outputs: u64,
    tokens: Tokens,
    slice: &Slice,
    out: &mut Lowered,
) {
    let (rows, ranks) = slice.rows_and_ranks(op.split, tokens);
    let owner = if op.split == Split::Vocabulary { Owner::Vocabulary } else { Owner::Gemm };
    let shape = match op.split {
        Split::Rows => Linear { rows, inputs: inputs.div_ceil(ranks), outputs },
        _ => Linear { rows, inputs, outputs: outputs.div_ceil(ranks) },
    };
    // Heads stay in the activations' type: 8-bit recipes leave them out.
    let precision = slice.precision;
    let casts = precision.casts() && op.split != Split::Vocabulary;
    let dtype = if casts { precision.compute } else { precision.unquantised() };
    let activations = precision.activations;
    let divided = slice.tensor > 1;
    let wide = matches!(op.split, Split::Columns | Split::Vocabulary) && divided;
    let narrow = op.split == Split::Rows && divided;

    // Forward.
    if casts {
        out.forward.push(cast(slice, shape.rows * shape.inputs));
    }
    let product = shape.forward(dtype, activations);
    let whole_inputs = slice.activation_bytes(rows * inputs);
    let whole_outputs = slice.activation_bytes(rows * outputs);
    let tensor = |kind, bytes| Comm { kind, bytes, group: Group::Tensor, copies: 1 };
    let gathered = tensor(CollectiveKind::AllGather, whole_inputs);
    if wide && slice.sequence_parallel {
        out.need(whole_inputs);
        beside_or_before(slice, gathered, product, owner, &mut out.forward);
    } else if narrow {
        let kind = reduction(slice);
        beside_or_after(slice, tensor(kind, whole_outputs), product, owner, &mut out.forward);
    } else {
        out.forward.push(kernel(product, owner));
    }
    adapters(op, &shape, slice, out);

    // Backward.
    let mut before = Vec::new();
    if narrow && slice.sequence_parallel {
        out.need(whole_outputs);
        before.push(Work::Comm(tensor(CollectiveKind::AllGather, whole_outputs)));
    }
    if casts {
        before.push(cast(slice, shape.rows * shape.outputs));
    }
    let to_inputs = shape.inputs_gradient(dtype, activations);
    let trains = slice.lora.is_none();
    let to_weights = trains.then(|| shape.weights_gradient(dtype, precision.gradients));
    let reduced = wide.then(|| tensor(reduction(slice), whole_inputs));
    // Inputs are kept divided, and gathered again for the gradient of the weights.
    if wide && slice.sequence_parallel && trains {
        if slice.overlap_tensor_gradients {
            before.push(Work::Beside {
                comm: gathered,
                kernels: vec![(to_inputs, owner)],
                pieces: 1,
            });
        } else {
            before.push(Work::Comm(gathered));
            before.push(kernel(to_inputs, owner));
        }
    } else {
        before.push(kernel(to_inputs, owner));
    }
    let mut together = before.clone();
    match (reduced, to_weights) {
        (Some(comm), Some(weights)) if slice.overlap_tensor_gradients => {
            together.push(Work::Beside { comm, kernels: vec![(weights, owner)], pieces: 1 });
        }
        (reduced, weights) => {
            together.extend(reduced.map(Work::Comm));
            together.extend(weights.map(|weights| kernel(weights, owner)));
        }
    }
    before.extend(reduced.map(Work::Comm));
    let has_bias = op.parameters.iter().any(|parameter| parameter.name.ends_with("bias"));
    let bias = (has_bias && trains).then(|| {
        let gradient = slice.activation_bytes(shape.rows * shape.outputs);
        let sums = bytes(precision.gradients, shape.outputs);
        memory(MemoryKind::Reduction, (gradient, sums), Owner::Elementwise, 1)
    });
    together.extend(bias.clone());
    out.backward.splice(0..0, together);
    out.inputs.splice(0..0, before);
    if trains {
        // A weight's gradient is formed before it joins what is accumulated.
        out.need(bytes(precision.gradients, shape.inputs * shape.outputs));
    }
    let weights = to_weights.map(|weights| kernel(weights, owner));
    out.weights.splice(0..0, weights.into_iter().chain(bias));

    if op.keeps_input && (trains || adapted(op, slice)) {
        let kept_rows = if wide { slice.outer_rows(tokens) } else { rows };
        let dtype = if casts { precision.compute } else { activations };
        out.keep(bytes(dtype, kept_rows * shape.inputs));
    }
}

const fn reduction(slice: &Slice) -> CollectiveKind {
    if slice.sequence_parallel { CollectiveKind::ReduceScatter } else { CollectiveKind::AllReduce }
}

fn beside_or_before(
    slice: &Slice,
    comm: Comm,
    product: Operation,
    owner: Owner,
    list: &mut Vec<Work>,
) {
    if slice.overlap_tensor {
        let pieces = u32::try_from(slice.tensor).unwrap_or(u32::MAX);
        list.push(Work::Beside { comm, kernels: vec![(product, owner)], pieces });
    } else {
        list.extend([Work::Comm(comm), kernel(product, owner)]);
    }
}

fn beside_or_after(
    slice: &Slice,
    comm: Comm,
    product: Operation,
    owner: Owner,
    list: &mut Vec<Work>,
) {
    if slice.overlap_tensor {
        beside_or_before(slice, comm, product, owner, list);
    } else {
        list.extend([kernel(product, owner), Work::Comm(comm)]);
    }
}

/// Casting numbers to the products' type, in both orders, since the two passes read along
/// different dimensions.
pub(super) fn cast(slice: &Slice, numbers: u64) -> Work {
    let written = bytes(slice.precision.compute, 2 * numbers);
    let traffic = (slice.activation_bytes(numbers), written);
    memory(MemoryKind::Copy, traffic, Owner::Elementwise, 0)
}

fn adapted(op: &Op, slice: &Slice) -> bool {
    slice.lora.is_some_and(|lora| lora.adapts(op))
}

/// Low-rank adapters beside the frozen product: down, up, and the sum.
fn adapters(op: &Op, shape: &Linear, slice: &Slice, out: &mut Lowered) {
    let Some(lora) = slice.lora.filter(|_| adapted(op, slice)) else {
        return;
    };
    let dtype = slice.precision.unquantised();
    let activations = slice.precision.activations;
    let down = Linear { rows: shape.rows, inputs: shape.inputs, outputs: lora.rank };
    let up = Linear { rows: shape.rows, inputs: lora.rank, outputs: shape.outputs };
    let result = shape.rows * shape.outputs;
    let sum = (slice.activation_bytes(2 * result), slice.activation_bytes(result));
    // Plain modules, which cost the host a fraction of what the layer beside them does.
    let beside = |operation| Work::Kernel { operation, owner: Owner::Gemm, launches: 0, times: 1 };
    out.forward.extend([
        beside(down.forward(dtype, activations)),
        beside(up.forward(dtype, activations)),
        memory(MemoryKind::Elementwise, sum, Owner::Elementwise, 1),
    ]);
    let numbers = shape.rows * shape.inputs;
    let sum = (slice.activation_bytes(2 * numbers), slice.activation_bytes(numbers));
    let weights = [
        beside(up.weights_gradient(dtype, slice.precision.gradients)),
        beside(down.weights_gradient(dtype, slice.precision.gradients)),
    ];
    out.before([
        beside(up.inputs_gradient(dtype, activations)),
        beside(down.inputs_gradient(dtype, activations)),
        memory(MemoryKind::Elementwise, sum, Owner::Elementwise, 1),
    ]);
    out.backward.splice(0..0, weights.iter().cloned());
    out.weights.splice(0..0, weights);
    out.keep(slice.activation_bytes(shape.rows * lora.rank));
}

pub(super) fn norm(
    op: &Op,
    norm: Norm,
    width: u64,
    tokens: Tokens,
    slice: &Slice,
    out: &mut Lowered,
) {
    let (rows, ranks) = slice.rows_and_ranks(op.split, tokens);
    let numbers = rows * width.div_ceil(ranks);
    let size = slice.activation_bytes(numbers);
    // An RMS norm written out in an interpreter: cast, square, mean, scale, cast, weight.
    let (passes, launches) = match (norm, slice.fusion) {
        (Norm::Rms, Fusion::Eager) => (4, 6),
        _ => (1, 1),
    };
    let traffic = (times(size, passes), times(size, passes));
    out.forward.push(memory(MemoryKind::Norm, traffic, Owner::Elementwise, launches));
    let traffic = (times(size, 2 * passes), times(size, passes));
    out.before([memory(MemoryKind::Norm, traffic, Owner::Elementwise, launches + 1)]);
    if op.keeps_input {
        out.keep(size);
    }
}

/// Numbers read and written per number of the result, and launches.
struct Traffic {
    read: u64,
    written: u64,
    launches: u32,
}

const fn traffic(read: u64, written: u64, launches: u32) -> Traffic {
    Traffic { read, written, launches }
}

/// Forward and backward.
const fn passes(what: Elementwise, fusion: Fusion) -> (Traffic, Traffic) {
    let eager = matches!(fusion, Fusion::Eager);
    match what {
        Elementwise::Activation => (traffic(1, 1, 1), traffic(2, 1, 1)),
        Elementwise::Relu | Elementwise::Scale => (traffic(1, 1, 1), traffic(1, 1, 1)),
        Elementwise::Gated if eager => (traffic(3, 2, 2), traffic(5, 3, 4)),
        Elementwise::Gated => (traffic(2, 1, 1), traffic(3, 2, 1)),
        Elementwise::Dropout => (traffic(1, 1, 1), traffic(1, 1, 1)),
        Elementwise::Residual if matches!(fusion, Fusion::Compiled) => {
            // Merged with the norm that follows.
            (traffic(1, 1, 0), traffic(1, 0, 0))
        }
        Elementwise::Residual => (traffic(2, 1, 1), traffic(2, 1, 1)),
        Elementwise::DropoutResidual if eager => (traffic(3, 2, 2), traffic(3, 2, 2)),
        Elementwise::DropoutResidual => (traffic(2, 1, 1), traffic(3, 2, 2)),
        Elementwise::Rotary if eager => (traffic(4, 3, 5), traffic(4, 3, 5)),
        Elementwise::Rotary => (traffic(1, 1, 1), traffic(1, 1, 1)),
    }
}

pub(super) fn elementwise(
    split: Split,
    what: Elementwise,
    width: u64,
    tokens: Tokens,
    slice: &Slice,
    out: &mut Lowered,
) {
    let (rows, ranks) = slice.rows_and_ranks(split, tokens);
    let numbers = rows * width.div_ceil(ranks);
    let size = slice.activation_bytes(numbers);
    let work = |traffic: &Traffic| {
        let moved = (times(size, traffic.read), times(size, traffic.written));
        memory(MemoryKind::Elementwise, moved, Owner::Elementwise, traffic.launches)
    };
    let (forward, backward) = passes(what, slice.fusion);
    out.forward.push(work(&forward));
    out.before([work(&backward)]);
    match what {
        Elementwise::Activation => out.keep(size),
        Elementwise::Gated => out.keep(times(size, 2)),
        // A byte per number: what was dropped.
        Elementwise::Dropout | Elementwise::DropoutResidual => out.keep(Bytes::new(numbers)),
        Elementwise::Relu | Elementwise::Residual | Elementwise::Rotary | Elementwise::Scale => {}
    }
}

pub(super) fn embedding(
    split: Split,
    (table, width, lookups): (u64, u64, u64),
    tokens: Tokens,
    slice: &Slice,
    out: &mut Lowered,
) {
    let rows = slice.rows(tokens);
    let numbers = rows * lookups * width.min(table.saturating_mul(width));
    let size = slice.activation_bytes(numbers);
    out.forward.push(memory(MemoryKind::Gather, (size, size), Owner::Vocabulary, 2));
    if split == Split::Vocabulary && slice.tensor > 1 {
        out.forward.push(comm(
            reduction(slice),
            slice.activation_bytes(rows * width),
            Group::Tensor,
        ));
    }
    let mut before = Vec::new();
    if split == Split::Vocabulary && slice.sequence_parallel {
        before.push(comm(
            CollectiveKind::AllGather,
            slice.activation_bytes(rows * width),
            Group::Tensor,
        ));
    }
    if slice.lora.is_none() {
        let gradients = bytes(slice.precision.gradients, numbers);
        before.push(memory(
            MemoryKind::Gather,
            (size + gradients, gradients),
            Owner::Vocabulary,
            2,
        ));
    }
    out.before(before);
    out.keep(Bytes::new(8 * rows * lookups));
}

/// Softmax and cross-entropy. Written out, the logits are cast to f32, and maximum, difference,
/// exponential and sum each pass over them; merged they are read twice.
pub(super) fn cross_entropy(
    split: Split,
    vocabulary: u64,
    tokens: Tokens,
    slice: &Slice,
    out: &mut Lowered,
) {
    let (rows, ranks) = slice.rows_and_ranks(split, tokens);
    let numbers = rows * vocabulary.div_ceil(ranks);
    let (logits, wide) = (slice.activation_bytes(numbers), bytes(DType::F32, numbers));
    let owner = Owner::Vocabulary;
    if slice.fused_loss {
        out.forward.push(memory(MemoryKind::Softmax, (times(logits, 2), Bytes::ZERO), owner, 2));
        out.before([memory(MemoryKind::Softmax, (logits, logits), owner, 1)]);
        // Merged kernels still cast to f32, where no compiler sees to it that they need not.
        out.keep(if slice.fusion == Fusion::Compiled { logits } else { wide });
        out.need(logits);
    } else {
        let passes = (logits + times(wide, 5), times(wide, 4));
        out.forward.push(memory(MemoryKind::Softmax, passes, owner, 8));
        let passes = (times(wide, 3), times(wide, 2) + logits);
        out.before([memory(MemoryKind::Softmax, passes, owner, 4)]);
        // The f32 copy becomes the softmax in place; the logits live until it is made.
        out.keep(wide);
        out.need(logits);
    }
    if split == Split::Vocabulary && slice.tensor > 1 {
        let sums = bytes(DType::F32, rows);
        let reduce = comm(CollectiveKind::AllReduce, sums, Group::Tensor);
        out.forward.extend([reduce.clone(), reduce.clone(), reduce]);
    }
}
