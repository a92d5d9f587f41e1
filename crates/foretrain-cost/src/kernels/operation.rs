//! What a device is asked to do, by shape: the unit that kernel time is known for.

use foretrain_core::{Bytes, DType, Flops};
use serde::{Deserialize, Serialize};

/// One kernel's work (or that of a few that always go together).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// Matrix multiplication.
    Gemm(Gemm),
    /// Attention in one kernel that never writes the scores.
    Attention(Attention),
    /// Convolution in two dimensions.
    Convolution(Convolution),
    /// Whatever the memory's rate bounds.
    Memory(Memory),
}

/// `batch` products `C[m, n] = A[m, k] B[k, n]`.
///
/// Forward through a linear layer `m` counts tokens, `n` outputs and `k` inputs; for the
/// gradient of its weights `k` counts tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Gemm {
    /// Independent products of this shape: heads, or experts in a grouped kernel.
    pub batch: u64,
    /// Rows of the result.
    pub m: u64,
    /// Columns of the result.
    pub n: u64,
    /// Length of the sums.
    pub k: u64,
    /// Type of the factors.
    pub dtype: DType,
    /// Type of the result.
    pub output: DType,
}

/// Which pass a kernel belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pass {
    /// Forward.
    Forward,
    /// Both gradients in one, or the gradient of the input alone.
    Backward,
    /// The gradient of the weights alone.
    WeightGradient,
}

/// Fused attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Attention {
    /// Sequences.
    pub batch: u64,
    /// Heads of the queries.
    pub heads: u64,
    /// Heads of keys and values; fewer than `heads` when queries share them.
    pub kv_heads: u64,
    /// Queries per sequence.
    pub queries: u64,
    /// Keys per sequence.
    pub keys: u64,
    /// Width of a query's and a key's head.
    pub head_dim: u64,
    /// Width of a value's head.
    pub value_dim: u64,
    /// A query sees only keys up to its own place.
    pub causal: bool,
    /// A query sees only so many keys back.
    pub window: Option<u64>,
    /// Type of queries, keys and values.
    pub dtype: DType,
    /// Forward or backward.
    pub pass: Pass,
    /// Which implementation.
    pub kernel: AttentionKernel,
}

/// Implementations of fused attention, which a generation of devices sets far apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AttentionKernel {
    /// Written for the device: cuDNN, FlashAttention-3, Composable Kernel.
    #[default]
    Tuned,
    /// FlashAttention-2 of 2023, which PyTorch's own attention runs: written for Ampere.
    Flash2,
    /// FlashAttention of 2022, and its kernels in Triton.
    Flash1,
}

impl AttentionKernel {
    /// All of them, the fastest first.
    pub const ALL: [Self; 3] = [Self::Tuned, Self::Flash2, Self::Flash1];

    /// As in options and files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tuned => "tuned",
            Self::Flash2 => "flash-2",
            Self::Flash1 => "flash-1",
        }
    }

    /// How many times longer than the device's own kernel it takes, over long sequences.
    ///
    /// On Hopper, FlashAttention-2 reaches 395 TFLOP/s with heads of 128 (kernels_perlmutter_vista_fp16,
    /// the 99th percentile of 448 shapes on GH200), 0.40 of the peak, where the curve of H100 settles at
    /// 0.588. On Ampere the curve is FlashAttention-2's own; on other generations PyTorch runs the
    /// vendor's kernel. FlashAttention took twice as long as its successor (recalled from the latter's
    /// paper, which gives "around 2x").
    pub(super) fn slowdown(self, architecture: Option<&str>) -> f64 {
        let flash_2 = if architecture == Some("hopper") { 0.588 / 0.40 } else { 1.0 };
        match self {
            Self::Tuned => 1.0,
            Self::Flash2 => flash_2,
            Self::Flash1 => 2.0 * flash_2,
        }
    }
}

/// A convolution in two dimensions; one-dimensional ones have a height of 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Convolution {
    /// Images.
    pub batch: u64,
    /// Channels in.
    pub inputs: u64,
    /// Channels out.
    pub outputs: u64,
    /// Rows and columns of the filter.
    pub kernel: (u64, u64),
    /// Steps between applications.
    pub stride: u64,
    /// Rows and columns of the result.
    pub size: (u64, u64),
    /// Groups of channels that do not mix.
    pub groups: u64,
    /// Type of images and filters.
    pub dtype: DType,
    /// Forward, gradient of the input, or of the weights.
    pub pass: Pass,
}

/// What a memory-bound kernel does with the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemoryKind {
    /// One result per place.
    Elementwise,
    /// A copy, cast, transpose or fill.
    Copy,
    /// Layer norm, RMS norm, batch norm: sums and a second look.
    Norm,
    /// Softmax along rows.
    Softmax,
    /// Rows picked from a table, or added to one.
    Gather,
    /// Sums over many places: gradients of biases, norms of gradients.
    Reduction,
    /// The optimiser's update over many tensors at once.
    Optimiser,
    /// Neighbouring places reduced to one.
    Pool,
}

/// A memory-bound kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Memory {
    /// What it does.
    pub kind: MemoryKind,
    /// Bytes it reads.
    pub read: Bytes,
    /// Bytes it writes.
    pub written: Bytes,
}

impl Operation {
    /// Work, a multiply-add counted as two. Memory-bound kernels count none.
    pub fn flops(&self) -> Flops {
        match self {
            Self::Gemm(gemm) => gemm.flops(),
            Self::Attention(attention) => attention.flops(),
            Self::Convolution(convolution) => convolution.flops(),
            Self::Memory(_) => Flops::ZERO,
        }
    }

    /// Bytes that cross the memory's bus at least: every input once, every result once.
    pub fn bytes(&self) -> Bytes {
        match self {
            Self::Gemm(gemm) => gemm.bytes(),
            Self::Attention(attention) => attention.bytes(),
            Self::Convolution(convolution) => convolution.bytes(),
            Self::Memory(memory) => memory.read + memory.written,
        }
    }

    /// What it is, in one word for tables.
    pub const fn class_name(&self) -> &'static str {
        match self {
            Self::Gemm(_) => "gemm",
            Self::Attention(_) => "attention",
            Self::Convolution(_) => "convolution",
            Self::Memory(_) => "memory",
        }
    }

    /// The type that decides the peak rate; `None` if memory alone bounds it.
    pub fn dtype(&self) -> Option<DType> {
        match self {
            Self::Gemm(gemm) => Some(gemm.dtype),
            Self::Attention(attention) => Some(attention.dtype),
            Self::Convolution(convolution) => Some(convolution.dtype),
            Self::Memory(_) => None,
        }
    }
}

fn product(factors: &[u64]) -> f64 {
    factors.iter().map(|&factor| factor as f64).product()
}

fn bytes_of(dtype: DType, elements: f64) -> f64 {
    f64::from(dtype.bits()) / 8.0 * elements
}

impl Gemm {
    /// A single product whose result has the type of its factors.
    pub const fn new(m: u64, n: u64, k: u64, dtype: DType) -> Self {
        Self { batch: 1, m, n, k, dtype, output: dtype }
    }
    /// `2 batch m n k`.
    pub fn flops(&self) -> Flops {
        Flops::new(2.0 * product(&[self.batch, self.m, self.n, self.k]))
    }
    /// Both factors and the result once.
    pub fn bytes(&self) -> Bytes {
        let factors = product(&[self.m, self.k]) + product(&[self.k, self.n]);
        let result = product(&[self.m, self.n]);
        let each = bytes_of(self.dtype, factors) + bytes_of(self.output, result);
        Bytes::from_f64(self.batch as f64 * each)
    }
}

impl Attention {
    /// Pairs of a query and a key that see each other, of one head of one sequence.
    pub fn pairs(&self) -> f64 {
        let (queries, keys) = (self.queries as f64, self.keys as f64);
        let width = self.window.map_or(keys, |window| (window as f64).min(keys));
        if !self.causal {
            return queries * width;
        }
        // The last query stands at the last key. The first `width` keys fill up one by one.
        let before = keys - queries;
        if before >= width {
            return queries * width;
        }
        let ramp = (width - before.max(0.0)).min(queries);
        let first = before.max(0.0) + 1.0;
        ramp * (first + first + ramp - 1.0) / 2.0 + (queries - ramp) * width
    }

    /// Two products forward; backward five, of which one forms the scores again (Dao, 2022: 2.5
    /// times the forward pass).
    pub fn flops(&self) -> Flops {
        let pairs = self.pairs() * product(&[self.batch, self.heads]);
        let (inner, values) = (self.head_dim as f64, self.value_dim as f64);
        Flops::new(match self.pass {
            Pass::Forward => 2.0 * pairs * (inner + values),
            Pass::Backward | Pass::WeightGradient => 2.0 * pairs * (3.0 * inner + 2.0 * values),
        })
    }

    /// Queries, keys, values and the result once; backward their gradients too.
    pub fn bytes(&self) -> Bytes {
        let queries = product(&[self.batch, self.heads, self.queries]);
        let keys = product(&[self.batch, self.kv_heads, self.keys]);
        let widths = (self.head_dim + self.value_dim) as f64;
        let once = bytes_of(self.dtype, (queries + keys) * widths);
        let passes = if self.pass == Pass::Forward { 1.0 } else { 2.0 };
        Bytes::from_f64(passes * once)
    }
}

impl Convolution {
    /// `2 batch outputs height width inputs / groups kernel`; the same for each gradient.
    pub fn flops(&self) -> Flops {
        let places = product(&[self.batch, self.size.0, self.size.1, self.outputs]);
        let sums =
            product(&[self.inputs, self.kernel.0, self.kernel.1]) / self.groups.max(1) as f64;
        Flops::new(2.0 * places * sums)
    }
    /// Images in, images out and filters once.
    pub fn bytes(&self) -> Bytes {
        let places = product(&[self.batch, self.size.0, self.size.1]);
        let before = places * product(&[self.stride, self.stride, self.inputs]);
        let after = places * self.outputs as f64;
        let filters = product(&[self.outputs, self.inputs, self.kernel.0, self.kernel.1])
            / self.groups.max(1) as f64;
        Bytes::from_f64(bytes_of(self.dtype, before + after + filters))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attention(queries: u64, keys: u64, causal: bool, window: Option<u64>) -> Attention {
        Attention {
            batch: 2,
            heads: 4,
            kv_heads: 1,
            queries,
            keys,
            head_dim: 8,
            value_dim: 8,
            causal,
            window,
            dtype: DType::Bf16,
            pass: Pass::Forward,
            kernel: AttentionKernel::Tuned,
        }
    }

    #[test]
    fn pairs_are_counted_as_a_mask_would() {
        for (queries, keys) in [(1, 1), (4, 4), (4, 9), (7, 7), (3, 20)] {
            for window in [None, Some(1), Some(3), Some(50)] {
                for causal in [false, true] {
                    let attention = attention(queries, keys, causal, window);
                    let mut pairs = 0;
                    for query in 0..queries {
                        let place = keys - queries + query;
                        let width = window.unwrap_or(keys).min(keys);
                        pairs += if causal { (place + 1).min(width) } else { width };
                    }
                    assert_eq!(attention.pairs(), pairs as f64, "{attention:?}");
                }
            }
        }
    }

    #[test]
    fn work_and_bytes_by_hand() {
        let gemm = Gemm::new(3, 5, 7, DType::Bf16);
        assert_eq!(gemm.flops().get(), 210.0);
        assert_eq!(gemm.bytes().get(), 2 * (21 + 35 + 15));
        let attention = attention(4, 4, false, None);
        assert_eq!(attention.flops().get(), 4.0 * 16.0 * 8.0 * 8.0);
        assert_eq!(attention.bytes().get(), 2 * (2 * 4 * 4 + 2 * 4) * 16);
        let convolution = Convolution {
            batch: 1,
            inputs: 3,
            outputs: 64,
            kernel: (7, 7),
            stride: 2,
            size: (112, 112),
            groups: 1,
            dtype: DType::F32,
            pass: Pass::Forward,
        };
        assert_eq!(convolution.flops().get(), 236_027_904.0);
    }
}
