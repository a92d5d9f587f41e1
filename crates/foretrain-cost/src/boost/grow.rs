//! One tree, grown level by level.

use super::bins::{Bins, Feature};
use super::{BoostOptions, Tree};

/// What a tree is grown from.
pub(super) struct Grower<'a> {
    pub(super) bins: &'a Bins,
    /// What earlier trees have left of each target.
    pub(super) left: &'a [f64],
    pub(super) weights: &'a [f64],
    pub(super) options: &'a BoostOptions,
}

/// Weighted rows of one bin or node.
#[derive(Clone, Copy, Default)]
struct Sum {
    left: f64,
    weight: f64,
    rows: usize,
}

impl Sum {
    fn and(self, other: Self) -> Self {
        Self {
            left: self.left + other.left,
            weight: self.weight + other.weight,
            rows: self.rows + other.rows,
        }
    }

    /// By how much a leaf of these rows lowers the squared error.
    fn gain(self, ridge: f64) -> f64 {
        self.left * self.left / (self.weight + ridge)
    }
}

struct Split {
    gain: f64,
    feature: usize,
    bin: usize,
}

impl Grower<'_> {
    pub(super) fn grow(&self, rows: &[usize]) -> Tree {
        let mut tree = Tree { split: vec![-1], value: vec![0.0], child: vec![0] };
        let mut level = vec![(0, rows.to_vec())];
        for depth in 0..=self.options.depth {
            let mut next = Vec::new();
            for (node, rows) in level {
                let split = if depth < self.options.depth { self.best_split(&rows) } else { None };
                let Some(split) = split else {
                    let sum = self.sum(&rows);
                    let ridge = self.options.ridge.max(0.0);
                    let value = self.options.rate * sum.left / (sum.weight + ridge);
                    tree.value[node] = if value.is_finite() { value as f32 } else { 0.0 };
                    continue;
                };
                let child = tree.split.len();
                for (side, rows) in self.part(&rows, &split).into_iter().enumerate() {
                    next.push((child + side, rows));
                    tree.split.push(-1);
                    tree.value.push(0.0);
                    tree.child.push(0);
                }
                tree.split[node] = split.feature as i32;
                tree.value[node] = self.feature(split.feature).cuts[split.bin] as f32;
                tree.child[node] = child as u32;
            }
            level = next;
        }
        tree
    }

    fn feature(&self, at: usize) -> &Feature {
        &self.bins.features[at]
    }

    fn sum(&self, rows: &[usize]) -> Sum {
        rows.iter().fold(Sum::default(), |sum, &row| sum.and(self.one(row)))
    }

    fn one(&self, row: usize) -> Sum {
        let weight = self.weights[row];
        Sum { left: weight * self.left[row], weight, rows: 1 }
    }

    fn part(&self, rows: &[usize], split: &Split) -> [Vec<usize>; 2] {
        let bin = &self.feature(split.feature).bin;
        let (below, above) = rows.iter().partition(|&&row| usize::from(bin[row]) <= split.bin);
        [below, above]
    }

    /// The split that lowers the squared error most; the first of equals.
    fn best_split(&self, rows: &[usize]) -> Option<Split> {
        let (least, ridge) = (self.options.least_rows.max(1), self.options.ridge.max(0.0));
        if rows.len() < 2 * least {
            return None;
        }
        // Gathered once: every feature goes through them.
        let ones: Vec<(f64, f64)> = rows
            .iter()
            .map(|&row| (self.weights[row] * self.left[row], self.weights[row]))
            .collect();
        let all = self.sum(rows);
        let mut best: Option<Split> = None;
        let mut histogram: Vec<Sum> = Vec::new();
        let split_by = self.bins.features().filter(|(_, feature)| !feature.cuts.is_empty());
        for (feature, Feature { cuts, bin }) in split_by {
            histogram.clear();
            histogram.resize(cuts.len() + 1, Sum::default());
            for (&row, &(left, weight)) in rows.iter().zip(&ones) {
                let sum = &mut histogram[usize::from(bin[row])];
                sum.left += left;
                sum.weight += weight;
                sum.rows += 1;
            }
            let mut below = Sum::default();
            for (bin, &sum) in histogram[..cuts.len()].iter().enumerate() {
                below = below.and(sum);
                let above = Sum {
                    left: all.left - below.left,
                    weight: all.weight - below.weight,
                    rows: all.rows - below.rows,
                };
                if below.rows < least || above.rows < least {
                    continue;
                }
                let gain = below.gain(ridge) + above.gain(ridge) - all.gain(ridge);
                // Less is rounding.
                let least_gain = best.as_ref().map_or(1e-12, |best| best.gain * (1.0 + 1e-12));
                if gain > least_gain {
                    best = Some(Split { gain, feature, bin });
                }
            }
        }
        best
    }
}
