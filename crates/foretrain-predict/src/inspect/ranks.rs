//! What several ranks say together.

use foretrain_core::{Ledger, Nanos};
use foretrain_trace::align::{RankOps, Spread, Straggler, align_clocks, match_ops, waits};

use crate::recording::Recording;

/// One rank's clock against the reference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clock {
    /// Global rank.
    pub rank: u32,
    /// How far it is ahead.
    pub offset: Nanos,
    /// How fast it gains, parts per million.
    pub drift_ppm: f64,
}

/// Ranks on one clock.
#[derive(Clone, Debug, PartialEq)]
pub struct Together {
    /// How clocks were aligned.
    pub method: &'static str,
    /// Rank of the reference clock.
    pub reference: u32,
    /// Spread of ends after alignment; less is not claimed.
    pub residual: Spread,
    /// One per rank.
    pub clocks: Vec<Clock>,
    /// Collectives seen by two ranks or more.
    pub matched: usize,
    /// Operations per rank that should have partners and have none.
    pub unpaired: Vec<u64>,
    /// Last minus first arrival.
    pub arrival_spread: Spread,
    /// Who is last how often; lateness is claimed only above the residual.
    pub stragglers: Vec<Straggler>,
    /// Waiting over all matched operations and ranks.
    pub waiting: Nanos,
    /// Transfer over all matched operations and ranks.
    pub transfer: Nanos,
}

/// How the ranks relate.
#[derive(Clone, Debug, PartialEq)]
pub enum RankRelation {
    /// They are on one clock.
    Together(Box<Together>),
    /// They share no collective: ranks cannot be merged, for this reason.
    CannotMerge(String),
}

pub(super) fn relate(recordings: &[Recording], ledger: &mut Ledger) -> RankRelation {
    let ops: Vec<RankOps> =
        recordings.iter().map(|r| RankOps::new(r.rank(), &r.trace, &r.collectives)).collect();
    let matched = match_ops(&ops, ledger);
    let clocks = match align_clocks(&ops, &matched) {
        Ok(clocks) => clocks,
        Err(error) => {
            return RankRelation::CannotMerge(format!("ranks cannot be merged: {error}"));
        }
    };
    let waits = waits(&ops, &matched, &clocks);
    let members = |number: u32| matched.ops[number as usize].members.len() as f64;
    RankRelation::Together(Box::new(Together {
        method: clocks.method.as_str(),
        reference: clocks.reference,
        residual: clocks.residual,
        clocks: clocks
            .ranks
            .iter()
            .map(|c| Clock { rank: c.rank, offset: c.offset, drift_ppm: c.drift_ppm })
            .collect(),
        matched: matched.ops.len(),
        unpaired: matched.unpaired.clone(),
        arrival_spread: waits.arrival_spread,
        waiting: waits.stragglers.iter().map(|s| s.waited).sum(),
        transfer: waits.ops.iter().map(|op| op.transfer.scale(members(op.op))).sum(),
        stragglers: waits.stragglers,
    }))
}
