//! Simulated jobs with known clocks and arrivals through matching, alignment and waits.

use foretrain_core::{Bytes, Ledger, Nanos};
use foretrain_graph::CollectiveKind as K;
use proptest::prelude::*;

use super::*;

/// A clock: what it shows is `true time * (1 + drift) + ahead`.
#[derive(Clone, Copy, Debug, Default)]
struct Clock {
    ahead: i64,
    drift_ppm: f64,
}

impl Clock {
    fn shows(self, time: i64) -> Nanos {
        Nanos::from_nanos(time + (time as f64 * self.drift_ppm * 1e-6).round() as i64 + self.ahead)
    }
}

fn group(name: &str, ranks: &[u32]) -> ProcessGroup {
    ProcessGroup {
        name: name.into(),
        size: ranks.len() as u32,
        ranks: ranks.to_vec(),
        ..ProcessGroup::default()
    }
}

fn rank(rank: u32, groups: Vec<ProcessGroup>) -> RankOps {
    RankOps { rank, base_nanos: 0, groups, ops: Vec::new() }
}

fn add(rank: &mut RankOps, group: u32, what: (K, u64), start: Nanos, end: Nanos) -> &mut RankOp {
    let (kind, bytes) = what;
    let op = RankOp {
        row: rank.ops.len() as u32,
        group,
        kind,
        bytes: Some(Bytes::new(bytes)),
        start,
        end,
        sequence: None,
    };
    rank.ops.push(op);
    rank.ops.last_mut().unwrap()
}

/// `n` all-reduces, one per `period`; rank r arrives `late[r]` after the period begins, and all
/// end `transfer` after the last.
fn all_reduces(clocks: &[Clock], late: &[i64], n: i64, period: i64, transfer: i64) -> Vec<RankOps> {
    let all: Vec<u32> = (0..clocks.len() as u32).collect();
    let last = late.iter().max().copied().unwrap_or(0);
    let one = |r: usize| {
        let mut ops = rank(r as u32, vec![group("0", &all)]);
        for i in 0..n {
            let (start, end) = (i * period + late[r], i * period + last + transfer);
            let clock = clocks[r];
            add(&mut ops, 0, (K::AllReduce, 1 << 20), clock.shows(start), clock.shows(end));
        }
        ops
    };
    (0..clocks.len()).map(one).collect()
}

fn matched(ranks: &[RankOps]) -> MatchedCollectives {
    match_ops(ranks, &mut Ledger::new())
}

const MS: i64 = 1_000_000;

/// Case O16.
#[test]
fn offset_drift_and_skew_are_told_apart() {
    let clocks = [
        Clock::default(),
        Clock::default(),
        Clock { ahead: 11_560 * MS, drift_ppm: 0.0 },
        Clock { ahead: 0, drift_ppm: 20.0 },
    ];
    let ranks = all_reduces(&clocks, &[0, 1_600_000, 0, 0], 20, 500 * MS, 3 * MS);
    let matched = matched(&ranks);
    assert_eq!(matched.ops.len(), 20);
    let aligned = align_clocks(&ranks, &matched).unwrap();
    assert_eq!(aligned.reference, 0);
    assert_eq!(aligned.method, Method::SynchronisingEnds);
    let off = |r: usize| aligned.ranks[r].offset.millis_f64();
    assert!((off(2) - 11_560.0).abs() < 0.1, "{}", off(2));
    assert!(off(1).abs() < 0.001);
    assert!((aligned.ranks[3].drift_ppm - 20.0).abs() < 2.0, "{aligned:?}");
    assert_eq!(aligned.ranks[2].drift_ppm, 0.0);
    assert!(aligned.residual.max < Nanos::from_micros(1), "{:?}", aligned.residual);

    let waits = waits(&ranks, &matched, &aligned);
    let late = waits.stragglers[0];
    assert_eq!((late.rank, late.times_last, late.is_claimed), (1, 20, true));
    assert!((late.lateness.millis_f64() - 1.6).abs() < 0.1, "{late:?}");
    assert!(waits.stragglers[1..].iter().all(|s| s.times_last == 0 && !s.is_claimed));
    for op in &waits.ops {
        assert!((op.skew.unwrap().millis_f64() - 1.6).abs() < 0.1);
        assert!((op.transfer.millis_f64() - 3.0).abs() < 0.01);
        assert!((op.transfer_by_clock.millis_f64() - 3.0).abs() < 0.01);
        assert_eq!(op.last, Some(1));
    }
}

/// Case O16: differences below the residual are not claimed.
#[test]
fn skew_below_the_residual_is_not_claimed() {
    let mut ranks = all_reduces(&[Clock::default(); 2], &[0, 20_000], 40, 10 * MS, MS);
    for (i, op) in ranks[1].ops.iter_mut().enumerate() {
        op.end += Nanos::from_micros([-90, 40, 90, -40][i % 4]);
    }
    let matched = matched(&ranks);
    let aligned = align_clocks(&ranks, &matched).unwrap();
    let waits = waits(&ranks, &matched, &aligned);
    assert!(waits.threshold > Nanos::from_micros(50));
    assert!(waits.ops.iter().all(|op| op.skew.is_none() && op.last.is_none()));
    assert!(waits.stragglers.iter().all(|s| !s.is_claimed));
}

/// Case O09: sequence numbers over all groups, counted twice.
#[test]
fn recorded_sequence_numbers_are_only_a_check() {
    let mut a = rank(0, vec![group("A", &[0, 1]), group("B", &[0])]);
    let mut b = rank(1, vec![group("A", &[0, 1])]);
    let at = |ms: i64| Nanos::from_nanos(ms * MS);
    for (i, g) in [0, 1, 0].into_iter().enumerate() {
        let start = 10 * i as i64;
        add(&mut a, g, (K::AllReduce, 8), at(start), at(start + 5)).sequence =
            Some(2 * (i as i64 + 1));
    }
    for (i, start) in [2, 23].into_iter().enumerate() {
        add(&mut b, 0, (K::AllReduce, 8), at(start), at(20 * i as i64 + 5)).sequence =
            Some(2 * (i as i64 + 1));
    }
    let ranks = [a, b];
    let mut ledger = Ledger::new();
    let matched = match_ops(&ranks, &mut ledger);
    let pairs: Vec<Vec<u32>> =
        matched.ops.iter().map(|op| op.members.iter().map(|m| m.op).collect()).collect();
    assert_eq!(pairs, [[0, 0], [2, 1]]);
    assert_eq!(matched.unpaired, [0, 0]);
    assert_eq!(ledger.count("collective-sequence-disagrees"), 1);
    let aligned = align_clocks(&ranks, &matched).unwrap();
    let waits = waits(&ranks, &matched, &aligned);
    let skews: Vec<_> = waits.ops.iter().map(|op| op.skew.unwrap()).collect();
    assert_eq!(skews, [at(2), at(3)]);
}

/// Members of a host backend's collective leave one after the other: no reason to bend a clock.
#[test]
fn an_offset_within_the_noise_is_no_clock_error() {
    for (ahead, corrected) in [(0, false), (400 * MS, true)] {
        let clocks = [Clock::default(), Clock { ahead, drift_ppm: 0.0 }];
        let mut ranks = all_reduces(&clocks, &[0, 0], 40, 200 * MS, 90 * MS);
        for (i, op) in ranks[1].ops.iter_mut().enumerate() {
            op.end += Nanos::from_millis([5, 30, 10, 22][i % 4]);
        }
        let aligned = align_clocks(&ranks, &matched(&ranks)).unwrap();
        let offset = aligned.ranks[1].offset.nanos();
        assert_eq!(offset != 0, corrected);
        assert!((offset - ahead).abs() <= 30 * MS, "{offset}");
        assert!(aligned.residual.p90 >= Nanos::from_millis(10));
    }
}

#[test]
fn ranks_without_a_shared_collective_are_not_merged() {
    let at = Nanos::from_millis;
    let mut ranks = vec![
        rank(0, vec![group("1", &[0, 1])]),
        rank(1, vec![group("1", &[0, 1])]),
        rank(2, vec![group("1", &[2, 3])]),
        rank(3, vec![group("1", &[2, 3])]),
    ];
    for rank in &mut ranks {
        for i in 0..10 {
            add(rank, 0, (K::AllReduce, 8), at(i * 10), at(i * 10 + 5));
        }
    }
    let found = matched(&ranks);
    assert_eq!(found.groups.len(), 2, "equal names with other members are other groups");
    assert_eq!(found.ops.len(), 20);
    let error = align_clocks(&ranks, &found).unwrap_err();
    assert_eq!(
        error.to_string(),
        "rank 2, 3 shares no matched collective with rank 0, so their clocks cannot be related"
    );
    assert_eq!(error.hints().len(), 2);
}

#[test]
fn clocks_are_reached_over_other_groups() {
    let pairs: [(&str, [u32; 2]); 3] = [("a", [0, 1]), ("b", [1, 2]), ("c", [2, 3])];
    let ahead = [0, 5 * MS, -7 * MS, 3_000 * MS];
    let mut ranks: Vec<RankOps> = (0..4)
        .map(|r| {
            let own = pairs.iter().filter(|(_, ranks)| ranks.contains(&r));
            rank(r, own.map(|(name, ranks)| group(name, ranks)).collect())
        })
        .collect();
    for i in 0..30 {
        for (number, (_, members)) in pairs.iter().enumerate() {
            for &r in members {
                let ops = &mut ranks[r as usize];
                let local = u32::from(r as usize != number && r > 0 && number == r as usize - 1);
                let own = ops.groups.iter().position(|g| g.name == pairs[number].0).unwrap() as u32;
                assert!(own == 0 || local == 0);
                let clock = Clock { ahead: ahead[r as usize], drift_ppm: 0.0 };
                let start = i * 30 * MS + number as i64 * 10 * MS;
                add(ops, own, (K::AllGather, 64), clock.shows(start), clock.shows(start + MS));
            }
        }
    }
    let aligned = align_clocks(&ranks, &matched(&ranks)).unwrap();
    let reference = ahead[aligned.reference as usize];
    for (clock, ahead) in aligned.ranks.iter().zip(ahead) {
        assert_eq!(clock.offset.nanos(), ahead - reference, "{clock:?}");
    }
}

#[test]
fn bases_of_traces_count_as_clock() {
    let mut ranks = all_reduces(&[Clock::default(); 2], &[0, 0], 10, 10 * MS, MS);
    ranks[0].base_nanos = 1_700_000_000_000_000_000;
    ranks[1].base_nanos = 1_700_000_002_000_000_000;
    let aligned = align_clocks(&ranks, &matched(&ranks)).unwrap();
    assert_eq!(aligned.ranks[1].offset, Nanos::from_millis(2_000));
    assert_eq!(aligned.to_reference(1, Nanos::from_nanos(5)), Nanos::from_nanos(5));
}

/// A step of different sizes, repeated; jittered ends so that only one shift is right.
fn patterned(skip: usize, n: usize) -> Vec<(K, u64, i64)> {
    let step = [(K::AllGather, 10), (K::AllReduce, 20), (K::AllReduce, 20), (K::ReduceScatter, 5)];
    let mut time = 0;
    let all = (0..n as u64).map(|i| {
        let (kind, bytes) = step[i as usize % step.len()];
        time += 5 * MS + ((i * 7_919) % 1_000) as i64 * 4_000;
        (kind, bytes, time)
    });
    all.skip(skip).collect()
}

#[test]
fn windows_that_begin_and_end_elsewhere_are_shifted() {
    for (skip_a, skip_b) in [(0, 3), (4, 0), (0, 8), (5, 9)] {
        let mut ranks =
            vec![rank(0, vec![group("0", &[0, 1])]), rank(1, vec![group("0", &[0, 1])])];
        for (r, skip, n) in [(0, skip_a, 60), (1, skip_b, 55)] {
            for (kind, bytes, time) in patterned(skip, n) {
                let ahead = r as i64 * 77 * MS;
                let at = |t: i64| Nanos::from_nanos(t + ahead);
                add(&mut ranks[r], 0, (kind, bytes), at(time - MS), at(time));
            }
        }
        let found = matched(&ranks);
        assert_eq!(found.ops.len(), 55 - skip_a.max(skip_b), "{skip_a} {skip_b}");
        let aligned = align_clocks(&ranks, &found).unwrap();
        assert_eq!(aligned.residual.max, Nanos::ZERO);
        assert_eq!(aligned.ranks[1].offset.nanos().abs(), 77 * MS);
    }
}

#[test]
fn a_lost_record_does_not_shift_what_follows() {
    let mut ranks = vec![rank(0, vec![group("0", &[0, 1])]), rank(1, vec![group("0", &[0, 1])])];
    for (r, lost) in [(0, usize::MAX), (1, 21)] {
        for (i, (kind, bytes, time)) in patterned(0, 60).into_iter().enumerate() {
            if i != lost {
                let at = Nanos::from_nanos;
                add(&mut ranks[r], 0, (kind, bytes), at(time - MS), at(time));
            }
        }
    }
    let found = matched(&ranks);
    assert!(found.ops.len() >= 58, "{}", found.ops.len());
    assert!(found.unpaired[0] <= 2 && found.unpaired[1] <= 1, "{:?}", found.unpaired);
    let aligned = align_clocks(&ranks, &found).unwrap();
    assert_eq!(aligned.residual.median, Nanos::ZERO);
}

#[test]
fn groups_that_cannot_be_told_apart_are_left_out() {
    let unlisted = ProcessGroup { name: "1".into(), size: 2, ..ProcessGroup::default() };
    let mut ranks: Vec<RankOps> = (0..4).map(|r| rank(r, vec![unlisted.clone()])).collect();
    for rank in &mut ranks {
        add(rank, 0, (K::AllReduce, 8), Nanos::ZERO, Nanos::from_millis(1));
    }
    let mut ledger = Ledger::new();
    assert!(match_ops(&ranks, &mut ledger).ops.is_empty());
    assert_eq!(ledger.count("group-ambiguous"), 1);
    assert_eq!(match_ops(&ranks[..2], &mut Ledger::new()).ops.len(), 1);
}

/// A pipeline of two stages: the stages do not issue sends and receives in one order.
#[test]
fn sends_meet_receives_of_the_other_side() {
    let mut ranks: Vec<RankOps> = (0..2).map(|r| rank(r, vec![group("0", &[0, 1])])).collect();
    let events: Vec<(bool, i64)> = (0..20).map(|i| (i % 4 < 2, (7 * i + i % 3) * MS)).collect();
    for (r, ahead) in [(0, 0), (1, 900 * MS)] {
        let clock = Clock { ahead, drift_ppm: 0.0 };
        let mut own: Vec<(bool, i64)> = events.clone();
        if r == 1 {
            // Another order among equal times: what arrives is listed before what leaves.
            own.sort_by_key(|&(up, time)| (time / (30 * MS), !up));
        }
        for (up, time) in own {
            let kind = if up == (r == 0) { K::Send } else { K::Recv };
            add(&mut ranks[r], 0, (kind, 64), clock.shows(time), clock.shows(time + MS));
        }
    }
    let found = matched(&ranks);
    assert_eq!((found.ops.len(), found.unpaired.as_slice()), (20, [0, 0].as_slice()));
    let aligned = align_clocks(&ranks, &found).unwrap();
    assert_eq!(aligned.method, Method::Messages);
    assert_eq!(aligned.ranks[1].offset, Nanos::from_nanos(900 * MS));
    assert_eq!(aligned.residual.max, Nanos::from_nanos(MS), "either side of what messages allow");
}

/// Senders are done long before their data has arrived: ends are 20 ms apart, clocks are not.
#[test]
fn buffered_sends_do_not_shift_clocks() {
    let mut ranks: Vec<RankOps> = (0..2).map(|r| rank(r, vec![group("0", &[0, 1])])).collect();
    for i in 0..10 {
        let time = |at: i64| Nanos::from_nanos(100 * i * MS + at);
        add(&mut ranks[0], 0, (K::Send, 64), time(0), time(MS));
        add(&mut ranks[1], 0, (K::Recv, 64), time(-5 * MS), time(21 * MS));
    }
    add(&mut ranks[1], 0, (K::Send, 64), Nanos::from_nanos(MS), Nanos::from_nanos(2 * MS));
    add(&mut ranks[0], 0, (K::Recv, 64), Nanos::from_nanos(MS), Nanos::from_nanos(9 * MS));
    let matched = matched(&ranks);
    let aligned = align_clocks(&ranks, &matched).unwrap();
    assert_eq!(aligned.ranks[1].offset, Nanos::ZERO);
    let waits = waits(&ranks, &matched, &aligned);
    let transfer: Vec<f64> = waits.ops.iter().map(|op| op.transfer.millis_f64()).collect();
    assert_eq!(transfer[..10], [21.0; 10], "until the data has arrived, not until it has left");
    assert!(
        waits.ops[..10]
            .iter()
            .all(|op| op.members[0].end - op.last_arrival == Nanos::from_nanos(MS))
    );
}

#[test]
fn a_rooted_operation_carries_clocks_only_where_nothing_else_does() {
    let mut ranks = all_reduces(&[Clock::default(); 2], &[0, 0], 10, 10 * MS, MS);
    for op in ranks.iter_mut().flat_map(|rank| &mut rank.ops) {
        op.kind = K::Broadcast;
    }
    let aligned = align_clocks(&ranks, &matched(&ranks)).unwrap();
    assert_eq!(aligned.method, Method::AllEnds);
    assert!(align_clocks(&[], &MatchedCollectives::default()).is_err());
}

#[derive(Clone, Debug)]
struct Job {
    clocks: Vec<Clock>,
    // Per operation: gap before it, then per rank (lateness, end jitter), in ns.
    ops: Vec<(i64, Vec<(i64, i64)>)>,
}

const JITTER: i64 = 20_000;

fn job() -> impl Strategy<Value = Job> {
    (2_usize..6, 20_usize..80).prop_flat_map(|(ranks, ops)| {
        let clock = (-20_000 * MS..20_000 * MS, -100.0..100.0_f64)
            .prop_map(|(ahead, drift_ppm)| Clock { ahead, drift_ppm });
        let member = (0..40 * MS, -JITTER..JITTER);
        let op = (50 * MS..400 * MS, proptest::collection::vec(member, ranks));
        (proptest::collection::vec(clock, ranks), proptest::collection::vec(op, ops))
            .prop_map(|(clocks, ops)| Job { clocks, ops })
    })
}

fn simulate(job: &Job) -> Vec<RankOps> {
    let all: Vec<u32> = (0..job.clocks.len() as u32).collect();
    let mut ranks: Vec<RankOps> = all.iter().map(|&r| rank(r, vec![group("0", &all)])).collect();
    let mut time = 0;
    for (i, (gap, members)) in job.ops.iter().enumerate() {
        time += gap;
        let end = time + members.iter().map(|(late, _)| *late).max().unwrap_or(0) + MS;
        for (r, (late, jitter)) in members.iter().enumerate() {
            let clock = job.clocks[r];
            let what = (K::AllReduce, 1 + (i as u64 % 5));
            add(&mut ranks[r], 0, what, clock.shows(time + late), clock.shows(end + jitter));
        }
        time = end;
    }
    ranks
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the clocks, arrivals come out right: mostly to within the jitter of one end, and
    /// nowhere off by more than the few that a slope drawn through only 20 such ends may add.
    #[test]
    fn clocks_and_arrivals_are_recovered(job in job()) {
        let ranks = simulate(&job);
        let found = matched(&ranks);
        prop_assert_eq!(found.ops.len(), job.ops.len());
        let aligned = align_clocks(&ranks, &found).unwrap();
        let reference = job.clocks[aligned.reference as usize];
        let mut time = 0;
        let mut errors = Vec::new();
        for (i, (gap, members)) in job.ops.iter().enumerate() {
            time += gap;
            for (r, (late, _)) in members.iter().enumerate() {
                let got = aligned.to_reference(r, ranks[r].ops[i].start);
                let error = (got - reference.shows(time + late)).nanos().abs();
                prop_assert!(error <= 6 * JITTER, "rank {} op {}: {} ns", r, i, error);
                errors.push(error);
            }
            time += members.iter().map(|(late, _)| *late).max().unwrap_or(0) + MS;
        }
        errors.sort_unstable();
        prop_assert!(errors[errors.len() / 2] <= JITTER, "{} ns", errors[errors.len() / 2]);
        prop_assert!(aligned.residual.max.nanos() <= 8 * JITTER);
    }

    /// The order in which ranks are given changes nothing.
    #[test]
    fn permuting_ranks_changes_only_positions(job in job(), turn in 1_usize..5) {
        let ranks = simulate(&job);
        let turn = turn % ranks.len();
        let mut turned = ranks.clone();
        turned.rotate_left(turn);
        let (a, b) = (matched(&ranks), matched(&turned));
        let (x, y) = (align_clocks(&ranks, &a).unwrap(), align_clocks(&turned, &b).unwrap());
        prop_assert_eq!((x.reference, x.residual), (y.reference, y.residual));
        for (i, clock) in x.ranks.iter().enumerate() {
            prop_assert_eq!(clock, &y.ranks[(i + ranks.len() - turn) % ranks.len()]);
        }
        let (v, w) = (waits(&ranks, &a, &x), waits(&turned, &b, &y));
        prop_assert_eq!(v.stragglers, w.stragglers);
        prop_assert_eq!(v.arrival_spread, w.arrival_spread);
    }
}
