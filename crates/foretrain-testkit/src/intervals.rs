//! Sets of time intervals, for sharing a step's time out among its owners.

/// Half-open intervals in ns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Intervals(Vec<(i64, i64)>);

impl Intervals {
    /// Adds an interval; an empty one is ignored.
    pub(crate) fn push(&mut self, start: i64, end: i64) {
        if end > start {
            self.0.push((start, end));
        }
    }

    /// Sorted and merged.
    pub(crate) fn union(mut self) -> Self {
        self.0.sort_unstable();
        let mut merged: Vec<(i64, i64)> = Vec::with_capacity(self.0.len());
        for (start, end) in self.0 {
            match merged.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => merged.push((start, end)),
            }
        }
        Self(merged)
    }

    /// What lies within `[start, end)`. Needs a union.
    pub(crate) fn clip(&self, start: i64, end: i64) -> Self {
        let mut clipped = Self::default();
        for &(from, to) in &self.0 {
            clipped.push(from.max(start), to.min(end));
        }
        clipped
    }

    /// What is not in `other`. Needs two unions.
    pub(crate) fn minus(&self, other: &Self) -> Self {
        let mut rest = Self::default();
        let mut first = 0;
        for &(mut start, end) in &self.0 {
            while first < other.0.len() && other.0[first].1 <= start {
                first += 1;
            }
            for &(from, to) in other.0[first..].iter().take_while(|hole| hole.0 < end) {
                rest.push(start, from.min(end));
                start = start.max(to);
            }
            rest.push(start, end);
        }
        rest
    }

    /// Total length. Needs a union, else overlaps count twice.
    pub(crate) fn total(&self) -> i64 {
        self.0.iter().map(|(start, end)| end - start).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn set(pairs: &[(i64, i64)]) -> Intervals {
        let mut set = Intervals::default();
        pairs.iter().for_each(|&(start, end)| set.push(start, end));
        set.union()
    }

    #[test]
    fn union_and_difference() {
        assert_eq!(set(&[(5, 9), (1, 3), (3, 4), (6, 7)]).0, [(1, 4), (5, 9)]);
        let rest = set(&[(0, 10), (20, 30)]).minus(&set(&[(2, 4), (8, 22), (29, 40)]));
        assert_eq!(rest.0, [(0, 2), (4, 8), (22, 29)]);
    }

    proptest! {
        #[test]
        fn a_set_is_its_parts(
            a in prop::collection::vec((0_i64..60, 0_i64..20), 0..12),
            b in prop::collection::vec((0_i64..60, 0_i64..20), 0..12),
        ) {
            let build = |pairs: &[(i64, i64)]| {
                set(&pairs.iter().map(|&(start, length)| (start, start + length)).collect::<Vec<_>>())
            };
            let (a, b) = (build(&a), build(&b));
            let inside = |set: &Intervals, at: i64| set.0.iter().any(|&(s, e)| s <= at && at < e);
            let rest = a.minus(&b);
            for at in 0..90 {
                prop_assert_eq!(inside(&rest, at), inside(&a, at) && !inside(&b, at));
            }
            let both = (0..90).filter(|&at| inside(&a, at) && inside(&b, at)).count() as i64;
            prop_assert_eq!(rest.total() + both, a.total());
        }
    }
}
