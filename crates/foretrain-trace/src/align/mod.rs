//! What several ranks' traces say together: which operations met, how the clocks relate, and
//! who waited for whom.
//!
//! ```text
//! RankOps (one per rank) -> match_ops -> align_clocks -> waits
//! ```
//!
//! Operations are matched by group, order, kind and size; recorded sequence numbers are only a
//! check, because some backends count over all groups or twice per operation. Clocks are
//! aligned on the *ends* of matched collectives: all members leave together, whenever they came;
//! where there are only messages, on no message arriving before it is sent.

mod bounds;
mod clocks;
mod identity;
mod line;
mod matching;
#[cfg(test)]
mod tests;
mod waits;

use foretrain_core::{Bytes, Nanos};
use foretrain_graph::CollectiveKind;

use crate::collectives::Collectives;
use crate::table::{ProcessGroup, Trace};

pub use clocks::{ClockAlignment, Method, RankClock, Spread, align_clocks, synchronises};
pub use matching::{MatchedCollectives, MatchedGroup, MatchedOp, Member, match_ops};
pub use waits::{MemberWait, OpWait, Straggler, Waits, waits};

/// One operation as matching and alignment see it. Times are relative to the trace's base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankOp {
    /// Row of the trace that carries the operation.
    pub row: u32,
    /// Index of its group in [`RankOps::groups`].
    pub group: u32,
    /// What is done.
    pub kind: CollectiveKind,
    /// Message size, if known.
    pub bytes: Option<Bytes>,
    /// When this rank arrived.
    pub start: Nanos,
    /// When this rank left.
    pub end: Nanos,
    /// Sequence number as recorded, for checks only.
    pub sequence: Option<i64>,
}

/// The communication of one rank, reduced to what relates it to other ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankOps {
    /// Global rank.
    pub rank: u32,
    /// What the rank's clock showed at time zero of its trace, in nanoseconds.
    pub base_nanos: i64,
    /// The rank's groups.
    pub groups: Vec<ProcessGroup>,
    /// Operations in the order in which each group issued them.
    pub ops: Vec<RankOp>,
}

impl RankOps {
    /// Takes what matters from a rank's trace and its recognised communication. Operations
    /// without a group are left out.
    pub fn new(rank: u32, trace: &Trace, found: &Collectives) -> Self {
        let mut ops: Vec<(Nanos, RankOp)> = found
            .ops
            .iter()
            .filter_map(|op| {
                let issued = RankOp {
                    row: op.row,
                    group: op.group?.get(),
                    kind: op.kind,
                    bytes: op.bytes,
                    start: op.start,
                    end: op.end,
                    sequence: op.recorded_sequence,
                };
                Some((op.issued(trace), issued))
            })
            .collect();
        ops.sort_by_key(|(issued, op)| (*issued, op.row));
        let ops = ops.into_iter().map(|(_, op)| op).collect();
        Self { rank, base_nanos: trace.meta.base_nanos, groups: found.groups.clone(), ops }
    }
}
