//! How a job is laid out over devices.

mod parse;
mod ranks;

use serde::{Deserialize, Serialize};

pub use parse::Wish;
pub use ranks::{Dimension, Ranks};

/// One parallel layout.
///
/// Degrees multiply to the devices: `tensor * context * pipeline * data`. Experts are spread over
/// the data- and context-parallel ranks of a stage (and over tensor-parallel ones where
/// `expert_tensor` is smaller than `tensor`).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct Layout {
    /// Ranks that divide each layer's width.
    pub tensor: u32,
    /// Stages of the pipeline.
    pub pipeline: u32,
    /// Replicas.
    pub data: u32,
    /// Ranks that divide each sequence.
    pub context: u32,
    /// Ranks that divide the experts of a layer.
    pub expert: u32,
    /// Ranks that divide each expert's width.
    pub expert_tensor: u32,
    /// Chunks of layers on each stage.
    pub virtual_stages: u32,
    /// In which order stages run micro-batches.
    pub schedule: Schedule,
    /// Norms, dropout and residuals divided by positions among tensor-parallel ranks.
    pub sequence_parallel: bool,
    /// How context-parallel ranks get at each other's keys and values.
    pub context_method: ContextMethod,
    /// What replicas divide among them.
    pub sharding: Sharding,
    /// Replicas within which parameters are divided (HSDP); `None` for all.
    pub shard_group: Option<u32>,
    /// What the backward pass forms again.
    pub recompute: Recompute,
    /// Samples of one replica in one pass.
    pub micro_batch: u64,
    /// Layers of each stage (of each chunk, in pipeline order); `None` deals them evenly.
    pub stage_layers: Option<Vec<u32>>,
    /// Optimiser states held, and updated, on the host.
    pub offload_optimiser: bool,
    /// Kept activations copied to the host between the passes.
    pub offload_activations: bool,
    /// Which dimension takes neighbouring devices, fastest first.
    pub order: Order,
}

/// In which order stages run micro-batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// All forward passes, then all backward passes.
    GPipe,
    /// One forward, one backward (Narayanan et al., 2021); interleaved where a stage has chunks.
    #[default]
    #[serde(rename = "1f1b")]
    OneFOneB,
    /// Zero bubble with the memory of 1F1B (Qi et al., 2023).
    ZbH1,
    /// Zero bubble with about twice that memory.
    ZbH2,
    /// Zero bubble with two chunks per stage in a V and the memory of 1F1B.
    ZbV,
    /// Two directions at once (DeepSeek-V3, 2024); each rank holds two stages.
    DualPipe,
    /// Varuna's: forward passes recomputed, gaps filled as they come (Athlur et al., 2022).
    Varuna,
}

/// How context-parallel ranks get at each other's keys and values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ContextMethod {
    /// Blocks passed round a ring beside attention (ring attention).
    #[default]
    Ring,
    /// Gathered before attention.
    AllGather,
    /// Heads exchanged for positions by all-to-all (DeepSpeed-Ulysses).
    Ulysses,
}

/// What replicas divide among them.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Sharding {
    /// Nothing: plain data parallelism.
    #[default]
    None,
    /// Optimiser states (ZeRO-1, Megatron's distributed optimiser).
    Optimiser,
    /// Optimiser states and gradients (ZeRO-2).
    Gradients,
    /// Parameters too (ZeRO-3, FSDP).
    Parameters,
}

/// What the backward pass forms again instead of keeping.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Recompute {
    /// Nothing.
    #[default]
    None,
    /// The core of attention (Korthikanti et al., 2022); nothing where fused attention does so
    /// itself.
    Selective,
    /// Each layer, from its input.
    Full,
    /// So many layers of each stage in full, the others not at all.
    Layers(u32),
}

/// Which dimension takes neighbouring devices, fastest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Order(pub [Dimension; 4]);

impl Default for Order {
    /// Megatron's: tensor, context, data, pipeline.
    fn default() -> Self {
        Self([Dimension::Tensor, Dimension::Context, Dimension::Data, Dimension::Pipeline])
    }
}

impl Default for Layout {
    fn default() -> Self {
        Self {
            tensor: 1,
            pipeline: 1,
            data: 1,
            context: 1,
            expert: 1,
            expert_tensor: 1,
            virtual_stages: 1,
            schedule: Schedule::default(),
            sequence_parallel: false,
            context_method: ContextMethod::default(),
            sharding: Sharding::default(),
            shard_group: None,
            recompute: Recompute::default(),
            micro_batch: 1,
            stage_layers: None,
            offload_optimiser: false,
            offload_activations: false,
            order: Order::default(),
        }
    }
}

impl Layout {
    /// Devices it takes.
    pub fn devices(&self) -> u64 {
        [self.tensor, self.pipeline, self.data, self.context]
            .iter()
            .map(|&n| u64::from(n))
            .product()
    }

    /// Ranks that hold the same part of the (not routed) parameters: replicas, and the ranks that
    /// divide a sequence.
    pub fn gradient_ranks(&self) -> u32 {
        self.data * self.context
    }

    /// Ranks that hold the same experts.
    pub fn expert_gradient_ranks(&self) -> u32 {
        (self.data * self.context * self.tensor) / (self.expert * self.expert_tensor).max(1)
    }

    /// Ranks among which states are divided.
    pub fn shards(&self) -> u32 {
        self.shard_group.unwrap_or_else(|| self.gradient_ranks()).max(1)
    }

    /// Stages of the pipeline as layers meet them: chunks included.
    pub fn chunks(&self) -> u32 {
        self.pipeline * self.chunks_per_stage()
    }

    /// Chunks of layers that a stage holds.
    pub fn chunks_per_stage(&self) -> u32 {
        match self.schedule {
            Schedule::ZbV | Schedule::DualPipe => 2,
            _ => self.virtual_stages,
        }
    }
}

impl Schedule {
    /// Its short name, as read and written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::GPipe => "gpipe",
            Self::OneFOneB => "1f1b",
            Self::ZbH1 => "zb-h1",
            Self::ZbH2 => "zb-h2",
            Self::ZbV => "zb-v",
            Self::DualPipe => "dualpipe",
            Self::Varuna => "varuna",
        }
    }
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::GPipe,
        Self::OneFOneB,
        Self::ZbH1,
        Self::ZbH2,
        Self::ZbV,
        Self::DualPipe,
        Self::Varuna,
    ];
    /// Whether the gradient of the weights is a task of its own.
    pub const fn splits_backward(self) -> bool {
        matches!(self, Self::ZbH1 | Self::ZbH2 | Self::ZbV | Self::DualPipe)
    }
}

impl Sharding {
    /// Its short name, as read and written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "0",
            Self::Optimiser => "1",
            Self::Gradients => "2",
            Self::Parameters => "3",
        }
    }
}
