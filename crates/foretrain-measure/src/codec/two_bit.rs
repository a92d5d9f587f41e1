//! Two bits per element.

use foretrain_core::Bytes;

use super::{Compressor, mean_magnitude};

/// Whether an element lies below, about or above zero. What is no larger than the mean magnitude
/// counts as zero, and the mean magnitude stands for the rest.
#[derive(Clone, Debug, Default)]
pub struct TwoBit {
    codes: Vec<u64>,
    elements: usize,
    threshold: f32,
}

const PER_WORD: usize = 32;
const ABOVE: u64 = 0b01;
const BELOW: u64 = 0b10;

impl Compressor for TwoBit {
    fn encode(&mut self, gradient: &[f32]) {
        let threshold = mean_magnitude(gradient);
        let code = |value: f32| {
            u64::from(value > threshold) * ABOVE + u64::from(value < -threshold) * BELOW
        };
        self.elements = gradient.len();
        self.threshold = threshold;
        self.codes.clear();
        self.codes.extend(gradient.chunks(PER_WORD).map(|chunk| {
            let values = chunk.iter().enumerate();
            values.fold(0, |word, (place, value)| word | code(*value) << (2 * place))
        }));
    }

    fn decode(&self, gradient: &mut [f32]) {
        // The fourth code is never written.
        let levels = [0.0, self.threshold, -self.threshold, 0.0];
        for (chunk, word) in gradient.chunks_mut(PER_WORD).zip(&self.codes) {
            for (place, value) in chunk.iter_mut().enumerate() {
                *value = levels[(word >> (2 * place) & 0b11) as usize];
            }
        }
    }

    fn wire_bytes(&self) -> Bytes {
        Bytes::new(self.elements.div_ceil(4) as u64 + size_of::<f32>() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_levels_are_kept() {
        let gradient: Vec<f32> = (0..70).map(|i| [4.0, -0.1, -4.0, 0.1][i % 4]).collect();
        let mut two = TwoBit::default();
        two.encode(&gradient);
        let mut back = vec![7.0; 70];
        two.decode(&mut back);
        let mean = gradient.iter().map(|value| value.abs()).sum::<f32>() / 70.0;
        for (index, got) in back.iter().enumerate() {
            let wanted = [mean, 0.0, -mean, 0.0][index % 4];
            assert!((got - wanted).abs() < 1e-5, "{index}: {got}, not {wanted}");
        }
        assert_eq!(two.wire_bytes().get(), 18 + 4);
    }
}
