//! Convolutional, recurrent and recommendation operations; positions are samples.

use foretrain_cost::kernels::{Convolution, Gemm, MemoryKind, Operation, Pass};
use foretrain_workload::model::{Conv2d, Op};

use super::dense::gemm;
use super::slice::Slice;
use super::work::{Lowered, Owner, Work, kernel, memory};

pub(super) fn convolution(op: &Op, shape: Conv2d, slice: &Slice, out: &mut Lowered) {
    let of = |pass| {
        let convolution = Convolution {
            batch: slice.samples,
            inputs: shape.inputs,
            outputs: shape.outputs,
            kernel: shape.kernel,
            stride: shape.stride,
            size: shape.size,
            groups: shape.groups,
            dtype: slice.precision.unquantised(),
            pass,
        };
        kernel(Operation::Convolution(convolution), Owner::Convolution)
    };
    out.forward.push(of(Pass::Forward));
    out.before([of(Pass::Backward)]);
    out.backward.insert(0, of(Pass::WeightGradient));
    out.weights.insert(0, of(Pass::WeightGradient));
    if op.keeps_input {
        let places = shape.size.0 * shape.size.1 * shape.stride * shape.stride;
        out.keep(slice.activation_bytes(slice.samples * shape.inputs * places));
    }
}

/// Statistics, then the result; backward two sums, then the result.
pub(super) fn batch_norm(numbers: u64, slice: &Slice, out: &mut Lowered) {
    let size = slice.activation_bytes(slice.samples * numbers);
    let twice = size + size;
    out.forward.push(memory(MemoryKind::Norm, (twice, size), Owner::Elementwise, 1));
    out.before([memory(MemoryKind::Norm, (twice + twice, size), Owner::Elementwise, 1)]);
    out.keep(size);
}

pub(super) fn pool(inputs: u64, outputs: u64, slice: &Slice, out: &mut Lowered) {
    let before = slice.activation_bytes(slice.samples * inputs);
    let after = slice.activation_bytes(slice.samples * outputs);
    out.forward.push(memory(MemoryKind::Pool, (before, after), Owner::Elementwise, 1));
    out.before([memory(MemoryKind::Pool, (after, before), Owner::Elementwise, 1)]);
    out.keep(after);
}

/// A recurrent layer.
pub(super) struct Recurrent {
    pub(super) inputs: u64,
    pub(super) hidden: u64,
    pub(super) gates: u64,
    pub(super) steps: u64,
    pub(super) directions: u64,
}

/// The products with the input run at once, those with the state one after the other.
pub(super) fn recurrent(shape: Recurrent, slice: &Slice, out: &mut Lowered) {
    let Recurrent { inputs, hidden, gates, steps, directions } = shape;
    let rows = slice.samples * steps;
    let dtype = slice.precision.unquantised();
    let (activations, gradients) = (slice.precision.activations, slice.precision.gradients);
    let width = gates * hidden;
    let at_once = |m, n, k, output| {
        let gemm = Gemm { batch: directions, m, n, k, dtype, output };
        kernel(Operation::Gemm(gemm), Owner::Convolution)
    };
    let step = |m, n, k| Work::Kernel {
        operation: gemm((m, n, k), dtype, activations),
        owner: Owner::Convolution,
        launches: 2,
        times: u32::try_from(steps * directions).unwrap_or(u32::MAX),
    };
    out.forward
        .extend([at_once(rows, width, inputs, activations), step(slice.samples, width, hidden)]);
    let weights = [at_once(inputs + hidden, width, rows, gradients)];
    out.before([step(slice.samples, hidden, width), at_once(rows, inputs, width, activations)]);
    out.backward.splice(0..0, weights.iter().cloned());
    out.weights.splice(0..0, weights);
    out.keep(slice.activation_bytes(rows * (inputs + directions * (width + hidden))));
}

pub(super) fn interaction(vectors: u64, width: u64, slice: &Slice, out: &mut Lowered) {
    let dtype = slice.precision.unquantised();
    let output = slice.precision.activations;
    let product = |m, n, k| {
        let gemm = Gemm { batch: slice.samples, m, n, k, dtype, output };
        kernel(Operation::Gemm(gemm), Owner::Gemm)
    };
    let size = slice.activation_bytes(slice.samples * vectors * width);
    out.forward.push(product(vectors, vectors, width));
    out.forward.push(memory(MemoryKind::Copy, (size, size), Owner::Elementwise, 2));
    out.before([
        memory(MemoryKind::Copy, (size, size), Owner::Elementwise, 2),
        product(vectors, width, vectors),
    ]);
    out.keep(size);
}
