//! A cast to 16 bits.

use foretrain_core::Bytes;
use half::f16;
use half::slice::HalfFloatSliceExt;

use super::Compressor;

/// Elements as fp16, by the processor's own conversion where it has one. A cast to bf16 only drops
/// bits and is no dearer.
#[derive(Clone, Debug, Default)]
pub struct HalfPrecision {
    /// The elements. Sums of these are encoded sums.
    pub values: Vec<f16>,
}

impl Compressor for HalfPrecision {
    fn encode(&mut self, gradient: &[f32]) {
        self.values.resize(gradient.len(), f16::ZERO);
        self.values.convert_from_f32_slice(gradient);
    }

    fn decode(&self, gradient: &mut [f32]) {
        let length = gradient.len().min(self.values.len());
        self.values[..length].convert_to_f32_slice(&mut gradient[..length]);
    }

    fn wire_bytes(&self) -> Bytes {
        Bytes::new(2 * self.values.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(gradient: &[f32]) -> HalfPrecision {
        let mut half = HalfPrecision::default();
        half.encode(gradient);
        half
    }

    #[test]
    fn eleven_bits_are_kept_and_sums_of_encoded_are_encoded_sums() {
        let one: Vec<f32> = (1..500).map(|i| 1.0 / i as f32).collect();
        let other: Vec<f32> = (1..500).map(|i| (i as f32).cos()).collect();
        let (mut sum, second) = (encoded(&one), encoded(&other));
        let mut back = vec![0.0; one.len()];
        sum.decode(&mut back);
        assert!(one.iter().zip(&back).all(|(a, b)| (a / b - 1.0).abs() < 1.0 / 2048.0));
        for (a, b) in sum.values.iter_mut().zip(&second.values) {
            *a += *b;
        }
        sum.decode(&mut back);
        for ((a, b), got) in one.iter().zip(&other).zip(&back) {
            assert!((a + b - got).abs() < 2e-3, "{a} + {b} = {got}");
        }
    }
}
