//! Dealing cut-points to stages, in the model's order.

use std::ops::Range;

use foretrain_core::Nanos;

/// How cut-points were dealt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Balance {
    /// As many to each stage.
    Count,
    /// So that the slowest stage is as fast as it can be.
    Cost,
}

impl Balance {
    /// The word for tables.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Count => "by count",
            Self::Cost => "by cost",
        }
    }
}

/// As many cut-points to each stage; `None` if they cannot be.
pub(super) fn by_count(cut_points: usize, stages: usize) -> Option<Vec<Range<usize>>> {
    if stages == 0 || !cut_points.is_multiple_of(stages) || cut_points == 0 {
        return None;
    }
    let each = cut_points / stages;
    Some((0..stages).map(|stage| stage * each..(stage + 1) * each).collect())
}

/// At least one cut-point to each stage, with the least time of the slowest stage; `None` if there
/// are too few. Cut-points take `last` on the last stage, which may not recompute, else `times`.
pub(super) fn by_cost(times: &[Nanos], last: &[Nanos], stages: usize) -> Option<Vec<Range<usize>>> {
    if stages == 0 || stages > times.len() {
        return None;
    }
    let (mut low, mut high) = (Nanos::ZERO, times.iter().chain(last).copied().sum::<Nanos>());
    while low < high {
        let middle = Nanos::from_nanos(low.nanos() + (high.nanos() - low.nanos()) / 2);
        if dealt(times, last, stages, middle).is_some() {
            high = middle;
        } else {
            low = middle + Nanos::from_nanos(1);
        }
    }
    dealt(times, last, stages, low)
}

/// Fills stages one after the other up to `most`, so that the least is left for the last; leaves one
/// piece for every stage to come. `None` if a stage takes longer.
fn dealt(times: &[Nanos], last: &[Nanos], stages: usize, most: Nanos) -> Option<Vec<Range<usize>>> {
    let mut all = Vec::with_capacity(stages);
    let mut from = 0;
    for stage in 0..stages - 1 {
        let end = times.len() - (stages - 1 - stage);
        let (mut to, mut time) = (from + 1, times[from]);
        while to < end && time + times[to] <= most {
            time += times[to];
            to += 1;
        }
        if time > most {
            return None;
        }
        all.push(from..to);
        from = to;
    }
    all.push(from..times.len());
    (last[from..].iter().copied().sum::<Nanos>() <= most).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ns(times: &[i64]) -> Vec<Nanos> {
        times.iter().copied().map(Nanos::from_nanos).collect()
    }

    fn slowest(times: &[Nanos], last: &[Nanos], parts: &[Range<usize>]) -> i64 {
        let sum = |times: &[Nanos]| times.iter().copied().sum::<Nanos>().nanos();
        let (end, before) = parts.split_last().unwrap();
        let before = before.iter().map(|part| sum(&times[part.clone()])).max();
        before.unwrap_or_default().max(sum(&last[end.clone()]))
    }

    /// The least slowest stage over all ways to cut.
    fn best(times: &[Nanos], last: &[Nanos], stages: usize) -> i64 {
        if stages == 1 {
            return last.iter().copied().sum::<Nanos>().nanos();
        }
        (1..=times.len() + 1 - stages)
            .map(|first| {
                let own = times[..first].iter().copied().sum::<Nanos>().nanos();
                own.max(best(&times[first..], &last[first..], stages - 1))
            })
            .min()
            .unwrap()
    }

    #[test]
    fn counts_are_even_or_there_is_no_way() {
        assert_eq!(by_count(6, 3), Some(vec![0..2, 2..4, 4..6]));
        assert_eq!(by_count(6, 6).map(|parts| parts.len()), Some(6));
        assert_eq!((by_count(6, 4), by_count(6, 0), by_count(0, 3)), (None, None, None));
    }

    #[test]
    fn no_other_way_has_a_faster_slowest_stage() {
        for times in [&[5, 1, 1, 1, 9, 1, 4][..], &[1, 1, 1, 1, 1], &[7, 0, 0, 0], &[0, 0, 0]] {
            let times = ns(times);
            // The last stage saves a third, as where it alone does not recompute.
            let last: Vec<Nanos> = times.iter().map(|time| time.scale(2.0 / 3.0)).collect();
            for stages in 1..=times.len() {
                let parts = by_cost(&times, &last, stages).unwrap();
                assert!(parts.iter().all(|part| !part.is_empty()), "{parts:?}");
                assert_eq!(parts.len(), stages);
                assert_eq!(parts[stages - 1].end, times.len());
                let found = slowest(&times, &last, &parts);
                assert_eq!(found, best(&times, &last, stages), "{times:?}, {stages}");
            }
            assert_eq!(by_cost(&times, &last, times.len() + 1), None);
        }
    }
}
