//! Sets of nodes.

use crate::step_graph::NodeId;

/// A set of nodes of one graph, one bit per node.
///
/// Sets of different graphs (or of one graph before and after nodes were removed) do not mix:
/// the operations take two sets of equal capacity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeSet {
    words: Vec<u64>,
    capacity: usize,
}

impl NodeSet {
    /// No nodes of a graph of `capacity` nodes.
    pub fn empty(capacity: usize) -> Self {
        Self { words: vec![0; capacity.div_ceil(64)], capacity }
    }

    /// All nodes of a graph of `capacity` nodes.
    pub fn full(capacity: usize) -> Self {
        Self::from_fn(capacity, |_| true)
    }

    /// The nodes for whose index `test` holds.
    pub fn from_fn(capacity: usize, mut test: impl FnMut(usize) -> bool) -> Self {
        let mut words = Vec::with_capacity(capacity.div_ceil(64));
        for start in (0..capacity).step_by(64) {
            let end = capacity.min(start + 64);
            words.push((start..end).fold(0, |word, i| word | (u64::from(test(i)) << (i - start))));
        }
        Self { words, capacity }
    }

    /// These nodes; ids beyond `capacity` are left out.
    pub fn from_ids(capacity: usize, ids: impl IntoIterator<Item = NodeId>) -> Self {
        let mut set = Self::empty(capacity);
        for id in ids {
            set.insert(id);
        }
        set
    }

    /// How many nodes the graph has.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Adds a node. False if it was there already or is beyond the capacity.
    pub fn insert(&mut self, id: NodeId) -> bool {
        let fresh = id.index() < self.capacity && !self.contains(id);
        if fresh {
            self.words[id.index() / 64] |= 1 << (id.index() % 64);
        }
        fresh
    }

    /// Whether the node is in the set.
    pub fn contains(&self, id: NodeId) -> bool {
        self.words.get(id.index() / 64).is_some_and(|word| word >> (id.index() % 64) & 1 == 1)
    }

    /// How many nodes are in the set.
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether no node is in the set.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// The nodes in order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.words.iter().enumerate().flat_map(|(index, &word)| {
            let rest = |w: &u64| Some(w & (w - 1)).filter(|&w| w != 0);
            std::iter::successors(Some(word).filter(|&w| w != 0), rest)
                .map(move |w| NodeId::from_index(index * 64 + w.trailing_zeros() as usize))
        })
    }

    /// Adds the nodes of `other`.
    pub fn union_with(&mut self, other: &Self) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word |= other;
        }
    }

    /// Keeps only the nodes that are in `other` too.
    pub fn intersect_with(&mut self, other: &Self) {
        for (i, word) in self.words.iter_mut().enumerate() {
            *word &= other.words.get(i).copied().unwrap_or(0);
        }
    }

    /// The nodes of the graph that are not in the set.
    #[must_use]
    pub fn complement(mut self) -> Self {
        for word in &mut self.words {
            *word = !*word;
        }
        let used = self.capacity % 64;
        if used != 0
            && let Some(last) = self.words.last_mut()
        {
            *last &= (1 << used) - 1;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(set: &NodeSet) -> Vec<u32> {
        set.iter().map(NodeId::get).collect()
    }

    #[test]
    fn set_operations_stay_within_the_graph() {
        let even = NodeSet::from_fn(70, |i| i % 2 == 0);
        let mut low = NodeSet::from_ids(70, [1, 2, 3, 66, 900].map(NodeId::new));
        assert_eq!(ids(&low), [1, 2, 3, 66]);
        assert_eq!(low.len(), 4);
        assert_eq!(low.clone().complement().len(), 66);
        assert_eq!(low.clone().complement().complement(), low);
        low.intersect_with(&even);
        assert_eq!(ids(&low), [2, 66]);
        low.union_with(&NodeSet::from_ids(70, [NodeId::new(69)]));
        assert_eq!(ids(&low), [2, 66, 69]);
        assert!(!low.contains(NodeId::new(5000)) && !low.insert(NodeId::new(70)));
        assert!(NodeSet::empty(0).complement().is_empty());
        assert_eq!(NodeSet::full(64).len(), 64);
    }
}
