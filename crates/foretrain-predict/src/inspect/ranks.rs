//! What several ranks say together.

use foretrain_core::{Ledger, Nanos};
use foretrain_trace::align::{RankOps, Spread, Straggler, align_clocks, match_ops, waits};

/// One rank against the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankAmongOthers {
    /// Global rank.
    pub rank: u32,
    /// How far its clock is ahead of the reference.
    pub clock_offset: Nanos,
    /// How fast its clock gains, parts per million.
    pub clock_drift_ppm: f64,
    /// How often it came last and what that cost; lateness is claimed only above the clocks'
    /// residual.
    pub straggler: Straggler,
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
    /// Collectives seen by two ranks or more.
    pub matched: usize,
    /// Operations per rank that should have partners and have none.
    pub unpaired: Vec<u64>,
    /// Last minus first arrival.
    pub arrival_spread: Spread,
    /// One per rank, the most often last first.
    pub ranks: Vec<RankAmongOthers>,
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

pub(super) fn relate(ops: &[RankOps], ledger: &mut Ledger) -> RankRelation {
    let matched = match_ops(ops, ledger);
    let clocks = match align_clocks(ops, &matched) {
        Ok(clocks) => clocks,
        Err(error) => {
            return RankRelation::CannotMerge(format!("ranks cannot be merged: {error}"));
        }
    };
    let waits = waits(ops, &matched, &clocks);
    let ranks = waits.stragglers.iter().filter_map(|straggler| {
        let clock = clocks.ranks.iter().find(|clock| clock.rank == straggler.rank)?;
        Some(RankAmongOthers {
            rank: straggler.rank,
            clock_offset: clock.offset,
            clock_drift_ppm: clock.drift_ppm,
            straggler: *straggler,
        })
    });
    let members = |number: u32| matched.ops[number as usize].members.len() as f64;
    RankRelation::Together(Box::new(Together {
        method: clocks.method.as_str(),
        reference: clocks.reference,
        residual: clocks.residual,
        matched: matched.ops.len(),
        unpaired: matched.unpaired.clone(),
        arrival_spread: waits.arrival_spread,
        waiting: waits.stragglers.iter().map(|s| s.waited).sum(),
        transfer: waits.ops.iter().map(|op| op.transfer.scale(members(op.op))).sum(),
        ranks: ranks.collect(),
    }))
}
