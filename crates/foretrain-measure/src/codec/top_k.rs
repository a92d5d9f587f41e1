//! The largest elements.

use foretrain_core::Bytes;

use super::{Compressor, count_kept};

/// The elements of the largest magnitude, by selection, each with its place.
#[derive(Clone, Debug)]
pub struct TopK {
    kept: f64,
    places: Vec<u32>,
    values: Vec<f32>,
    /// Magnitudes, for selection to move about.
    magnitudes: Vec<u32>,
}

impl TopK {
    /// Keeps such a share of the elements.
    pub fn new(kept: f64) -> Self {
        Self { kept, places: Vec::new(), values: Vec::new(), magnitudes: Vec::new() }
    }
}

/// Bits that order as magnitudes do.
const fn magnitude(value: f32) -> u32 {
    value.to_bits() & (u32::MAX >> 1)
}

impl Compressor for TopK {
    fn encode(&mut self, gradient: &[f32]) {
        self.places.clear();
        self.values.clear();
        let count = count_kept(gradient.len(), self.kept);
        if count == 0 {
            return;
        }
        self.magnitudes.clear();
        self.magnitudes.extend(gradient.iter().copied().map(magnitude));
        let nth = gradient.len() - count;
        let (_, &mut smallest, above) = self.magnitudes.select_nth_unstable(nth);
        let mut ties = count - above.iter().filter(|other| **other > smallest).count();
        for (place, &value) in (0..).zip(gradient) {
            let size = magnitude(value);
            if size > smallest || (size == smallest && ties > 0) {
                ties -= usize::from(size == smallest);
                self.places.push(place);
                self.values.push(value);
            }
        }
    }

    fn decode(&self, gradient: &mut [f32]) {
        gradient.fill(0.0);
        for (&place, &value) in self.places.iter().zip(&self.values) {
            if let Some(slot) = gradient.get_mut(place as usize) {
                *slot = value;
            }
        }
    }

    fn wire_bytes(&self) -> Bytes {
        Bytes::new(8 * self.values.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(kept: f64, gradient: &[f32]) -> Vec<f32> {
        let mut top = TopK::new(kept);
        top.encode(gradient);
        let mut back = vec![9.0; gradient.len()];
        top.decode(&mut back);
        back
    }

    #[test]
    fn the_largest_are_kept_as_they_are() {
        let gradient = [0.1, -5.0, 0.2, 3.0, -0.3, 0.0, 4.0, -0.1, 0.2, 0.3];
        assert_eq!(decoded(0.3, &gradient), [0.0, -5.0, 0.0, 3.0, 0.0, 0.0, 4.0, 0.0, 0.0, 0.0]);
        assert_eq!(decoded(1.0, &gradient), gradient);
        assert_eq!(decoded(0.0, &gradient)[1], -5.0, "one is always kept");
    }

    #[test]
    fn of_equal_ones_as_many_as_there_is_room_for() {
        let back = decoded(0.5, &[1.0, -1.0, 2.0, 1.0, 1.0, -1.0]);
        assert_eq!(back, [1.0, -1.0, 2.0, 0.0, 0.0, 0.0]);
    }
}
