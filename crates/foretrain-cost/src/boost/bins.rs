//! Features cut into bins of about equally many rows.

use super::Table;

/// The bin of every value, feature by feature.
pub(super) struct Bins {
    pub(super) features: Vec<Feature>,
}

/// One feature.
pub(super) struct Feature {
    /// Largest value of each bin but the last, ascending.
    pub(super) cuts: Vec<f64>,
    /// Bin of each row.
    pub(super) bin: Vec<u16>,
}

impl Bins {
    pub(super) fn new(rows: &Table, most: usize) -> Self {
        let most = most.clamp(2, usize::from(u16::MAX));
        let features = (0..rows.width).map(|feature| {
            let values: Vec<f64> = rows.column(feature).collect();
            let cuts = cuts(&values, most);
            // Not a number is less than all, here as in a tree's comparison.
            let bin = values.iter().map(|&value| cuts.partition_point(|&cut| value > cut) as u16);
            let bin = bin.collect();
            Feature { cuts, bin }
        });
        Self { features: features.collect() }
    }

    pub(super) fn features(&self) -> impl Iterator<Item = (usize, &Feature)> {
        self.features.iter().enumerate()
    }
}

/// Cuts half-way between neighbouring values; all of them if there are few.
fn cuts(values: &[f64], most: usize) -> Vec<f64> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let rows = sorted.len();
    let mut distinct = sorted.clone();
    distinct.dedup();
    let middle = |low: f64, high: f64| {
        let middle = low + (high - low) / 2.0;
        if middle < high { middle } else { low }
    };
    if distinct.len() <= most {
        return distinct.windows(2).map(|pair| middle(pair[0], pair[1])).collect();
    }
    let mut cuts: Vec<f64> = Vec::new();
    for bin in 1..most {
        let low = sorted[bin * rows / most - 1];
        let above = distinct.partition_point(|&value| value <= low);
        let Some(&high) = distinct.get(above) else { continue };
        let cut = middle(low, high);
        if cuts.last() != Some(&cut) {
            cuts.push(cut);
        }
    }
    cuts
}
