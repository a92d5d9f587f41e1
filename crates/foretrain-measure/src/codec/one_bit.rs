//! One bit per element.

use foretrain_core::Bytes;

use super::{Compressor, mean_magnitude};

/// Signs, and the mean magnitude that stands for all of them.
#[derive(Clone, Debug, Default)]
pub struct OneBit {
    negative: Vec<u64>,
    elements: usize,
    scale: f32,
}

const PER_WORD: usize = 64;

impl Compressor for OneBit {
    fn encode(&mut self, gradient: &[f32]) {
        self.elements = gradient.len();
        self.scale = mean_magnitude(gradient);
        self.negative.clear();
        self.negative.extend(gradient.chunks(PER_WORD).map(|chunk| {
            let bits = chunk.iter().enumerate();
            bits.fold(0, |word, (bit, value)| word | u64::from(value.to_bits() >> 31) << bit)
        }));
    }

    fn decode(&self, gradient: &mut [f32]) {
        let scale = self.scale.to_bits();
        for (chunk, word) in gradient.chunks_mut(PER_WORD).zip(&self.negative) {
            for (bit, value) in chunk.iter_mut().enumerate() {
                *value = f32::from_bits(scale | ((word >> bit) as u32 & 1) << 31);
            }
        }
    }

    fn wire_bytes(&self) -> Bytes {
        Bytes::new(self.elements.div_ceil(8) as u64 + size_of::<f32>() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_and_the_mean_magnitude_are_kept() {
        let gradient: Vec<f32> = (0..131).map(|i| if i % 3 == 0 { -2.0 } else { 0.5 }).collect();
        let mut one = OneBit::default();
        one.encode(&gradient);
        let mut back = vec![0.0; 131];
        one.decode(&mut back);
        let mean = (44.0 * 2.0 + 87.0 * 0.5) / 131.0;
        for (value, got) in gradient.iter().zip(&back) {
            assert!((got - mean * value.signum()).abs() < 1e-5, "{value}: {got}");
        }
        assert_eq!(one.wire_bytes().get(), 17 + 4);
    }
}
