//! Gradient-boosted regression trees over histograms.
//!
//! Small and plain on purpose: squared loss, equal-frequency bins, trees grown to a fixed depth,
//! one thread. Equal rows give equal trees, bit by bit, wherever they are fitted. A model never
//! extrapolates (beyond the training rows a tree is constant), so callers let it learn what is
//! left over by a formula that does.

mod bins;
mod grow;
#[cfg(test)]
mod tests;

use foretrain_core::{InputError, Result};
use serde::{Deserialize, Serialize};

use bins::Bins;
use grow::Grower;

/// Rows of features; a value that is not a number counts as less than all others.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    width: usize,
    values: Vec<f64>,
}

impl Table {
    /// An empty table of `width` features.
    pub fn new(width: usize) -> Self {
        Self { width, values: Vec::new() }
    }

    /// Appends a row; what is missing at its end is filled with NaN.
    pub fn push(&mut self, row: &[f64]) {
        let row = row.iter().copied().chain(std::iter::repeat(f64::NAN));
        self.values.extend(row.take(self.width));
    }

    /// Rows.
    pub fn len(&self) -> usize {
        self.values.len().checked_div(self.width).unwrap_or(0)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn row(&self, at: usize) -> &[f64] {
        &self.values[at * self.width..(at + 1) * self.width]
    }

    fn column(&self, feature: usize) -> impl Iterator<Item = f64> + '_ {
        self.values.iter().skip(feature).step_by(self.width.max(1)).copied()
    }
}

/// How to fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BoostOptions {
    /// Trees.
    pub trees: usize,
    /// Levels of splits in a tree.
    pub depth: u32,
    /// Part of its step that each tree takes.
    pub rate: f64,
    /// Fewest rows in a leaf.
    pub least_rows: usize,
    /// Weight of a prior row of zero in each leaf: leaves of few rows promise little.
    pub ridge: f64,
    /// Most bins of a feature.
    pub bins: usize,
}

/// A sum of trees.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Regressor {
    base: f32,
    trees: Vec<Tree>,
}

/// Nodes in breadth-first order. Figures are single, so that files are half as long and come back as
/// they were written. Children of a split follow each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Tree {
    /// Feature that a node splits, -1 in leaves.
    split: Vec<i32>,
    /// Largest value that goes to the first child, or the value of a leaf.
    value: Vec<f32>,
    /// First child of a split, 0 in leaves.
    child: Vec<u32>,
}

/// A file with more is not one of ours.
const MOST_TREES: usize = 10_000;
const MOST_NODES: usize = 4_095;

impl Regressor {
    /// Fits trees to `targets`, each row counting by its weight. Rows with a target or weight that
    /// is not finite, or no weight, count for nothing.
    ///
    /// # Panics
    /// If there are not as many targets and weights as rows.
    pub fn fit(rows: &Table, targets: &[f64], weights: &[f64], options: &BoostOptions) -> Self {
        assert!(rows.len() == targets.len() && rows.len() == weights.len(), "one target per row");
        let counts = |&row: &usize| {
            targets[row].is_finite() && weights[row].is_finite() && weights[row] > 0.0
        };
        let used: Vec<usize> = (0..rows.len()).filter(counts).collect();
        let total: f64 = used.iter().map(|&row| weights[row]).sum();
        if used.is_empty() {
            return Self { base: 0.0, trees: Vec::new() };
        }
        let base = used.iter().map(|&row| weights[row] * targets[row]).sum::<f64>() / total;
        let base = base as f32;
        let bins = Bins::new(rows, options.bins);
        let mut left: Vec<f64> = targets.iter().map(|target| target - f64::from(base)).collect();
        let mut trees = Vec::new();
        for _ in 0..options.trees {
            let tree = Grower { bins: &bins, left: &left, weights, options }.grow(&used);
            for &row in &used {
                left[row] -= tree.predict(rows.row(row));
            }
            trees.push(tree);
        }
        Self { base, trees }
    }

    /// What the trees say of a row.
    pub fn predict(&self, row: &[f64]) -> f64 {
        f64::from(self.base) + self.trees.iter().map(|tree| tree.predict(row)).sum::<f64>()
    }

    /// What it says before any tree: the mean of what it was fitted to.
    pub fn base(&self) -> f64 {
        f64::from(self.base)
    }

    /// What it says of every row, where there are no trees.
    pub fn constant(&self) -> Option<f64> {
        self.trees.is_empty().then_some(f64::from(self.base))
    }

    /// Bounds on what it could say of any row: no row need be at the least or most leaf of all trees.
    pub fn reach(&self) -> (f64, f64) {
        let base = f64::from(self.base);
        self.trees.iter().fold((base, base), |(least, most), tree| {
            let leaves = tree.split.iter().zip(&tree.value).filter(|(split, _)| **split < 0);
            let leaves = leaves.map(|(_, value)| f64::from(*value));
            let ends = leaves.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), leaf| {
                (low.min(leaf), high.max(leaf))
            });
            (least + ends.0, most + ends.1)
        })
    }

    /// Refuses what [`Regressor::predict`] could not walk: a model read from a file may hold
    /// anything.
    ///
    /// # Errors
    /// Names the tree and what is wrong with it.
    pub fn check(&self, features: usize) -> Result<()> {
        if !self.base.is_finite() {
            return Err(InputError::new("the base of the trees is not a finite number"));
        }
        if self.trees.len() > MOST_TREES {
            let count = self.trees.len();
            return Err(InputError::new(format!("{count} trees; at most {MOST_TREES} are read")));
        }
        for (number, tree) in self.trees.iter().enumerate() {
            tree.check(features).map_err(|why| {
                InputError::new(format!("tree {number} is damaged: {why}"))
                    .hint("write the model again with foretrain calibrate interference")
            })?;
        }
        Ok(())
    }
}

impl Tree {
    fn predict(&self, row: &[f64]) -> f64 {
        let mut node = 0;
        while let Ok(feature) = usize::try_from(self.split[node]) {
            let value = row.get(feature).copied().unwrap_or(f64::NAN);
            let above = usize::from(value > f64::from(self.value[node]));
            node = self.child[node] as usize + above;
        }
        f64::from(self.value[node])
    }

    fn check(&self, features: usize) -> std::result::Result<(), String> {
        let count = self.split.len();
        if count == 0 || count > MOST_NODES {
            return Err(format!("{count} nodes; expected 1 to {MOST_NODES}"));
        }
        if self.value.len() != count || self.child.len() != count {
            return Err("its lists differ in length".into());
        }
        for node in 0..count {
            let (split, child) = (i64::from(self.split[node]), self.child[node] as usize);
            if !self.value[node].is_finite() {
                return Err(format!("the value of node {node} is not a finite number"));
            }
            if split < -1 || split >= features as i64 {
                return Err(format!("node {node} splits feature {split} of {features}"));
            }
            // Children behind their parents: every walk ends.
            if split >= 0 && (child <= node || child + 1 >= count) {
                return Err(format!("the children of node {node} are not behind it"));
            }
        }
        Ok(())
    }
}
