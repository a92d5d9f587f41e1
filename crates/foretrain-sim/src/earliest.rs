//! Which of a fixed set comes first, where times are set anew more often than they come.

/// A time or none for each of a fixed set of indices, and the earliest of them; the lower index
/// first among equals. A heap would keep every time that was ever set.
pub(crate) struct Earliest {
    /// A complete binary tree of winners: the children of `i` are `2i` and `2i + 1`, and the leaves
    /// are the times themselves.
    tree: Vec<(i64, u32)>,
    leaves: usize,
}

/// After all times there may be.
const NEVER: (i64, u32) = (i64::MAX, u32::MAX);

impl Earliest {
    pub(crate) fn new(count: usize) -> Self {
        let leaves = count.max(1).next_power_of_two();
        Self { tree: vec![NEVER; 2 * leaves], leaves }
    }

    /// The earliest time.
    pub(crate) fn time(&self) -> Option<i64> {
        let first = self.tree[1];
        (first != NEVER).then_some(first.0)
    }

    /// Takes out the earliest.
    pub(crate) fn take(&mut self) -> Option<(i64, u32)> {
        let first = self.tree[1];
        (first != NEVER).then(|| {
            self.put(first.1, NEVER);
            first
        })
    }

    pub(crate) fn set(&mut self, index: u32, time: i64) {
        self.put(index, (time, index));
    }

    fn put(&mut self, index: u32, leaf: (i64, u32)) {
        let mut at = self.leaves + index as usize;
        self.tree[at] = leaf;
        while at > 1 {
            let winner = self.tree[at].min(self.tree[at ^ 1]);
            at /= 2;
            self.tree[at] = winner;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_comes_first_and_the_lower_index_among_equals() {
        for count in [1, 2, 3, 5, 8] {
            let mut earliest = Earliest::new(count);
            assert_eq!((earliest.time(), earliest.take()), (None, None));
            let last = count as u32 - 1;
            for index in 0..=last {
                earliest.set(index, i64::MAX);
            }
            earliest.set(last, 4);
            assert_eq!((earliest.time(), earliest.take()), (Some(4), Some((4, last))));
            for index in 0..last {
                assert_eq!(earliest.take(), Some((i64::MAX, index)));
            }
            assert_eq!(earliest.take(), None);
        }
    }
}
