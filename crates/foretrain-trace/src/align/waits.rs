//! Who waited for whom in each matched operation.

use foretrain_core::{Nanos, stats};
use foretrain_graph::CollectiveKind;

use super::RankOps;
use super::clocks::{ClockAlignment, Spread};
use super::matching::{MatchedCollectives, MatchedOp};

/// One member's part in an operation. Times are the reference rank's trace-relative times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberWait {
    /// Position of the rank in the aligned slice.
    pub rank: u32,
    /// When it arrived.
    pub arrival: Nanos,
    /// How long it waited for the last one.
    pub wait: Nanos,
    /// When it left.
    pub end: Nanos,
}

/// The course of one matched operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpWait {
    /// Index in [`MatchedCollectives::ops`].
    pub op: u32,
    /// When the last member at hand arrived, on the reference clock.
    pub last_arrival: Nanos,
    /// Position of the rank that arrived last; `None` if the margin to the one before is within
    /// the clocks' residual.
    pub last: Option<u32>,
    /// Last minus first arrival; `None` if that is within the clocks' residual.
    pub skew: Option<Nanos>,
    /// Time to move the data once all had arrived: the shortest duration over the members at
    /// hand, which no clock error touches. Members not at hand may have come later still, so
    /// with part of a group this is an upper bound. A sender is done when its data is in some
    /// buffer, so for a message only the receiver counts, and the clocks if it came first.
    pub transfer: Nanos,
    /// The same by the aligned clocks: median end minus last arrival, not below zero.
    pub transfer_by_clock: Nanos,
    /// Members in order of rank.
    pub members: Vec<MemberWait>,
}

/// How often and by how much a rank is late.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Straggler {
    /// Global rank.
    pub rank: u32,
    /// Matched operations the rank took part in.
    pub ops: usize,
    /// How often it arrived last by more than the clocks' residual.
    pub times_last: usize,
    /// Median of its arrival minus the median arrival of the other members; negative for a rank
    /// that comes early.
    pub lateness: Nanos,
    /// Whether `lateness` exceeds the clocks' residual.
    pub is_claimed: bool,
    /// Time by which it alone held up the others: last arrival minus the one before, summed over
    /// the operations where it was last.
    pub held_up: Nanos,
    /// Time it waited for others, summed over all operations.
    pub waited: Nanos,
}

/// Waiting and transfer of all matched operations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Waits {
    /// One entry per matched operation, in the same order.
    pub ops: Vec<OpWait>,
    /// One entry per rank, the most often last first, then by rank.
    pub stragglers: Vec<Straggler>,
    /// Spread of arrivals (last minus first) over all operations, as measured.
    pub arrival_spread: Spread,
    /// Below this, differences are not claimed: the 90th percentile of the clocks' residual.
    pub threshold: Nanos,
}

/// Splits the time of each matched operation into waiting and transfer, and sums up who was late.
pub fn waits(ranks: &[RankOps], matched: &MatchedCollectives, clocks: &ClockAlignment) -> Waits {
    let threshold = clocks.residual.p90;
    let ops: Vec<OpWait> = matched
        .ops
        .iter()
        .zip(0_u32..)
        .filter(|(op, _)| !op.members.is_empty())
        .map(|(op, index)| op_wait(ranks, op, index, clocks, threshold))
        .collect();
    let stragglers = stragglers(ranks, &ops, threshold);
    let arrival_spread = Spread::of(
        ops.iter().map(|op| op.members.iter().map(|member| member.wait).max().unwrap_or_default()),
    );
    Waits { ops, stragglers, arrival_spread, threshold }
}

fn op_wait(
    ranks: &[RankOps],
    op: &MatchedOp,
    index: u32,
    clocks: &ClockAlignment,
    threshold: Nanos,
) -> OpWait {
    let aligned = |rank: u32, time: Nanos| clocks.to_reference(rank as usize, time);
    let arrivals: Vec<(Nanos, u32)> =
        op.members.iter().map(|m| (aligned(m.rank, m.of(ranks).start), m.rank)).collect();
    let left = op.members.iter().map(|m| aligned(m.rank, m.of(ranks).end));
    let mut ends: Vec<i64> =
        op.members.iter().map(|m| aligned(m.rank, m.of(ranks).end).nanos()).collect();
    let mut order = arrivals.clone();
    order.sort_unstable();
    let (last_arrival, last) = order.last().copied().unwrap_or_default();
    let first_arrival = order.first().map_or(last_arrival, |(at, _)| *at);
    let margin = order.iter().rev().nth(1).map_or(Nanos::ZERO, |(at, _)| last_arrival - *at);
    let skew = last_arrival - first_arrival;
    let durations = op
        .members
        .iter()
        .map(|m| m.of(ranks))
        .filter(|m| m.kind != CollectiveKind::Send)
        .map(|m| m.end - m.start);
    let received = op.members.iter().filter(|m| m.of(ranks).kind == CollectiveKind::Recv);
    let received = received.map(|m| aligned(m.rank, m.of(ranks).end) - last_arrival);
    let end = stats::median_i64(&mut ends).map_or(last_arrival, Nanos::from_nanos);
    OpWait {
        op: index,
        last_arrival,
        last: (margin > threshold).then_some(last),
        skew: (skew > threshold).then_some(skew),
        transfer: durations.chain(received).min().unwrap_or_default().clamp_positive(),
        transfer_by_clock: (end - last_arrival).clamp_positive(),
        members: arrivals
            .into_iter()
            .zip(left)
            .map(|((arrival, rank), end)| MemberWait {
                rank,
                arrival,
                wait: last_arrival - arrival,
                end,
            })
            .collect(),
    }
}

#[derive(Clone, Default)]
struct Tally {
    lateness: Vec<f64>,
    times_last: usize,
    held_up: Nanos,
    waited: Nanos,
}

fn stragglers(ranks: &[RankOps], ops: &[OpWait], threshold: Nanos) -> Vec<Straggler> {
    let mut tallies = vec![Tally::default(); ranks.len()];
    for op in ops {
        let mut order: Vec<(Nanos, u32)> =
            op.members.iter().map(|member| (member.arrival, member.rank)).collect();
        order.sort_unstable();
        for (place, &(arrival, rank)) in order.iter().enumerate() {
            let tally = &mut tallies[rank as usize];
            tally.waited += op.last_arrival - arrival;
            if let Some(others) = median_of_others(&order, place) {
                tally.lateness.push((arrival - others).nanos() as f64);
            }
        }
        if let (Some(last), [.., before, latest]) = (op.last, order.as_slice()) {
            let tally = &mut tallies[last as usize];
            tally.times_last += 1;
            tally.held_up += latest.0 - before.0;
        }
    }
    let mut stragglers: Vec<Straggler> = ranks
        .iter()
        .zip(tallies)
        .map(|(rank, tally)| {
            let lateness =
                stats::median(&tally.lateness).map_or(Nanos::ZERO, Nanos::from_nanos_f64);
            Straggler {
                rank: rank.rank,
                ops: tally.lateness.len(),
                times_last: tally.times_last,
                lateness,
                is_claimed: lateness > threshold,
                held_up: tally.held_up,
                waited: tally.waited,
            }
        })
        .collect();
    stragglers.sort_by_key(|s| (std::cmp::Reverse((s.times_last, s.held_up)), s.rank));
    stragglers
}

/// The lower median arrival of all but the one at `place` in a sorted list.
fn median_of_others(order: &[(Nanos, u32)], place: usize) -> Option<Nanos> {
    let others = order.len().checked_sub(1).filter(|n| *n > 0)?;
    let middle = (others - 1) / 2;
    let at = if middle < place { middle } else { middle + 1 };
    order.get(at).map(|(arrival, _)| *arrival)
}
