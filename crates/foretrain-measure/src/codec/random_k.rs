//! Elements by lot.

use foretrain_core::Bytes;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::{Compressor, count_kept};

/// One element of each of as many equal strips as elements are kept, drawn by a seed that all ranks
/// share: the places need not be sent, and all ranks keep the same ones.
#[derive(Clone, Debug)]
pub struct RandomK {
    /// The elements. Sums of these are encoded sums, if the seed is the same.
    pub values: Vec<f32>,
    kept: f64,
    seed: u64,
}

impl RandomK {
    /// Keeps such a share of the elements.
    pub fn new(kept: f64, seed: u64) -> Self {
        Self { values: Vec::new(), kept, seed }
    }
}

/// The places that are kept, which rise.
fn places(elements: usize, count: usize, seed: u64) -> impl Iterator<Item = usize> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let start = move |strip: usize| (strip as u64 * elements as u64 / count as u64) as usize;
    (0..count).map(move |strip| random.random_range(start(strip)..start(strip + 1)))
}

impl Compressor for RandomK {
    fn encode(&mut self, gradient: &[f32]) {
        let count = count_kept(gradient.len(), self.kept);
        self.values.clear();
        self.values.extend(places(gradient.len(), count, self.seed).map(|place| gradient[place]));
    }

    fn decode(&self, gradient: &mut [f32]) {
        gradient.fill(0.0);
        let count = self.values.len().min(gradient.len());
        for (place, value) in places(gradient.len(), count, self.seed).zip(&self.values) {
            gradient[place] = *value;
        }
    }

    fn wire_bytes(&self) -> Bytes {
        Bytes::new(4 * self.values.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_encoded_are_encoded_sums() {
        let one: Vec<f32> = (1..=1_003).map(|i| i as f32).collect();
        let other: Vec<f32> = one.iter().map(|value| value * 1_000.0).collect();
        let (mut sum, mut second) = (RandomK::new(0.1, 7), RandomK::new(0.1, 7));
        sum.encode(&one);
        second.encode(&other);
        assert_eq!(sum.values.len(), 100);
        for (a, b) in sum.values.iter_mut().zip(&second.values) {
            *a += b;
        }
        let mut back = vec![9.0; 1_003];
        sum.decode(&mut back);
        for (value, got) in one.iter().zip(&back) {
            assert!(*got == 0.0 || *got == value * 1_001.0, "{value}: {got}");
        }
        assert_eq!(back.iter().filter(|value| **value != 0.0).count(), 100);
    }

    #[test]
    fn seeds_draw_different_places_and_strips_are_never_empty() {
        let drawn = |seed| places(1_000, 10, seed).collect::<Vec<_>>();
        assert_ne!(drawn(1), drawn(2));
        assert_eq!(drawn(1), drawn(1));
        assert_eq!(places(5, 5, 3).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        assert_eq!(places(5, 0, 3).count(), 0);
    }
}
