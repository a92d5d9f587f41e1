//! FLOPs of operators that multiply matrices. A multiply-add counts as two.

use std::collections::BTreeMap;

use super::operand::Operand;

/// An operator whose FLOPs its shapes tell; positions are those of its inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Product {
    /// A product of two matrices, or of as many as there are before their last two extents.
    Matrices(usize, usize),
    /// Data times a weight of extents (outputs, inputs).
    Linear,
    /// A convolution of data with a filter.
    Convolution,
    /// Its gradients: of the result, the data and the filter.
    ConvolutionGradients {
        /// The result's gradient.
        result: usize,
        /// The data.
        data: usize,
        /// Gradients that it computes.
        count: u8,
    },
    /// Attention with queries, keys and values from this position on, which have heads before
    /// places or behind them.
    Attention {
        /// The queries.
        first: usize,
        /// Extents are samples, heads, places, width.
        heads_first: bool,
        /// Gradients instead of results.
        backward: bool,
    },
}

impl Product {
    /// The operator of this name, without `aten::`.
    pub(super) fn named(name: &str) -> Option<Self> {
        let attention =
            |first, heads_first, backward| Some(Self::Attention { first, heads_first, backward });
        let gradients =
            |result, data, count| Some(Self::ConvolutionGradients { result, data, count });
        match name {
            "mm" | "bmm" | "matmul" | "_scaled_mm" => Some(Self::Matrices(0, 1)),
            "addmm" | "addmm_" | "baddbmm" | "baddbmm_" => Some(Self::Matrices(1, 2)),
            "linear" | "mkldnn_linear" => Some(Self::Linear),
            "conv1d" | "conv2d" | "conv3d" | "convolution" | "_convolution"
            | "cudnn_convolution" | "miopen_convolution" | "mkldnn_convolution" => {
                Some(Self::Convolution)
            }
            "convolution_backward" => gradients(0, 1, 2),
            "cudnn_convolution_backward"
            | "miopen_convolution_backward"
            | "mkldnn_convolution_backward" => gradients(1, 0, 2),
            "scaled_dot_product_attention"
            | "_scaled_dot_product_flash_attention"
            | "_scaled_dot_product_efficient_attention"
            | "_scaled_dot_product_cudnn_attention" => attention(0, true, false),
            "_flash_attention_forward" | "_efficient_attention_forward" => {
                attention(0, false, false)
            }
            "_scaled_dot_product_flash_attention_backward"
            | "_scaled_dot_product_efficient_attention_backward"
            | "_scaled_dot_product_cudnn_attention_backward" => attention(1, true, true),
            "_flash_attention_backward" | "_efficient_attention_backward" => {
                attention(1, false, true)
            }
            _ => None,
        }
    }

    /// Whether operators of this kind stand for all that runs within them.
    pub(super) const fn is_whole(self) -> bool {
        !matches!(self, Self::Matrices(..) | Self::Linear)
    }

    /// Whether it is attention.
    pub(super) const fn attends(self) -> bool {
        matches!(self, Self::Attention { .. })
    }

    /// Its FLOPs; `None` where the shapes do not tell.
    pub(super) fn flops(self, inputs: &[Operand], results: &mut Results) -> Option<f64> {
        let input = |at: usize| inputs.get(at).filter(|operand| operand.elements() > 0);
        match self {
            Self::Matrices(left, right) => {
                let columns = *input(right)?.shape.last()?;
                Some(2.0 * input(left)?.elements() as f64 * columns as f64)
            }
            Self::Linear => {
                let outputs = *input(1)?.shape.first()?;
                Some(2.0 * input(0)?.elements() as f64 * outputs as f64)
            }
            Self::Convolution => {
                let result = results.take(&input(0)?.shape, &input(1)?.shape)?;
                Some(2.0 * result as f64 * sums(input(1)?))
            }
            Self::ConvolutionGradients { result, count, .. } => {
                let each = 2.0 * input(result)?.elements() as f64 * sums(input(2)?);
                Some(f64::from(count) * each)
            }
            Self::Attention { first, heads_first, backward } => {
                let (queries, keys, values) = (input(first)?, input(first + 1)?, input(first + 2)?);
                attention(&queries.shape, &keys.shape, &values.shape, heads_first, backward)
            }
        }
    }
}

/// Filters are (outputs, inputs of a group, extents ...).
fn sums(filter: &Operand) -> f64 {
    filter.shape.iter().skip(1).map(|&extent| extent as f64).product()
}

/// Two products forward, five backward.
fn attention(
    queries: &[u64],
    keys: &[u64],
    values: &[u64],
    heads_first: bool,
    backward: bool,
) -> Option<f64> {
    let (&[batch, a, b, inner], &[_, c, d, _], &[_, _, _, width]) = (queries, keys, values) else {
        return None;
    };
    let (heads, places, seen) = if heads_first { (a, b, d) } else { (b, a, c) };
    let pairs = [batch, heads, places, seen].iter().map(|&n| n as f64).product::<f64>();
    let (inner, width) = (inner as f64, width as f64);
    let widths = if backward { 3.0 * inner + 2.0 * width } else { inner + width };
    Some(2.0 * pairs * widths)
}

/// Numbers in results of convolutions, which forward operators do not record: the gradient of a
/// result has its shape. Of a step, by the shapes of data and filter.
#[derive(Debug, Default)]
pub(super) struct Results(BTreeMap<(Vec<u64>, Vec<u64>), Vec<u64>>);

impl Results {
    /// Of all operators of a step.
    pub(super) fn of<'a>(operators: impl Iterator<Item = (&'a str, Vec<Operand>)>) -> Self {
        let mut all = Self::default();
        for (name, inputs) in operators {
            let Some(Product::ConvolutionGradients { result, data, .. }) = Product::named(name)
            else {
                continue;
            };
            if let (Some(result), Some(data), Some(filter)) =
                (inputs.get(result), inputs.get(data), inputs.get(2))
            {
                let key = (data.shape.clone(), filter.shape.clone());
                all.0.entry(key).or_default().push(result.elements());
            }
        }
        all
    }

    /// Of the next convolution of these shapes: the last gradient belongs to the first result. One
    /// that is computed again (recomputation) has the result of the one before.
    fn take(&mut self, data: &[u64], filter: &[u64]) -> Option<u64> {
        let all = self.0.get_mut(&(data.to_vec(), filter.to_vec()))?;
        if all.len() > 1 { all.pop() } else { all.last().copied() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::operand::of;
    use super::*;

    fn flops(name: &str, shapes: &str) -> Option<f64> {
        Product::named(name)?.flops(&of(shapes, "[]"), &mut Results::default())
    }

    #[test]
    fn products_are_counted_from_their_shapes() {
        assert_eq!(flops("mm", "[[3, 4], [4, 5]]"), Some(120.0));
        assert_eq!(flops("addmm", "[[5], [3, 4], [4, 5]]"), Some(120.0));
        assert_eq!(flops("bmm", "[[7, 3, 4], [7, 4, 5]]"), Some(840.0));
        assert_eq!(flops("linear", "[[2, 3, 4], [5, 4]]"), Some(240.0));
        assert_eq!(flops("mm", "[]"), None);
        assert_eq!(flops("add", "[[3, 4], [3, 4]]"), None);
    }

    #[test]
    fn attention_is_two_products_forward_and_five_backward() {
        let heads_first = "[[2, 4, 8, 16], [2, 4, 10, 16], [2, 4, 10, 16]]";
        let forward = 2.0 * 2.0 * 4.0 * 8.0 * 10.0 * 32.0;
        assert_eq!(flops("scaled_dot_product_attention", heads_first), Some(forward));
        let behind = "[[2, 8, 4, 16], [2, 10, 4, 16], [2, 10, 4, 16]]";
        assert_eq!(flops("_flash_attention_forward", behind), Some(forward));
        let backward = format!("[[2, 4, 8, 16], {}", &heads_first[1..]);
        let found = flops("_scaled_dot_product_flash_attention_backward", &backward);
        assert_eq!(found, Some(2.5 * forward));
    }

    #[test]
    fn a_convolution_has_the_result_that_its_gradient_shows() {
        let gradient = of("[[2, 16, 4, 4], [2, 3, 8, 8], [16, 3, 3, 3]]", "[]");
        let mut results = Results::of([("convolution_backward", gradient.clone())].into_iter());
        let forward = of("[[2, 3, 8, 8], [16, 3, 3, 3]]", "[]");
        let each = 2.0 * 512.0 * 27.0;
        let product = Product::named("conv2d").unwrap();
        assert_eq!(product.flops(&forward, &mut results), Some(each));
        let backward = Product::named("convolution_backward").unwrap();
        assert_eq!(backward.flops(&gradient, &mut results), Some(2.0 * each));
        assert_eq!(product.flops(&forward, &mut Results::default()), None);
    }
}
