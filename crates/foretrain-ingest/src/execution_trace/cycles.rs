//! Strongly connected components without recursion, for graphs of millions of nodes.

use foretrain_graph::{Csr, Edge};

const UNSEEN: u32 = u32::MAX;

/// For each node the number of its strongly connected component.
///
/// Tarjan, "Depth-first search and linear graph algorithms", SIAM J. Comput. 1(2), 1972, with an
/// explicit stack.
pub(super) fn components(nodes: usize, edges: &[Edge]) -> Vec<u32> {
    let next = Csr::from_pairs(nodes, edges.iter().map(|e| (e.src.get(), e.dst.get())));
    let mut walk = Walk {
        next: &next,
        index: vec![UNSEEN; nodes],
        low: vec![0; nodes],
        component: vec![UNSEEN; nodes],
        path: Vec::new(),
        counter: 0,
        components: 0,
    };
    for root in 0..nodes as u32 {
        if walk.index[root as usize] == UNSEEN {
            walk.visit(root);
        }
    }
    walk.component
}

struct Walk<'a> {
    next: &'a Csr,
    index: Vec<u32>,
    low: Vec<u32>,
    component: Vec<u32>,
    path: Vec<u32>,
    counter: u32,
    components: u32,
}

impl Walk<'_> {
    fn visit(&mut self, root: u32) {
        let mut stack = vec![(root, 0usize)];
        self.open(root);
        while let Some((node, edge)) = stack.last_mut() {
            let (from, targets) = (*node, self.next.row(*node as usize));
            if let Some(&target) = targets.get(*edge) {
                *edge += 1;
                if self.index[target as usize] == UNSEEN {
                    self.open(target);
                    stack.push((target, 0));
                } else if self.component[target as usize] == UNSEEN {
                    self.lower(from, self.index[target as usize]);
                }
            } else {
                stack.pop();
                self.close(from);
                if let Some(&(parent, _)) = stack.last() {
                    self.lower(parent, self.low[from as usize]);
                }
            }
        }
    }

    fn open(&mut self, node: u32) {
        self.index[node as usize] = self.counter;
        self.low[node as usize] = self.counter;
        self.counter += 1;
        self.path.push(node);
    }

    fn lower(&mut self, node: u32, to: u32) {
        let low = &mut self.low[node as usize];
        *low = (*low).min(to);
    }

    fn close(&mut self, node: u32) {
        if self.low[node as usize] != self.index[node as usize] {
            return;
        }
        while let Some(member) = self.path.pop() {
            self.component[member as usize] = self.components;
            if member == node {
                break;
            }
        }
        self.components += 1;
    }
}

#[cfg(test)]
mod tests {
    use foretrain_graph::{EdgeKind, NodeId};
    use proptest::prelude::*;

    use super::*;

    fn edges(pairs: &[(u32, u32)]) -> Vec<Edge> {
        pairs
            .iter()
            .map(|&(a, b)| Edge::new(NodeId::new(a), NodeId::new(b), EdgeKind::Data))
            .collect()
    }

    #[test]
    fn a_ring_of_two_million_nodes_is_one_component() {
        let count = 2_000_000u32;
        let ring: Vec<_> = (0..count).map(|i| (i, (i + 1) % count)).collect();
        let parts = components(count as usize, &edges(&ring));
        assert!(parts.iter().all(|&part| part == parts[0]));
    }

    proptest! {
        #[test]
        fn components_are_mutual_reachability(
            pairs in prop::collection::vec((0u32..8, 0u32..8), 0..20)
        ) {
            let parts = components(8, &edges(&pairs));
            // One bit per reachable node; eight rounds reach everything.
            let mut reach: Vec<u8> = (0..8).map(|node| 1 << node).collect();
            for _ in 0..8 {
                for &(a, b) in &pairs {
                    reach[a as usize] |= reach[b as usize];
                }
            }
            for (a, b) in (0..8).flat_map(|a| (0..8).map(move |b| (a, b))) {
                let mutual = reach[a] >> b & 1 == 1 && reach[b] >> a & 1 == 1;
                prop_assert_eq!(parts[a] == parts[b], mutual);
            }
        }
    }
}
