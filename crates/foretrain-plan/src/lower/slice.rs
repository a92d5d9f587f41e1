//! What one rank sees of a layer.

use foretrain_core::{Bytes, DType};
use foretrain_cost::kernels::AttentionKernel;
use foretrain_workload::model::{Split, Tokens};

use crate::layout::{ContextMethod, Layout};
use crate::software::{Fusion, Software};
use crate::training::{Lora, Precision, Training};

/// What one rank sees of a layer in one pass of one micro-batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slice {
    /// Samples.
    pub samples: u64,
    /// Tokens of a whole sequence.
    pub sequence: u64,
    /// Tokens of a whole target.
    pub target: u64,
    /// Ranks that divide the width.
    pub tensor: u64,
    /// Ranks that divide the sequence.
    pub context: u64,
    /// They take pieces from both ends of a causal sequence.
    pub balanced_context: bool,
    /// How they get at each other's keys.
    pub context_method: ContextMethod,
    /// Ranks that divide the experts.
    pub expert: u64,
    /// Ranks that divide an expert's width.
    pub expert_tensor: u64,
    /// What lies between divided parts is divided by positions.
    pub sequence_parallel: bool,
    /// The kernel that attention is, if it is one.
    pub attention: Option<AttentionKernel>,
    /// How far kernels are merged.
    pub fusion: Fusion,
    /// Softmax and cross-entropy in one pass over the logits.
    pub fused_loss: bool,
    /// Tensor-parallel communication beside products.
    pub overlap_tensor: bool,
    /// Communication of a column split's input gradient beside the product for its weights.
    pub overlap_tensor_gradients: bool,
    /// A token goes to each node once, however many of its experts are there.
    pub expert_dedup: bool,
    /// Number formats.
    pub precision: Precision,
    /// Adapters beside frozen weights.
    pub lora: Option<Lora>,
    /// Tokens of the busiest rank's experts over the mean, in thousandths.
    pub imbalance: u32,
}

impl Slice {
    /// What a rank of `layout` sees.
    pub fn of(layout: &Layout, training: &Training, software: &Software) -> Self {
        let thousandths = (training.expert_imbalance.clamp(1.0, 1000.0) * 1000.0).round();
        Self {
            samples: layout.micro_batch,
            sequence: training.sequence,
            target: training.target,
            tensor: u64::from(layout.tensor),
            context: u64::from(layout.context),
            balanced_context: software.balanced_context,
            context_method: layout.context_method,
            expert: u64::from(layout.expert),
            expert_tensor: u64::from(layout.expert_tensor),
            sequence_parallel: layout.sequence_parallel && layout.tensor > 1,
            attention: software.attention,
            fusion: software.fusion,
            fused_loss: software.fused_loss,
            overlap_tensor: software.overlap_tensor,
            overlap_tensor_gradients: software.overlap_tensor_gradients,
            expert_dedup: software.expert_dedup,
            precision: training.precision,
            lora: training.lora,
            imbalance: thousandths as u32,
        }
    }

    /// Whole length of the sequence a layer works on.
    pub(super) fn length(&self, tokens: Tokens) -> u64 {
        match tokens {
            Tokens::Sequence => self.sequence,
            Tokens::Target => self.target,
            Tokens::Fixed(positions) => positions,
        }
    }

    /// Positions of this rank's part of a sequence.
    pub(super) fn part(&self, tokens: Tokens) -> u64 {
        match tokens {
            Tokens::Fixed(positions) => positions,
            _ => self.length(tokens).div_ceil(self.context),
        }
    }

    /// Positions of all samples, as the divided parts see them.
    pub(super) fn rows(&self, tokens: Tokens) -> u64 {
        self.samples * self.part(tokens)
    }

    /// Positions between the divided parts.
    pub(super) fn outer_rows(&self, tokens: Tokens) -> u64 {
        let rows = self.rows(tokens);
        if self.sequence_parallel { rows.div_ceil(self.tensor) } else { rows }
    }

    /// Positions and the ranks that divide the width, for an operation split so.
    pub(super) fn rows_and_ranks(&self, split: Split, tokens: Tokens) -> (u64, u64) {
        match split {
            Split::Columns | Split::Rows | Split::Inner | Split::Vocabulary => {
                (self.rows(tokens), self.tensor)
            }
            Split::Outer | Split::Experts | Split::Whole => (self.outer_rows(tokens), 1),
        }
    }

    /// So many numbers as activations.
    pub(super) fn activation_bytes(&self, numbers: u64) -> Bytes {
        bytes(self.precision.activations, numbers)
    }
}

/// So many numbers of a type.
pub(super) fn bytes(dtype: DType, numbers: u64) -> Bytes {
    Bytes::new(dtype.bytes_of(numbers))
}

/// So many times as many bytes.
pub(crate) fn times(bytes: Bytes, factor: u64) -> Bytes {
    Bytes::new(bytes.get().saturating_mul(factor))
}
