//! The network as a list of modules, each with its parameters, operators and kernels.

use crate::spec::Model;

const FLOAT: u64 = 4;

/// A parameter tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parameter {
    pub(crate) elements: u64,
}

/// What a kernel does, before it has a duration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    pub(crate) class: KernelClass,
    pub(crate) flops: u64,
    pub(crate) bytes: u64,
}

/// Kernel families; they decide the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KernelClass {
    Gemm,
    Attention,
    AttentionGrad,
    Norm,
    NormGrad,
    Elementwise,
    Reduce,
    Index,
    MultiTensor,
}

impl KernelClass {
    /// A name of the kind the profiler writes, by vendor.
    pub(crate) const fn name(self, hip: bool) -> &'static str {
        match self {
            Self::Gemm if hip => "Cijk_Ailk_Bljk_SB_MT128x128x16_MI32x32x1_SN_1LDSB0_WG32_8_1",
            Self::Gemm => "ampere_sgemm_128x128_tn",
            Self::Attention => {
                "fmha_cutlassF_f32_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<float, cutlass::arch::Sm80, true, 64, 64, 64, true, true>::Params)"
            }
            Self::AttentionGrad => {
                "fmha_cutlassB_f32_aligned_64x64_k64_sm80(PyTorchMemEffAttention::AttentionBackwardKernel<cutlass::arch::Sm80, float, true, false, false, 64, 64, 64, false>::Params)"
            }
            Self::Norm => {
                "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int, float, float const*, float const*, float const*, float*, float*, float*)"
            }
            Self::NormGrad => {
                "void at::native::(anonymous namespace)::layer_norm_grad_input_kernel_vectorized<float, float>(float const*, float const*, float const*, float const*, float const*, float*, int)"
            }
            Self::Elementwise => {
                "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3> >(int, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3>)"
            }
            Self::Reduce => {
                "void at::native::reduce_kernel<128, 4, at::native::ReduceOp<float, at::native::func_wrapper_t<float, at::native::sum_functor<float, float, float> >, unsigned int, float, 4> >(at::native::ReduceOp<float>)"
            }
            Self::Index => {
                "void at::native::(anonymous namespace)::indexSelectLargeIndex<float, long, unsigned int, 2, 2, -2, true>(at::cuda::detail::TensorInfo<float, unsigned int>, long)"
            }
            Self::MultiTensor => {
                "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::TensorListMetadata<2>, at::native::(anonymous namespace)::BinaryOpListAlphaFunctor<float, 2, 2, 0>, std::plus<float>, float, float>(at::native::(anonymous namespace)::TensorListMetadata<2>)"
            }
        }
    }
}

/// One operator of a pass: its name and the kernels it launches.
#[derive(Clone, Debug)]
pub(crate) struct Operator {
    pub(crate) name: &'static str,
    pub(crate) dims: Vec<Vec<u64>>,
    pub(crate) work: Work,
}

/// A module: one differentiable operation.
#[derive(Clone, Debug)]
pub(crate) struct Module {
    /// As a Python frame would call it.
    pub(crate) name: String,
    /// The operator a user calls, enclosing the differentiable one.
    pub(crate) outer: Option<&'static str>,
    pub(crate) forward: Operator,
    /// The autograd node.
    pub(crate) node: &'static str,
    pub(crate) backward: Vec<Operator>,
    /// In the order in which their gradients are accumulated.
    pub(crate) parameters: Vec<Parameter>,
}

/// The modules in forward order, the loss last.
pub(crate) fn modules(model: &Model, rows: u64) -> Vec<Module> {
    let mut list = Vec::new();
    match model {
        Model::Mlp { widths } => {
            for (index, pair) in widths.windows(2).enumerate() {
                if index > 0 {
                    list.push(activation("ReLU", "aten::relu", "ReluBackward0", rows, pair[0]));
                }
                list.push(linear(rows, pair[0], pair[1], true));
            }
            list.push(loss(rows, widths.last().copied().unwrap_or(1)));
        }
        Model::Transformer { layers, hidden, sequence, vocabulary } => {
            let (hidden, vocabulary) = (*hidden, *vocabulary);
            if vocabulary > 0 {
                list.push(embedding(rows, hidden, vocabulary));
            }
            for _ in 0..*layers {
                push_block(&mut list, rows, hidden, *sequence);
            }
            if vocabulary > 0 {
                list.push(linear(rows, hidden, vocabulary, false));
            }
            list.push(loss(rows, if vocabulary > 0 { vocabulary } else { hidden }));
        }
    }
    for (index, module) in list.iter_mut().enumerate() {
        module.name = format!("nn.Module: {}_{index}", module.name);
    }
    list
}

fn push_block(list: &mut Vec<Module>, rows: u64, hidden: u64, sequence: u64) {
    list.push(norm(rows, hidden));
    list.push(linear(rows, hidden, 3 * hidden, true));
    list.push(attention(rows, hidden, sequence));
    list.push(linear(rows, hidden, hidden, true));
    list.push(add(rows, hidden));
    list.push(norm(rows, hidden));
    list.push(linear(rows, hidden, 4 * hidden, true));
    list.push(activation("GELU", "aten::gelu", "GeluBackward0", rows, 4 * hidden));
    list.push(linear(rows, 4 * hidden, hidden, true));
    list.push(add(rows, hidden));
}

fn work(class: KernelClass, flops: u64, floats: u64) -> Work {
    Work { class, flops, bytes: FLOAT * floats }
}

fn gemm(m: u64, n: u64, k: u64) -> Work {
    work(KernelClass::Gemm, 2 * m * n * k, m * k + k * n + m * n)
}

fn operator(name: &'static str, dims: Vec<Vec<u64>>, work: Work) -> Operator {
    Operator { name, dims, work }
}

fn linear(rows: u64, inputs: u64, outputs: u64, bias: bool) -> Module {
    let weight = Parameter { elements: inputs * outputs };
    let matrices = vec![vec![rows, inputs], vec![inputs, outputs]];
    let mut backward = vec![
        operator(
            "aten::mm",
            vec![vec![rows, outputs], vec![outputs, inputs]],
            gemm(rows, inputs, outputs),
        ),
        operator(
            "aten::mm",
            vec![vec![outputs, rows], vec![rows, inputs]],
            gemm(outputs, inputs, rows),
        ),
    ];
    if !bias {
        let forward = operator("aten::mm", matrices, gemm(rows, outputs, inputs));
        return Module {
            name: "Linear".into(),
            outer: Some("aten::linear"),
            forward,
            node: "MmBackward0",
            backward,
            parameters: vec![weight],
        };
    }
    let total = work(KernelClass::Reduce, rows * outputs, rows * outputs);
    backward.push(operator("aten::sum", vec![vec![rows, outputs]], total));
    let mut dims = vec![vec![outputs]];
    dims.extend(matrices);
    Module {
        name: "Linear".into(),
        outer: Some("aten::linear"),
        forward: operator("aten::addmm", dims, gemm(rows, outputs, inputs)),
        node: "AddmmBackward0",
        backward,
        parameters: vec![Parameter { elements: outputs }, weight],
    }
}

fn norm(rows: u64, width: u64) -> Module {
    let size = rows * width;
    let forward = work(KernelClass::Norm, 8 * size, 2 * size);
    let backward = work(KernelClass::NormGrad, 12 * size, 3 * size);
    let dims = vec![vec![rows, width], vec![], vec![width], vec![width]];
    Module {
        name: "LayerNorm".into(),
        outer: Some("aten::layer_norm"),
        forward: operator("aten::native_layer_norm", dims.clone(), forward),
        node: "NativeLayerNormBackward0",
        backward: vec![operator("aten::native_layer_norm_backward", dims, backward)],
        parameters: vec![Parameter { elements: width }, Parameter { elements: width }],
    }
}

fn attention(rows: u64, width: u64, sequence: u64) -> Module {
    let flops = 4 * rows * sequence * width;
    let dims = vec![vec![rows, width]; 3];
    let forward = work(KernelClass::Attention, flops, 4 * rows * width);
    let backward = work(KernelClass::AttentionGrad, 5 * flops / 2, 8 * rows * width);
    Module {
        name: "Attention".into(),
        outer: Some("aten::scaled_dot_product_attention"),
        forward: operator("aten::_scaled_dot_product_efficient_attention", dims.clone(), forward),
        node: "ScaledDotProductEfficientAttentionBackward0",
        backward: vec![operator(
            "aten::_scaled_dot_product_efficient_attention_backward",
            dims,
            backward,
        )],
        parameters: Vec::new(),
    }
}

fn activation(
    name: &str,
    forward: &'static str,
    node: &'static str,
    rows: u64,
    width: u64,
) -> Module {
    let size = rows * width;
    let dims = vec![vec![rows, width]];
    let gradient =
        if node == "ReluBackward0" { "aten::threshold_backward" } else { "aten::gelu_backward" };
    Module {
        name: name.into(),
        outer: None,
        forward: operator(forward, dims.clone(), work(KernelClass::Elementwise, size, 2 * size)),
        node,
        backward: vec![operator(
            gradient,
            vec![vec![rows, width]; 2],
            work(KernelClass::Elementwise, 2 * size, 3 * size),
        )],
        parameters: Vec::new(),
    }
}

fn add(rows: u64, width: u64) -> Module {
    let size = rows * width;
    let dims = vec![vec![rows, width]; 2];
    let work = work(KernelClass::Elementwise, size, 3 * size);
    Module {
        name: "Residual".into(),
        outer: None,
        forward: operator("aten::add", dims.clone(), work),
        node: "AddBackward0",
        backward: vec![operator("aten::add_", dims, work)],
        parameters: Vec::new(),
    }
}

fn embedding(rows: u64, width: u64, vocabulary: u64) -> Module {
    let dims = vec![vec![vocabulary, width], vec![rows]];
    let size = rows * width;
    let backward = work(KernelClass::Index, size, vocabulary * width + size);
    Module {
        name: "Embedding".into(),
        outer: Some("aten::embedding"),
        forward: operator(
            "aten::index_select",
            dims.clone(),
            work(KernelClass::Index, size, 2 * size),
        ),
        node: "EmbeddingBackward0",
        backward: vec![operator("aten::embedding_dense_backward", dims, backward)],
        parameters: vec![Parameter { elements: vocabulary * width }],
    }
}

fn loss(rows: u64, width: u64) -> Module {
    let size = rows * width;
    let dims = vec![vec![rows, width]; 2];
    Module {
        name: "MSELoss".into(),
        outer: None,
        forward: operator(
            "aten::mse_loss",
            dims.clone(),
            work(KernelClass::Reduce, 3 * size, 2 * size),
        ),
        node: "MseLossBackward0",
        backward: vec![operator(
            "aten::mse_loss_backward",
            dims,
            work(KernelClass::Elementwise, 2 * size, 3 * size),
        )],
        parameters: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elements(model: &Model) -> u64 {
        modules(model, 8).iter().flat_map(|module| &module.parameters).map(|p| p.elements).sum()
    }

    #[test]
    fn parameter_counts_follow_the_textbook() {
        let (h, v) = (64, 1_000);
        let blocks = Model::Transformer { layers: 3, hidden: h, sequence: 16, vocabulary: 0 };
        assert_eq!(elements(&blocks), 3 * (12 * h * h + 13 * h));
        let gpt = Model::Transformer { layers: 1, hidden: h, sequence: 16, vocabulary: v };
        assert_eq!(elements(&gpt), 12 * h * h + 13 * h + 2 * v * h);
        assert_eq!(elements(&Model::Mlp { widths: vec![3, 5, 2] }), 3 * 5 + 5 + 5 * 2 + 2);
    }

    #[test]
    fn a_linear_layer_does_three_equal_products() {
        let module = linear(32, 64, 128, true);
        let flops = 2 * 32 * 64 * 128;
        assert_eq!(module.forward.work.flops, flops);
        assert!(module.backward[..2].iter().all(|operator| operator.work.flops == flops));
    }
}
