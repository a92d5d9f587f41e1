//! The clocks of ranks, aligned on the ends of collectives.

use std::collections::BTreeSet;

use foretrain_core::{InputError, Nanos, Result, stats};
use foretrain_graph::CollectiveKind;

use super::RankOps;
use super::matching::MatchedCollectives;

/// Which operations carried the alignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Ends of collectives that no member leaves before all have arrived.
    SynchronisingEnds,
    /// Ends of all matched operations, since some rank shares only rooted ones or sends and
    /// receives: a member of those may leave early, so the residual is larger.
    AllEnds,
}

impl Method {
    /// The words for reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SynchronisingEnds => "median and Theil-Sen fit of collective end times",
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
    /// How far apart the members of an operation end after alignment: what the alignment cannot
    /// explain. Claims below it are not made.
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

/// Drift is only sought with this many points.
const MIN_DRIFT_POINTS: usize = 6;
/// Drift must exceed its standard error this many times to be believed.
const DRIFT_SIGNIFICANCE: f64 = 4.0;
/// An offset must exceed the scatter of its points this many times; a smaller one can be the way
/// members leave a collective (host backends let them go one after the other) and not a clock.
const OFFSET_SIGNIFICANCE: f64 = 3.0;
/// No working oscillator drifts further; more means mismatched operations.
const MAX_DRIFT: f64 = 1e-3;
/// All pairs of points up to this many, then pairs half the points apart.
const ALL_PAIRS: usize = 64;
/// Time stamps in whole microseconds scatter by at least this (1 us / sqrt 12).
const STAMP_NOISE_NANOS: f64 = 289.0;

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
    let solved = [Method::SynchronisingEnds, Method::AllEnds]
        .into_iter()
        .map(|method| (method, Solver::new(ranks, matched, method).solve(reference)));
    let mut missing = Vec::new();
    for (method, clocks) in solved {
        missing.clear();
        missing.extend((0..ranks.len()).filter(|&i| clocks[i].is_none()));
        if missing.is_empty() {
            let clocks: Vec<RankClock> = clocks.into_iter().flatten().collect();
            let residual = residual(ranks, matched, &clocks, method);
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

/// Whether no member leaves before the last one has arrived.
fn synchronises(kind: CollectiveKind) -> bool {
    matches!(
        kind,
        CollectiveKind::AllReduce
            | CollectiveKind::AllGather
            | CollectiveKind::ReduceScatter
            | CollectiveKind::AllToAll
            | CollectiveKind::Barrier
    )
}

fn carries(method: Method, kind: CollectiveKind) -> bool {
    method == Method::AllEnds || synchronises(kind)
}

fn reference(ranks: &[RankOps], matched: &MatchedCollectives) -> Option<usize> {
    let mut counts = vec![0_usize; ranks.len()];
    for member in matched.ops.iter().flat_map(|op| &op.members) {
        counts[member.rank as usize] += 1;
    }
    (0..ranks.len()).min_by_key(|&i| (std::cmp::Reverse(counts[i]), ranks[i].rank, i))
}

struct Solver<'a> {
    ranks: &'a [RankOps],
    matched: &'a MatchedCollectives,
    // Usable matched operations of each rank and when it left them by its own clock.
    shared: Vec<Vec<(u32, Nanos)>>,
    clocks: Vec<Option<RankClock>>,
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
            if carries(method, op.kind) {
                for member in &op.members {
                    shared[member.rank as usize].push((index, member.of(ranks).end));
                }
            }
        }
        let ends = vec![(0, None); matched.ops.len()];
        let expanded = vec![false; matched.ops.len()];
        let clocks = vec![None; ranks.len()];
        Self { ranks, matched, shared, clocks, ends, expanded, reference: 0 }
    }

    /// Aligns outward from the reference, all ranks that share operations with aligned ones at
    /// a time. Ranks out of reach stay `None`.
    fn solve(mut self, reference: usize) -> Vec<Option<RankClock>> {
        self.reference = reference;
        self.clocks[reference] = Some(RankClock {
            rank: self.ranks[reference].rank,
            offset: Nanos::ZERO,
            drift_ppm: 0.0,
            n_matched: 0,
            origin: Nanos::ZERO,
            at_origin: Nanos::ZERO,
        });
        let mut frontier = BTreeSet::from([reference]);
        let mut round = 0;
        while !frontier.is_empty() {
            round += 1;
            let next = self.neighbours(&frontier);
            let fitted: Vec<(usize, Option<RankClock>)> =
                next.iter().map(|&rank| (rank, self.fit(rank, round))).collect();
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
    fn fit(&mut self, rank: usize, round: u32) -> Option<RankClock> {
        let mut points = Vec::new();
        for i in 0..self.shared[rank].len() {
            let (index, end) = self.shared[rank][i];
            if let Some(reference) = self.aligned_end(index as usize, round) {
                points.push((end, reference));
            }
        }
        let mut line = fit_line(&points)?;
        let base = |rank: usize| i128::from(self.ranks[rank].base_nanos);
        let apart = base(rank) - base(self.reference);
        let mut ahead =
            apart + i128::from(line.origin.nanos()) - i128::from(line.at_origin.nanos());
        let noise = (OFFSET_SIGNIFICANCE * line.noise) as i128;
        if line.drift == 0.0 && ahead.abs() <= noise {
            line.at_origin = saturating(i128::from(line.origin.nanos()) + apart);
            ahead = 0;
        }
        Some(RankClock {
            rank: self.ranks[rank].rank,
            offset: saturating(ahead),
            drift_ppm: line.drift * 1e6,
            n_matched: points.len(),
            origin: line.origin,
            at_origin: line.at_origin,
        })
    }

    /// The median end of an operation over the members whose clocks are known.
    fn aligned_end(&mut self, index: usize, round: u32) -> Option<Nanos> {
        if self.ends[index].0 != round {
            let mut ends: Vec<i64> = self.matched.ops[index]
                .members
                .iter()
                .filter_map(|member| {
                    let clock = self.clocks[member.rank as usize].as_ref()?;
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

/// `reference = at_origin + (local - origin) / (1 + drift)`.
struct Line {
    origin: Nanos,
    at_origin: Nanos,
    drift: f64,
    /// Robust standard deviation of the points around the line in ns, 0 for a single point.
    noise: f64,
}

/// Fits (local end, reference end) points.
fn fit_line(points: &[(Nanos, Nanos)]) -> Option<Line> {
    let mut points = points.to_vec();
    points.sort_unstable();
    let (x0, y0) = *points.get(points.len() / 2)?;
    // Differences against a point in the middle keep nanoseconds exact in floating point.
    let near: Vec<(f64, f64)> = points
        .iter()
        .map(|&(x, y)| ((x - x0).nanos() as f64, ((y - x) - (y0 - x0)).nanos() as f64))
        .collect();
    let lag = |slope: f64| near.iter().map(|(x, d)| d - slope * x).collect::<Vec<f64>>();
    let slope = believable_slope(&near).unwrap_or(0.0);
    let lag = lag(slope);
    let intercept = stats::median(&lag)?;
    Some(Line {
        origin: x0,
        at_origin: y0 + Nanos::from_nanos_f64(intercept),
        // d(reference - local)/d(local) = 1/(1 + drift) - 1
        drift: 1.0 / (1.0 + slope) - 1.0,
        noise: stats::robust_std(&lag).unwrap_or(0.0),
    })
}

/// The Theil-Sen slope of points in order of x, if it is more than noise.
fn believable_slope(points: &[(f64, f64)]) -> Option<f64> {
    let n = points.len();
    if n < MIN_DRIFT_POINTS {
        return None;
    }
    let slope = stats::median(&pair_slopes(points))?;
    let left: Vec<f64> = points.iter().map(|(x, d)| d - slope * x).collect();
    let noise = stats::robust_std(&left)?.max(STAMP_NOISE_NANOS);
    let center = points.iter().map(|(x, _)| x).sum::<f64>() / n as f64;
    let squares: f64 = points.iter().map(|(x, _)| (x - center).powi(2)).sum();
    // The standard error of a least-squares slope, larger by the efficiency lost to medians.
    let error = 1.25 * noise / squares.sqrt();
    let believable = slope.abs() > DRIFT_SIGNIFICANCE * error && slope.abs() <= MAX_DRIFT;
    believable.then_some(slope)
}

fn pair_slopes(points: &[(f64, f64)]) -> Vec<f64> {
    let slope = |a: &(f64, f64), b: &(f64, f64)| {
        let run = b.0 - a.0;
        (run > 0.0).then(|| (b.1 - a.1) / run)
    };
    if points.len() <= ALL_PAIRS {
        let pairs = points
            .iter()
            .enumerate()
            .flat_map(|(i, a)| points[i + 1..].iter().filter_map(move |b| slope(a, b)));
        return pairs.collect();
    }
    let half = points.len() / 2;
    points.iter().zip(&points[half..]).filter_map(|(a, b)| slope(a, b)).collect()
}

fn residual(
    ranks: &[RankOps],
    matched: &MatchedCollectives,
    clocks: &[RankClock],
    method: Method,
) -> Spread {
    let carrying = matched.ops.iter().filter(|op| carries(method, op.kind));
    Spread::of(carrying.map(|op| {
        let ends = || {
            op.members
                .iter()
                .map(|member| clocks[member.rank as usize].to_reference(member.of(ranks).end))
        };
        match (ends().max(), ends().min()) {
            (Some(last), Some(first)) => last - first,
            _ => Nanos::ZERO,
        }
    }))
}
