//! Pairs the operations of ranks.

use std::collections::BTreeMap;

use foretrain_core::{Bytes, Ledger, Severity, stats};
use foretrain_graph::CollectiveKind;

use super::identity::{GroupKey, identify};
use super::{RankOp, RankOps};

/// One rank's part in a matched operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Position of the rank in the slice given to [`match_ops`].
    pub rank: u32,
    /// Index in that rank's [`RankOps::ops`].
    pub op: u32,
}

impl Member {
    /// The operation in the slice that was matched.
    pub(crate) fn of<'a>(&self, ranks: &'a [RankOps]) -> &'a RankOp {
        &ranks[self.rank as usize].ops[self.op as usize]
    }
}

/// One operation as its members saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchedOp {
    /// Index in [`MatchedCollectives::groups`].
    pub group: u32,
    /// What is done; for a send that meets a receive, what the side with more of them does.
    pub kind: CollectiveKind,
    /// The largest message size any member knows.
    pub bytes: Option<Bytes>,
    /// The members at hand in order of rank, at least two.
    pub members: Vec<Member>,
}

/// A group that at least one trace uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchedGroup {
    /// The framework's name.
    pub name: String,
    /// Number of ranks, 0 if unknown.
    pub size: u32,
    /// Global ranks, empty if no trace lists them.
    pub ranks: Vec<u32>,
    /// Positions of the ranks at hand, by rank.
    pub members: Vec<u32>,
}

/// Which operations of different ranks are one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MatchedCollectives {
    /// Groups by members, then name.
    pub groups: Vec<MatchedGroup>,
    /// Operations seen by two ranks or more, by group, then order.
    pub ops: Vec<MatchedOp>,
    /// Operations of each rank whose partners should be at hand but were not found (the ends of
    /// recording windows, lost records). Groups with one rank at hand, and sends and receives
    /// in groups of more than two, are unpaired by design and not counted.
    pub unpaired: Vec<u64>,
}

/// Shifts tried around zero and around each candidate of the pattern.
const NEAR_SHIFTS: i64 = 16;
/// Positions looked at when a shift is scored.
const SCORED: usize = 512;
/// Shifts walked along in full, of the best agreeing and of the steadiest.
const WALKED: usize = 3;
/// How far a lost record is searched for, and how many operations must then agree.
const RESYNC: usize = 32;
const RESYNC_RUN: usize = 4;

/// Matches the operations of `ranks` by group, order within the group, kind and size.
///
/// Recording windows may differ: the shift between two ranks' sequences is found from the
/// pattern of kinds and sizes and, where that repeats, from how steadily the ends run together.
/// Recorded sequence numbers that disagree with the result are warned about once
/// ("collective-sequence-disagrees") and otherwise ignored. The order of `ranks` does not matter.
pub fn match_ops(ranks: &[RankOps], ledger: &mut Ledger) -> MatchedCollectives {
    let mut order: Vec<usize> = (0..ranks.len()).collect();
    order.sort_by_key(|&position| (ranks[position].rank, position));
    let occurrences = identify(ranks, &order, ledger);
    let sequences = sequences(ranks);
    let mut matched =
        MatchedCollectives { unpaired: vec![0; ranks.len()], ..MatchedCollectives::default() };
    for (key, mut places) in occurrences {
        places.sort_by_key(|&(position, _)| (ranks[position as usize].rank, position));
        let group = matched.groups.len() as u32;
        let members: Vec<u32> = places.iter().map(|&(position, _)| position).collect();
        let parts: Vec<Part<'_>> = places
            .iter()
            .filter_map(|place| sequences.get(place).map(|ops| Part::new(ranks, *place, ops)))
            .collect();
        matched.groups.push(described(&key, members));
        if parts.len() >= 2 {
            match_group(group, key.size(), ranks, &parts, &mut matched, ledger);
        }
    }
    check_sequence_numbers(ranks, &matched, ledger);
    matched
}

/// Indices of each rank's operations, by group.
fn sequences(ranks: &[RankOps]) -> BTreeMap<(u32, u32), Vec<u32>> {
    let mut sequences: BTreeMap<(u32, u32), Vec<u32>> = BTreeMap::new();
    for (rank, position) in ranks.iter().zip(0_u32..) {
        for (op, index) in rank.ops.iter().zip(0_u32..) {
            sequences.entry((position, op.group)).or_default().push(index);
        }
    }
    sequences
}

impl GroupKey {
    fn size(&self) -> usize {
        match self {
            Self::Members(members, _) => members.len(),
            Self::Named(_, size) => *size as usize,
        }
    }
}

fn described(key: &GroupKey, members: Vec<u32>) -> MatchedGroup {
    match key {
        GroupKey::Members(ranks, name) => MatchedGroup {
            name: name.clone(),
            size: ranks.len() as u32,
            ranks: ranks.clone(),
            members,
        },
        GroupKey::Named(name, size) => {
            MatchedGroup { name: name.clone(), size: *size, ranks: Vec::new(), members }
        }
    }
}

/// One rank's operations in one group.
struct Part<'a> {
    position: u32,
    ops: Vec<(u32, &'a RankOp)>,
}

impl<'a> Part<'a> {
    fn new(ranks: &'a [RankOps], (position, _): (u32, u32), ops: &[u32]) -> Self {
        let rank = &ranks[position as usize];
        let ops = ops.iter().map(|&index| (index, &rank.ops[index as usize]));
        Self { position, ops: ops.collect() }
    }
}

/// Sequences of a group that are matched on their own. Sends and receives are not issued in one
/// order by both sides, so each direction is a sequence.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Channel {
    Collective,
    /// From the lower rank of two to the higher.
    Up,
    /// From the higher rank of two to the lower.
    Down,
}

/// The channel of an operation of the group's first or a later member; `None` where the n-th
/// operations of two ranks may be with different peers.
fn channel(kind: CollectiveKind, size: usize, is_first: bool) -> Option<Channel> {
    match kind {
        CollectiveKind::Send | CollectiveKind::Recv if size == 2 => {
            let up = (kind == CollectiveKind::Send) == is_first;
            Some(if up { Channel::Up } else { Channel::Down })
        }
        CollectiveKind::Send | CollectiveKind::Recv => None,
        CollectiveKind::SendRecv if size != 2 => None,
        _ => Some(Channel::Collective),
    }
}

fn match_group(
    group: u32,
    size: usize,
    ranks: &[RankOps],
    parts: &[Part<'_>],
    matched: &mut MatchedCollectives,
    ledger: &mut Ledger,
) {
    for wanted in [Channel::Collective, Channel::Up, Channel::Down] {
        let parts: Vec<Part<'_>> = parts
            .iter()
            .enumerate()
            .map(|(i, part)| {
                let ours = |op: &RankOp| channel(op.kind, size, i == 0) == Some(wanted);
                let ops = part.ops.iter().filter(|(_, op)| ours(op)).copied().collect();
                Part { position: part.position, ops }
            })
            .collect();
        match_channel(group, ranks, &parts, matched, ledger);
    }
}

fn match_channel(
    group: u32,
    ranks: &[RankOps],
    parts: &[Part<'_>],
    matched: &mut MatchedCollectives,
    ledger: &mut Ledger,
) {
    // The longest sequence, of the lowest rank, stands for the group.
    let Some(lead) = (0..parts.len()).min_by_key(|&i| (std::cmp::Reverse(parts[i].ops.len()), i))
    else {
        return;
    };
    let reference = &parts[lead];
    let mut members: Vec<Vec<Member>> = vec![Vec::new(); reference.ops.len()];
    for (i, part) in parts.iter().enumerate() {
        let pairs = if i == lead {
            (0..reference.ops.len()).map(|at| (at, at)).collect()
        } else {
            pair(&reference.ops, &part.ops)
        };
        if pairs.len() * 2 < part.ops.len() {
            ledger.record(
                Severity::Warning,
                "collectives-do-not-match",
                "less than half of a rank's collectives in a group match the other ranks'",
            );
        }
        for (at, own) in pairs {
            members[at].push(Member { rank: part.position, op: part.ops[own].0 });
        }
    }
    for part in parts {
        matched.unpaired[part.position as usize] += part.ops.len() as u64;
    }
    for (members, (_, op)) in members.into_iter().zip(&reference.ops) {
        if members.len() < 2 {
            continue;
        }
        for member in &members {
            matched.unpaired[member.rank as usize] -= 1;
        }
        let bytes = members.iter().filter_map(|member| member.of(ranks).bytes).max();
        matched.ops.push(MatchedOp { group, kind: op.kind, bytes, members });
    }
}

type Ops<'a> = [(u32, &'a RankOp)];

/// A send meets a receive; everything else its own kind.
fn meeting(kind: CollectiveKind) -> CollectiveKind {
    if kind == CollectiveKind::Recv { CollectiveKind::Send } else { kind }
}

/// Kinds must agree; sizes where both are known. Uneven exchanges differ in size by design.
fn agree(a: &RankOp, b: &RankOp) -> bool {
    let uneven = matches!(
        a.kind,
        CollectiveKind::AllToAll
            | CollectiveKind::Gather
            | CollectiveKind::Scatter
            | CollectiveKind::Reduce
    );
    meeting(a.kind) == meeting(b.kind)
        && (uneven || a.bytes.is_none() || b.bytes.is_none() || a.bytes == b.bytes)
}

/// Pairs of positions in `reference` and `own`.
type Pairs = Vec<(usize, usize)>;

/// Pairs two ranks' sequences of one group, at the shift that fits best.
fn pair(reference: &Ops<'_>, own: &Ops<'_>) -> Pairs {
    let zero = Walk::new(reference, own, 0);
    let shorter = reference.len().min(own.len());
    // Where the ends run together far more steadily than operations follow each other, there is
    // nothing to search for.
    if zero.covers(shorter) && zero.unrest <= 0.01 * spacing(reference) {
        return zero.pairs;
    }
    let walks: Vec<Walk> = likely_shifts(reference, own)
        .into_iter()
        .map(|shift| Walk::new(reference, own, shift))
        .collect();
    let most = walks.iter().map(|walk| walk.pairs.len()).fold(zero.pairs.len(), usize::max);
    let best = walks.into_iter().filter(|walk| walk.covers(most)).min_by(Walk::steadier);
    match best {
        Some(best) if !zero.covers(most) || best.unrest < 0.25 * zero.unrest => best.pairs,
        _ => zero.pairs,
    }
}

/// The pairs found when starting at a shift: `own[j]` meets `reference[j + shift]`.
struct Walk {
    shift: i64,
    pairs: Pairs,
    unrest: f64,
}

impl Walk {
    fn new(reference: &Ops<'_>, own: &Ops<'_>, shift: i64) -> Self {
        let pairs = walk(reference, own, shift);
        let apart = pairs.iter().map(|&(i, j)| (reference[i].1.end - own[j].1.end).nanos());
        let unrest = unrest(apart);
        Self { shift, pairs, unrest }
    }

    fn covers(&self, length: usize) -> bool {
        self.pairs.len() * 10 >= length * 9
    }

    fn steadier(&self, other: &Self) -> std::cmp::Ordering {
        let key = |walk: &Self| (walk.shift.unsigned_abs(), walk.shift);
        self.unrest.total_cmp(&other.unrest).then(key(self).cmp(&key(other)))
    }
}

/// Median change between neighbours of the difference of ends: free of offset and drift.
fn unrest(apart: impl Iterator<Item = i64>) -> f64 {
    let apart: Vec<i64> = apart.collect();
    let changes: Vec<f64> =
        apart.windows(2).map(|w| w[1].saturating_sub(w[0]).unsigned_abs() as f64).collect();
    // One change says nothing: a single overlap must not win by having no unrest.
    if changes.len() < 2 { f64::INFINITY } else { stats::median(&changes).unwrap_or(0.0) }
}

/// Goes along both sequences and steps over records that one side lacks.
fn walk(reference: &Ops<'_>, own: &Ops<'_>, shift: i64) -> Pairs {
    let mut i = shift.max(0) as usize;
    let mut j = (-shift).max(0) as usize;
    let mut pairs = Vec::with_capacity(own.len());
    while i < reference.len() && j < own.len() {
        if agree(reference[i].1, own[j].1) {
            pairs.push((i, j));
            (i, j) = (i + 1, j + 1);
            continue;
        }
        let resync = (1..=RESYNC).find_map(|skip| {
            if runs(reference, own, i + skip, j) {
                Some((i + skip, j))
            } else if runs(reference, own, i, j + skip) {
                Some((i, j + skip))
            } else {
                None
            }
        });
        (i, j) = resync.unwrap_or((i + 1, j + 1));
    }
    pairs
}

fn runs(reference: &Ops<'_>, own: &Ops<'_>, i: usize, j: usize) -> bool {
    let (Some(a), Some(b)) = (reference.get(i..), own.get(j..)) else { return false };
    let mut run = a.iter().zip(b).take(RESYNC_RUN).peekable();
    run.peek().is_some() && run.all(|(a, b)| agree(a.1, b.1))
}

/// How well two sequences fit at a shift.
#[derive(Clone, Copy, Debug)]
struct Fit {
    shift: i64,
    agreeing: f64,
    unrest: f64,
}

/// Shifts worth walking along: the steadiest of those that agree best, and of all.
fn likely_shifts(reference: &Ops<'_>, own: &Ops<'_>) -> Vec<i64> {
    let mut fits: Vec<Fit> = candidate_shifts(reference, own)
        .into_iter()
        .filter_map(|shift| fit(reference, own, shift))
        .collect();
    fits.sort_by(|a, b| {
        a.unrest
            .total_cmp(&b.unrest)
            .then(a.shift.abs().cmp(&b.shift.abs()))
            .then(a.shift.cmp(&b.shift))
    });
    let most = fits.iter().map(|fit| fit.agreeing).fold(0.0, f64::max);
    let agreeing = fits.iter().filter(|fit| fit.agreeing >= most - 0.02).take(WALKED);
    let mut shifts: Vec<i64> =
        agreeing.chain(fits.iter().take(WALKED)).map(|fit| fit.shift).collect();
    shifts.sort_unstable();
    shifts.dedup();
    shifts
}

fn spacing(ops: &Ops<'_>) -> f64 {
    let gaps: Vec<f64> =
        ops.windows(2).take(SCORED).map(|w| (w[1].1.end - w[0].1.end).nanos() as f64).collect();
    stats::median(&gaps).unwrap_or(0.0)
}

fn candidate_shifts(reference: &Ops<'_>, own: &Ops<'_>) -> Vec<i64> {
    let tail = reference.len() as i64 - own.len() as i64;
    let mut shifts: Vec<i64> = (-NEAR_SHIFTS..=NEAR_SHIFTS).collect();
    shifts.extend((tail - NEAR_SHIFTS)..=(tail + NEAR_SHIFTS));
    shifts.extend(anchored_shifts(reference, own));
    shifts.sort_unstable();
    shifts.dedup();
    shifts
}

/// Shifts that bring operations together whose kind and size occur once on each side; the most
/// frequent ones.
fn anchored_shifts(reference: &Ops<'_>, own: &Ops<'_>) -> Vec<i64> {
    let once = |ops: &Ops<'_>| {
        let mut places: BTreeMap<(CollectiveKind, Bytes), Option<i64>> = BTreeMap::new();
        for ((_, op), place) in ops.iter().zip(0_i64..) {
            if let Some(bytes) = op.bytes {
                places.entry((op.kind, bytes)).and_modify(|p| *p = None).or_insert(Some(place));
            }
        }
        places
    };
    let (a, b) = (once(reference), once(own));
    let mut votes: BTreeMap<i64, u32> = BTreeMap::new();
    for (key, place) in &a {
        if let (Some(i), Some(Some(j))) = (place, b.get(key)) {
            *votes.entry(i - j).or_default() += 1;
        }
    }
    let mut votes: Vec<(i64, u32)> = votes.into_iter().collect();
    votes.sort_by_key(|&(shift, count)| (std::cmp::Reverse(count), shift));
    votes.into_iter().take(8).map(|(shift, _)| shift).collect()
}

/// `None` where the sequences overlap in less than half of the shorter one.
fn fit(reference: &Ops<'_>, own: &Ops<'_>, shift: i64) -> Option<Fit> {
    let a = reference.get(usize::try_from(shift.max(0)).ok()?..)?;
    let b = own.get(usize::try_from((-shift).max(0)).ok()?..)?;
    let overlap = a.len().min(b.len());
    if overlap == 0 || overlap * 2 < reference.len().min(own.len()) {
        return None;
    }
    let scored = overlap.min(SCORED);
    let pairs = || a.iter().zip(b).take(scored).map(|(a, b)| (a.1, b.1));
    let agreeing = pairs().filter(|(a, b)| agree(a, b)).count() as f64 / scored as f64;
    let unrest = unrest(pairs().map(|(a, b)| (a.end - b.end).nanos()));
    Some(Fit { shift, agreeing, unrest })
}

fn check_sequence_numbers(ranks: &[RankOps], matched: &MatchedCollectives, ledger: &mut Ledger) {
    let disagree = matched.ops.iter().find(|op| {
        let mut numbers = op.members.iter().filter_map(|member| member.of(ranks).sequence);
        numbers.next().is_some_and(|first| numbers.any(|number| number != first))
    });
    if let Some(op) = disagree {
        ledger.record_at(
            Severity::Warning,
            "collective-sequence-disagrees",
            "recorded sequence numbers of matched collectives differ between ranks; \
             order was used instead",
            || format!("{} of group {}", op.kind, matched.groups[op.group as usize].name),
        );
    }
}
