//! Distributions in bounded memory.

/// Shares from 0 to 1, each to within a thousandth and equal ones exactly, with weights.
#[derive(Clone, Debug)]
pub(super) struct Shares {
    /// Weight, and weighted sum: a bin of equal shares gives that share.
    bins: Vec<(f64, f64)>,
    total: f64,
}

const THOUSANDTHS: usize = 1_000;
/// A share of so many thousandths is not below them, whatever it was divided from.
const ROUNDING: f64 = 1e-9;

impl Default for Shares {
    fn default() -> Self {
        Self { bins: vec![(0.0, 0.0); THOUSANDTHS + 1], total: 0.0 }
    }
}

impl Shares {
    pub(super) fn add(&mut self, share: f64, weight: f64) {
        let share = share.clamp(0.0, 1.0);
        let bin = &mut self.bins[(share * THOUSANDTHS as f64 + ROUNDING) as usize];
        *bin = (bin.0 + weight, bin.1 + weight * share);
        self.total += weight;
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (bin, (weight, sum)) in self.bins.iter_mut().zip(&other.bins) {
            *bin = (bin.0 + weight, bin.1 + sum);
        }
        self.total += other.total;
    }

    /// The weight at or above a share (a multiple of a thousandth), as part of all.
    pub(super) fn at_least(&self, share: f64) -> f64 {
        let from = (share * THOUSANDTHS as f64).round() as usize;
        let above: f64 = self.bins.iter().skip(from).map(|(weight, _)| weight).sum();
        if self.total > 0.0 { above / self.total } else { 0.0 }
    }

    /// The share below which this part of the weight lies: the mean of those within a thousandth.
    pub(super) fn quantile(&self, part: f64) -> f64 {
        let wanted = part * self.total;
        let mut below = 0.0;
        for (weight, sum) in &self.bins {
            below += weight;
            if below >= wanted && *weight > 0.0 {
                return sum / weight;
            }
        }
        0.0
    }
}

/// Positive numbers of any size, each to within a per cent and equal ones exactly.
#[derive(Clone, Debug, Default)]
pub(super) struct Sizes {
    /// How many, and their sum: a bin of equal numbers gives that number.
    bins: Vec<(u64, f64)>,
    zeros: u64,
    count: u64,
    sum: f64,
    least: f64,
    most: f64,
}

/// Width of a bin, and the smallest number that is not zero.
const RATIO: f64 = 1.01;
const SMALLEST: f64 = 1e-9;
const MOST_BINS: usize = 8_192;

impl Sizes {
    pub(super) fn add(&mut self, value: f64) {
        if self.count == 0 {
            (self.least, self.most) = (value, value);
        }
        self.count += 1;
        self.sum += value;
        self.least = self.least.min(value);
        self.most = self.most.max(value);
        if value < SMALLEST {
            self.zeros += 1;
            return;
        }
        let bin = ((value / SMALLEST).ln() / RATIO.ln()) as usize;
        let bin = bin.min(MOST_BINS);
        if self.bins.len() <= bin {
            self.bins.resize(bin + 1, (0, 0.0));
        }
        let (count, sum) = &mut self.bins[bin];
        (*count, *sum) = (*count + 1, *sum + value);
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn sum(&self) -> f64 {
        self.sum
    }

    pub(super) fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum / self.count as f64 }
    }

    pub(super) fn most(&self) -> f64 {
        self.most
    }

    pub(super) fn quantile(&self, part: f64) -> f64 {
        let wanted = (part * self.count as f64).ceil().max(1.0) as u64;
        let mut below = self.zeros;
        if below >= wanted {
            return 0.0;
        }
        for (bin, (count, sum)) in self.bins.iter().enumerate() {
            below += count;
            // The last bin holds whatever is beyond.
            if below >= wanted && bin < MOST_BINS {
                return (sum / *count as f64).clamp(self.least, self.most);
            }
        }
        self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_kept_to_a_thousandth() {
        let mut shares = Shares::default();
        for percent in 0..100 {
            shares.add(f64::from(percent) / 100.0, 2.0);
        }
        assert!((shares.at_least(0.8) - 0.2).abs() < 1e-9);
        assert!((shares.quantile(0.5) - 0.49).abs() < 1e-12);
        // No double of a thousandth is floored into the one below.
        for thousandth in 0..=1000 {
            let share = f64::from(thousandth) / 1000.0;
            let mut one = Shares::default();
            one.add(share, 3.0);
            assert!((one.quantile(0.5) - share).abs() < 1e-15, "{share}");
            assert_eq!(one.at_least(share), 1.0, "{share}");
        }
        assert_eq!(Shares::default().quantile(0.5), 0.0);
    }

    #[test]
    fn sizes_are_kept_to_a_per_cent() {
        let mut sizes = Sizes::default();
        for number in 1..=1000 {
            sizes.add(f64::from(number));
        }
        for (part, value) in [(0.5, 500.0), (0.9, 900.0), (1.0, 1000.0)] {
            assert!((sizes.quantile(part) / value - 1.0).abs() < 0.006, "{part}");
        }
        assert_eq!((sizes.mean(), sizes.most()), (500.5, 1000.0));
        let mut eights = Sizes::default();
        (0..3).for_each(|_| eights.add(8.0));
        assert_eq!(eights.quantile(0.5), 8.0);
        sizes.add(1e300);
        assert_eq!(sizes.quantile(1.0), 1e300);
    }
}
