//! Where the members of each group sit.

use foretrain_core::{InputError, Result};
use foretrain_cost::GroupPlacement;
use serde::{Deserialize, Serialize};

use super::Layout;

/// A dimension of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dimension {
    /// Tensor parallelism.
    Tensor,
    /// Context parallelism.
    Context,
    /// Replicas.
    Data,
    /// Stages.
    Pipeline,
}

/// Groups of a layout as the network sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ranks {
    tensor: (u32, u32),
    context: (u32, u32),
    data: (u32, u32),
    pipeline: (u32, u32),
    expert: (u32, u32),
    /// Ranks that hold the same experts.
    expert_data: (u32, u32),
    /// Replicas among which parameters are divided, where that is not all.
    shard: Option<u32>,
    expert_tensor: u32,
}

impl Ranks {
    /// The groups of `layout`.
    pub fn of(layout: &Layout) -> Self {
        let size = |dimension| match dimension {
            Dimension::Tensor => layout.tensor,
            Dimension::Context => layout.context,
            Dimension::Data => layout.data,
            Dimension::Pipeline => layout.pipeline,
        };
        let stride = |wanted: Dimension| {
            let before = layout.order.0.iter().take_while(|&&dimension| dimension != wanted);
            before.map(|&dimension| size(dimension)).product::<u32>()
        };
        let of = |dimension| (size(dimension), stride(dimension));
        // Experts take the ranks of a stage next to each other: within tensor-parallel ranks that
        // do not divide experts, then context, then data.
        let expert_stride = stride(Dimension::Tensor) * layout.expert_tensor.max(1);
        Self {
            tensor: of(Dimension::Tensor),
            context: of(Dimension::Context),
            data: of(Dimension::Data),
            pipeline: of(Dimension::Pipeline),
            expert: (layout.expert, expert_stride),
            expert_data: (layout.expert_gradient_ranks(), expert_stride * layout.expert),
            shard: layout.shard_group,
            expert_tensor: layout.expert_tensor,
        }
    }

    /// Ranks that divide each layer's width.
    pub fn tensor(&self) -> GroupPlacement {
        GroupPlacement::strided(self.tensor.0, self.tensor.1)
    }
    /// Ranks that divide each expert's width.
    pub fn expert_tensor(&self) -> GroupPlacement {
        GroupPlacement::strided(self.expert_tensor, self.tensor.1)
    }
    /// Ranks that divide each sequence.
    pub fn context(&self) -> GroupPlacement {
        GroupPlacement::strided(self.context.0, self.context.1)
    }
    /// Ranks that divide the experts.
    pub fn expert(&self) -> GroupPlacement {
        GroupPlacement::strided(self.expert.0, self.expert.1)
    }
    /// Ranks that hold the same experts.
    pub fn expert_data(&self) -> GroupPlacement {
        GroupPlacement::strided(self.expert_data.0, self.expert_data.1)
    }
    /// Ranks that hold the same part of the other parameters.
    pub fn gradient(&self) -> GroupPlacement {
        let (data, context) = (self.data, self.context);
        let stride = if context.0 > 1 { context.1.min(data.1) } else { data.1 };
        GroupPlacement::strided(data.0 * context.0, stride)
    }
    /// Ranks among which parameters are divided.
    pub fn shard(&self) -> GroupPlacement {
        let all = self.gradient();
        GroupPlacement::strided(self.shard.unwrap_or(all.ranks()).min(all.ranks()), all.stride())
    }
    /// Ranks that hold the same divided part (HSDP); one without a shard group.
    pub fn across_shards(&self) -> GroupPlacement {
        let all = self.gradient();
        let shard = self.shard.unwrap_or(all.ranks()).max(1);
        GroupPlacement::strided(all.ranks() / shard.min(all.ranks()).max(1), all.stride() * shard)
    }
    /// Two neighbouring stages.
    pub fn neighbours(&self) -> GroupPlacement {
        GroupPlacement::strided(2, self.pipeline.1)
    }
}

/// A dimension by its short name.
pub(super) fn dimension(word: &str) -> Result<Dimension> {
    Ok(match word {
        "tp" => Dimension::Tensor,
        "cp" => Dimension::Context,
        "dp" => Dimension::Data,
        "pp" => Dimension::Pipeline,
        _ => return Err(InputError::new(format!("\"{word}\" is none of tp, cp, dp, pp"))),
    })
}

impl Dimension {
    /// Its short name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tensor => "tp",
            Self::Context => "cp",
            Self::Data => "dp",
            Self::Pipeline => "pp",
        }
    }
}
