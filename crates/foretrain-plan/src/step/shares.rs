//! How many of a layer's parameters a rank holds.

use foretrain_workload::model::{Layer, Op, OpKind, Split};

use crate::layout::Layout;

/// Numbers that one rank holds of a layer, before replicas divide them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shares {
    /// All but routed experts.
    pub dense: u64,
    /// Routed experts.
    pub expert: u64,
    /// Weights tied to another operation's: a copy where the two are on different stages, not counted
    /// in `dense`.
    pub tied: u64,
}

impl Shares {
    /// Of `layer` under `layout`.
    pub fn of(layer: &Layer, layout: &Layout) -> Self {
        layer.ops.iter().fold(Self::default(), |sum, op| sum + Self::of_op(op, layout))
    }

    fn of_op(op: &Op, layout: &Layout) -> Self {
        let mut shares = Self::default();
        if let (true, OpKind::Linear { inputs, outputs }) = (op.tied, &op.kind) {
            shares.tied = inputs * outputs.div_ceil(u64::from(layout.tensor.max(1)));
        }
        for parameter in &op.parameters {
            let ranks = match op.split {
                _ if !parameter.divided => 1,
                Split::Columns | Split::Rows | Split::Inner | Split::Vocabulary => layout.tensor,
                Split::Experts => layout.expert * layout.expert_tensor,
                Split::Outer | Split::Whole => 1,
            };
            let own = parameter.elements.div_ceil(u64::from(ranks.max(1)));
            if op.split == Split::Experts {
                shares.expert += own;
            } else {
                shares.dense += own;
            }
        }
        shares
    }

    /// All of it.
    pub fn total(&self) -> u64 {
        self.dense + self.expert
    }
}

impl std::ops::Add for Shares {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            dense: self.dense + other.dense,
            expert: self.expert + other.expert,
            tied: self.tied + other.tied,
        }
    }
}

impl std::ops::Mul<u64> for Shares {
    type Output = Self;
    fn mul(self, times: u64) -> Self {
        Self { dense: self.dense * times, expert: self.expert * times, tied: self.tied * times }
    }
}
