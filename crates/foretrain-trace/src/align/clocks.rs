//! The clocks of ranks, aligned on the ends of collectives.

use std::collections::BTreeSet;

use foretrain_core::{InputError, Nanos, Result, stats};
use foretrain_graph::CollectiveKind;

use super::RankOps;
use super::bounds::Bounds;
use super::line::fit_line;
use super::matching::MatchedCollectives;

/// Which operations carried the alignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Ends of collectives that no member leaves before all have arrived.
    SynchronisingEnds,
    /// For ranks that share sends and receives only: no message arrives before it is sent, which
    /// bounds a clock from both sides where messages go both ways.
    Messages,
    /// Ends of all matched operations, since some rank shares only rooted ones: a member of those
    /// may leave early, so the residual is larger.
    AllEnds,
}

impl Method {
    /// The words for reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SynchronisingEnds => "median and Theil-Sen fit of collective end times",
            Self::Messages => "collective end times, and messages, none of which arrives early",
            Self::AllEnds => "median and Theil-Sen fit of all matched operations' end times",
        }
    }
}

/// How one rank's clock relates to the reference rank's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankClock {
    /// Global rank.
    pub rank: u32,
    /// How far this clock is ahead of the reference clock at `origin`; 0 where the recorded
    /// clocks already agree to within the noise of the fit.
    pub offset: Nanos,
    /// How much this clock gains on the reference, in parts per million; 0 where the data show
    /// no more than noise.
    pub drift_ppm: f64,
    /// Matched operations the fit used; 0 for the reference itself.
    pub n_matched: usize,
    /// The trace-relative time of this rank around which it was fitted.
    pub origin: Nanos,
    /// The reference rank's trace-relative time at `origin`.
    at_origin: Nanos,
}

impl RankClock {
    /// The reference rank's trace-relative time for a trace-relative time of this rank.
    pub fn to_reference(&self, local: Nanos) -> Nanos {
        let elapsed = local - self.origin;
        let gained = elapsed.scale(self.drift_ppm * 1e-6 / (1.0 + self.drift_ppm * 1e-6));
        self.at_origin + elapsed - gained
    }
}

/// The spread of something over many operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    /// Median.
    pub median: Nanos,
    /// 90th percentile.
    pub p90: Nanos,
    /// Largest.
    pub max: Nanos,
    /// How many operations.
    pub n: usize,
}

impl Spread {
    pub(crate) fn of(values: impl Iterator<Item = Nanos>) -> Self {
        let mut values: Vec<f64> = values.map(|value| value.nanos() as f64).collect();
        values.sort_by(f64::total_cmp);
        let at = |q| stats::quantile_sorted(&values, q).map_or(Nanos::ZERO, Nanos::from_nanos_f64);
        Self { median: at(0.5), p90: at(0.9), max: at(1.0), n: values.len() }
    }
}

/// The clocks of all ranks.
#[derive(Clone, Debug, PartialEq)]
pub struct ClockAlignment {
    /// Global rank of the reference clock.
    pub reference: u32,
    /// One entry per rank, in the order of the slice that was aligned.
    pub ranks: Vec<RankClock>,
    /// How far apart the members of a collective end after alignment, and how far messages leave
    /// a clock free: what the alignment cannot explain. Claims below it are not made.
    pub residual: Spread,
    /// What the alignment rests on.
    pub method: Method,
}

impl ClockAlignment {
    /// The reference rank's trace-relative time for a trace-relative time of the rank at
    /// `position` in the aligned slice.
    pub fn to_reference(&self, position: usize, local: Nanos) -> Nanos {
        self.ranks.get(position).map_or(local, |clock| clock.to_reference(local))
    }
}

/// An offset must exceed the scatter of its points this many times; a smaller one can be the way
/// members leave a collective (host backends let them go one after the other) and not a clock.
const OFFSET_SIGNIFICANCE: f64 = 3.0;
/// Aligns the clocks of `ranks` on the end times of `matched` operations.
///
/// The reference is the rank with the most matched operations (the lowest of equals). Ranks that
/// share no group with it are reached over others that do. Offsets are medians, drifts
/// Theil-Sen slopes (median of pairwise slopes; Theil 1950, Sen 1968); both are kept only where
/// they exceed their noise.
///
/// # Errors
/// If some rank shares no collective with the rest, not even over others: nothing then relates
/// its clock, and merging would show offsets as skew.
pub fn align_clocks(ranks: &[RankOps], matched: &MatchedCollectives) -> Result<ClockAlignment> {
    let Some(reference) = reference(ranks, matched) else {
        return Err(InputError::new("no ranks to align"));
    };
    let solved = [Method::SynchronisingEnds, Method::Messages, Method::AllEnds]
        .into_iter()
        .map(|method| (method, Solver::new(ranks, matched, method).solve(reference)));
    let mut missing = Vec::new();
    for (method, clocks) in solved {
        missing.clear();
        missing.extend((0..ranks.len()).filter(|&i| clocks[i].is_none()));
        if missing.is_empty() {
            let (clocks, free): (Vec<RankClock>, Vec<Option<Nanos>>) =
                clocks.into_iter().flatten().unzip();
            let apart = ends_apart(ranks, matched, &clocks, method);
            let residual = Spread::of(apart.chain(free.into_iter().flatten()));
            return Ok(ClockAlignment {
                reference: ranks[reference].rank,
                ranks: clocks,
                residual,
                method,
            });
        }
    }
    missing.sort_by_key(|&i| ranks[i].rank);
    let list: Vec<String> = missing.iter().take(8).map(|&i| ranks[i].rank.to_string()).collect();
    let more = if missing.len() > list.len() { ", ..." } else { "" };
    Err(InputError::new(format!(
        "rank {}{more} shares no matched collective with rank {}, so their clocks cannot be related",
        list.join(", "),
        ranks[reference].rank
    ))
    .hint("record the same steps on all ranks, with at least one collective over each group")
    .hint("analyse the ranks one by one instead of merging them"))
}

/// Whether no member of such an operation leaves before the last one has arrived.
pub fn synchronises(kind: CollectiveKind) -> bool {
    matches!(
        kind,
        CollectiveKind::AllReduce
            | CollectiveKind::AllGather
            | CollectiveKind::ReduceScatter
            | CollectiveKind::AllToAll
            | CollectiveKind::Barrier
    )
}

fn is_message(kind: CollectiveKind) -> bool {
    matches!(kind, CollectiveKind::Send | CollectiveKind::Recv)
}

/// Whether the ends of such operations relate clocks.
fn ends_carry(method: Method, kind: CollectiveKind) -> bool {
    method == Method::AllEnds || synchronises(kind)
}

fn reference(ranks: &[RankOps], matched: &MatchedCollectives) -> Option<usize> {
    let mut counts = vec![0_usize; ranks.len()];
    for member in matched.ops.iter().flat_map(|op| &op.members) {
        counts[member.rank as usize] += 1;
    }
    (0..ranks.len()).min_by_key(|&i| (std::cmp::Reverse(counts[i]), ranks[i].rank, i))
}

/// A rank's clock and, if only messages relate it, how far they leave it free to either side.
type Solved = (RankClock, Option<Nanos>);

struct Solver<'a> {
    ranks: &'a [RankOps],
    matched: &'a MatchedCollectives,
    method: Method,
    // Usable matched operations of each rank and when it left them by its own clock.
    shared: Vec<Vec<(u32, Nanos)>>,
    clocks: Vec<Option<Solved>>,
    // The round in which an operation's end was last computed, and that end.
    ends: Vec<(u32, Option<Nanos>)>,
    // Whether an operation's members have been gathered for alignment.
    expanded: Vec<bool>,
    reference: usize,
}

impl<'a> Solver<'a> {
    fn new(ranks: &'a [RankOps], matched: &'a MatchedCollectives, method: Method) -> Self {
        let mut shared = vec![Vec::new(); ranks.len()];
        for (op, index) in matched.ops.iter().zip(0_u32..) {
            let by_message = method == Method::Messages && is_message(op.kind);
            if by_message || ends_carry(method, op.kind) {
                for member in &op.members {
                    shared[member.rank as usize].push((index, member.of(ranks).end));
                }
            }
        }
        let ends = vec![(0, None); matched.ops.len()];
        let expanded = vec![false; matched.ops.len()];
        let clocks = vec![None; ranks.len()];
        Self { ranks, matched, method, shared, clocks, ends, expanded, reference: 0 }
    }

    /// Aligns outward from the reference, all ranks that share operations with aligned ones at
    /// a time. Ranks out of reach stay `None`.
    fn solve(mut self, reference: usize) -> Vec<Option<Solved>> {
        self.reference = reference;
        let clock = RankClock {
            rank: self.ranks[reference].rank,
            offset: Nanos::ZERO,
            drift_ppm: 0.0,
            n_matched: 0,
            origin: Nanos::ZERO,
            at_origin: Nanos::ZERO,
        };
        self.clocks[reference] = Some((clock, None));
        let mut frontier = BTreeSet::from([reference]);
        let mut round = 0;
        while !frontier.is_empty() {
            round += 1;
            let next = self.neighbours(&frontier);
            let fitted: Vec<(usize, Option<Solved>)> = next
                .iter()
                .map(|&rank| (rank, self.fit(rank, round).or_else(|| self.by_messages(rank))))
                .collect();
            for (rank, clock) in fitted {
                self.clocks[rank] = clock;
            }
            frontier = next;
        }
        self.clocks
    }

    /// The ranks not yet aligned that share operations with `frontier`. Each operation is looked
    /// through once: all its members are then aligned or about to be.
    fn neighbours(&mut self, frontier: &BTreeSet<usize>) -> BTreeSet<usize> {
        let mut next = BTreeSet::new();
        for &(index, _) in frontier.iter().flat_map(|&rank| &self.shared[rank]) {
            let index = index as usize;
            if std::mem::replace(&mut self.expanded[index], true) {
                continue;
            }
            let members = self.matched.ops[index].members.iter().map(|member| member.rank as usize);
            next.extend(members.filter(|&rank| self.clocks[rank].is_none()));
        }
        next
    }

    /// Fits a rank's ends to those of the ranks aligned in earlier rounds.
    fn fit(&mut self, rank: usize, round: u32) -> Option<Solved> {
        let mut points = Vec::new();
        for i in 0..self.shared[rank].len() {
            let (index, end) = self.shared[rank][i];
            if ends_carry(self.method, self.matched.ops[index as usize].kind)
                && let Some(reference) = self.aligned_end(index as usize, round)
            {
                points.push((end, reference));
            }
        }
        let mut line = fit_line(&points)?;
        let apart = self.bases_apart(rank);
        let mut ahead =
            apart + i128::from(line.origin.nanos()) - i128::from(line.at_origin.nanos());
        let noise = (OFFSET_SIGNIFICANCE * line.noise) as i128;
        if line.drift == 0.0 && ahead.abs() <= noise {
            line.at_origin = saturating(i128::from(line.origin.nanos()) + apart);
            ahead = 0;
        }
        let clock = RankClock {
            rank: self.ranks[rank].rank,
            offset: saturating(ahead),
            drift_ppm: line.drift * 1e6,
            n_matched: points.len(),
            origin: line.origin,
            at_origin: line.at_origin,
        };
        Some((clock, None))
    }

    /// How far time zero of a rank's trace is after the reference's, by the recorded clocks.
    fn bases_apart(&self, rank: usize) -> i128 {
        let base = |rank: usize| i128::from(self.ranks[rank].base_nanos);
        base(rank) - base(self.reference)
    }

    /// A rank's clock from its messages with aligned ranks. Recorded clocks by which no message
    /// arrives early are kept.
    fn by_messages(&self, rank: usize) -> Option<Solved> {
        let mut bounds = Bounds::default();
        for &(index, _) in &self.shared[rank] {
            let op = &self.matched.ops[index as usize];
            let own = op.members.iter().find(|member| member.rank as usize == rank)?.of(self.ranks);
            for member in op.members.iter().filter(|_| is_message(op.kind)) {
                let Some((clock, _)) = &self.clocks[member.rank as usize] else { continue };
                let other = member.of(self.ranks);
                if own.kind == CollectiveKind::Send {
                    bounds.sent(own.start, clock.to_reference(other.end));
                } else {
                    bounds.received(own.end, clock.to_reference(other.start));
                }
            }
        }
        let apart = self.bases_apart(rank);
        let (ahead, free) = bounds.settle(saturating(-apart))?;
        let clock = RankClock {
            rank: self.ranks[rank].rank,
            offset: saturating(apart + i128::from(ahead.nanos())),
            drift_ppm: 0.0,
            n_matched: bounds.messages,
            origin: ahead,
            at_origin: Nanos::ZERO,
        };
        Some((clock, Some(free)))
    }

    /// The median end of an operation over the members whose clocks are known.
    fn aligned_end(&mut self, index: usize, round: u32) -> Option<Nanos> {
        if self.ends[index].0 != round {
            let mut ends: Vec<i64> = self.matched.ops[index]
                .members
                .iter()
                .filter_map(|member| {
                    let (clock, _) = self.clocks[member.rank as usize].as_ref()?;
                    Some(clock.to_reference(member.of(self.ranks).end).nanos())
                })
                .collect();
            let end = stats::median_i64(&mut ends).map(Nanos::from_nanos);
            self.ends[index] = (round, end);
        }
        self.ends[index].1
    }
}

fn saturating(nanos: i128) -> Nanos {
    Nanos::from_nanos(nanos.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64)
}

/// How far apart the members of each operation end by the aligned clocks.
fn ends_apart<'a>(
    ranks: &'a [RankOps],
    matched: &'a MatchedCollectives,
    clocks: &'a [RankClock],
    method: Method,
) -> impl Iterator<Item = Nanos> + 'a {
    let carrying = matched.ops.iter().filter(move |op| ends_carry(method, op.kind));
    carrying.map(|op| {
        let ends = || {
            op.members
                .iter()
                .map(|member| clocks[member.rank as usize].to_reference(member.of(ranks).end))
        };
        match (ends().max(), ends().min()) {
            (Some(last), Some(first)) => last - first,
            _ => Nanos::ZERO,
        }
    })
}
