//! Work of a forward pass.

use foretrain_core::{DType, Flops};
use foretrain_cost::kernels::{Attention, AttentionKernel, Pass};

use super::{Experts, Layer, Model, Op, OpKind, Sample, SelfAttention, Tokens};

impl Sample {
    /// Positions of one sample that a layer works on. `sequence` stands in for the usual length, and
    /// in a pair for that of the source and the target.
    pub fn positions(&self, tokens: Tokens, sequence: Option<u64>) -> u64 {
        match (tokens, self) {
            (Tokens::Fixed(positions), _) => positions,
            (_, Self::Fixed) => 1,
            (_, Self::Tokens { default, .. }) => sequence.unwrap_or(*default),
            (Tokens::Sequence, Self::Pair { source, .. }) => sequence.unwrap_or(*source),
            (Tokens::Target, Self::Pair { target, .. }) => sequence.unwrap_or(*target),
        }
    }
}

impl Model {
    /// Work of a forward pass on one sample of its usual or the given length.
    pub fn forward(&self, sequence: Option<u64>) -> Flops {
        let block = |block: &super::Block| {
            f64::from(block.repeat) * block.layer.forward(&self.sample, sequence).get()
        };
        Flops::new(self.blocks.iter().map(block).sum())
    }
}

impl Layer {
    /// Work of a forward pass on one sample of the model's usual or the given length.
    pub fn forward(&self, sample: &Sample, sequence: Option<u64>) -> Flops {
        let positions = sample.positions(self.tokens, sequence);
        let source = sample.positions(Tokens::Sequence, sequence);
        let work = self.ops.iter().map(|op| op.forward(positions, source).get());
        Flops::new(work.sum())
    }
}

impl Op {
    /// Work of a forward pass over `positions` of one sample; cross-attention reads `source`
    /// positions. A multiply-add counts as two. Norms count a few per number; what is bound by
    /// memory alone counts none.
    pub fn forward(&self, positions: u64, source: u64) -> Flops {
        let times = if self.on_source { source } else { positions } as f64;
        let product = |inputs: u64, outputs: u64| 2.0 * inputs as f64 * outputs as f64;
        Flops::new(match &self.kind {
            OpKind::Linear { inputs, outputs } => times * product(*inputs, *outputs),
            OpKind::Attention(attention) => attention.forward(positions, source),
            OpKind::Norm { width, .. } => 8.0 * times * *width as f64,
            OpKind::BatchNorm { channels, places } => {
                4.0 * times * *channels as f64 * *places as f64
            }
            OpKind::Router { width, experts, .. } => times * product(*width, *experts),
            OpKind::Experts(Experts { top_k, width, hidden, gated, .. }) => {
                let products = if *gated { 3.0 } else { 2.0 };
                times * *top_k as f64 * products * product(*width, *hidden)
            }
            OpKind::Convolution(shape) => {
                let places = shape.size.0 as f64 * shape.size.1 as f64 * shape.outputs as f64;
                let sums = shape.inputs as f64 * shape.kernel.0 as f64 * shape.kernel.1 as f64;
                2.0 * times * places * sums / shape.groups.max(1) as f64
            }
            OpKind::Recurrent { inputs, hidden, gates, steps, directions } => {
                let step = product(*inputs, *hidden) + product(*hidden, *hidden);
                let count = *gates as f64 * *steps as f64 * *directions as f64;
                times * count * step
            }
            OpKind::Interaction { vectors, width } => {
                let pairs = *vectors as f64 * (*vectors as f64 - 1.0) / 2.0;
                times * 2.0 * pairs * *width as f64
            }
            OpKind::Elementwise { .. }
            | OpKind::Embedding { .. }
            | OpKind::CrossEntropy { .. }
            | OpKind::Pool { .. } => 0.0,
        })
    }
}

impl SelfAttention {
    fn forward(&self, positions: u64, source: u64) -> f64 {
        let shape = Attention {
            batch: 1,
            heads: self.heads,
            kv_heads: self.kv_heads,
            queries: positions,
            keys: if self.cross { source } else { positions },
            head_dim: self.head_dim,
            value_dim: self.value_dim,
            causal: self.causal,
            window: self.window,
            dtype: DType::Bf16,
            pass: Pass::Forward,
            kernel: AttentionKernel::Tuned,
        };
        shape.flops().get()
    }
}
