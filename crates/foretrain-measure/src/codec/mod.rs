//! Shrinking gradients, as it is done on a processor before they are sent.
//!
//! What makes up for the loss in training, keeping what was cut off and adding it to the next
//! gradient, is a sum and a copy more, which are measured on their own.

mod half_precision;
mod one_bit;
mod random_k;
mod top_k;
mod two_bit;

use foretrain_core::Bytes;
use foretrain_cost::primitives::Scheme;

pub use half_precision::HalfPrecision;
pub use one_bit::OneBit;
pub use random_k::RandomK;
pub use top_k::TopK;
pub use two_bit::TwoBit;

/// Holds one encoded gradient. A gradient has less than 2^32 elements.
pub trait Compressor {
    /// Encodes a gradient in place of the one before.
    fn encode(&mut self, gradient: &[f32]);
    /// Overwrites a gradient, as long as the encoded one, with what is left of that.
    fn decode(&self, gradient: &mut [f32]);
    /// What would be sent.
    fn wire_bytes(&self) -> Bytes;
}

/// A compressor for a scheme; those that choose elements keep `kept` of them.
pub fn compressor(scheme: Scheme, kept: f64) -> Box<dyn Compressor> {
    match scheme {
        Scheme::Half => Box::new(HalfPrecision::default()),
        Scheme::OneBit => Box::new(OneBit::default()),
        Scheme::TwoBit => Box::new(TwoBit::default()),
        Scheme::TopK => Box::new(TopK::new(kept)),
        Scheme::RandomK => Box::new(RandomK::new(kept, 0)),
    }
}

/// How many of so many elements are kept: one at least, if there is one.
fn count_kept(elements: usize, kept: f64) -> usize {
    let wanted = (elements as f64 * kept).round() as usize;
    wanted.clamp(elements.min(1), elements)
}

/// The mean of the magnitudes; 0 of no elements.
fn mean_magnitude(gradient: &[f32]) -> f32 {
    const LANES: usize = 16;
    /// Elements that may be summed in single precision.
    const BLOCK: usize = 1 << 12;
    let mut total = 0.0_f64;
    for block in gradient.chunks(BLOCK) {
        let mut sums = [0.0_f32; LANES];
        let (lanes, rest) = block.as_chunks::<LANES>();
        for lane in lanes {
            for (sum, value) in sums.iter_mut().zip(lane) {
                *sum += value.abs();
            }
        }
        let rest: f32 = rest.iter().map(|value| value.abs()).sum();
        total += f64::from(sums.iter().sum::<f32>() + rest);
    }
    (total / gradient.len().max(1) as f64) as f32
}

#[cfg(test)]
mod tests {
    use foretrain_cost::primitives::Codec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_sent_is_as_long_as_the_cost_model_says() {
        let gradient: Vec<f32> = (0..6_400).map(|i| (i as f32).sin()).collect();
        for scheme in Scheme::ALL {
            let mut one = compressor(scheme, 0.01);
            one.encode(&gradient);
            let said = Codec::new(scheme, 0.01).wire_bytes(Bytes::new(4 * 6_400)).get();
            let sent = one.wire_bytes().get();
            assert!((said..=said + 8).contains(&sent), "{scheme:?}: {sent} of {said}");
        }
    }

    #[test]
    fn means_are_those_of_all_elements() {
        assert_eq!(mean_magnitude(&[]), 0.0);
        assert_eq!(mean_magnitude(&[-1.0, 3.0, -2.0]), 2.0);
        let long: Vec<f32> = (0..10_007).map(|i| if i % 2 == 0 { 0.5 } else { -1.5 }).collect();
        assert!((mean_magnitude(&long) - 1.0).abs() < 1e-3);
    }

    /// No gradient of the test holds these bits, nor any mean of it.
    const UNWRITTEN: u32 = 0x7fc1_2345;

    proptest! {
        /// Whatever bits a gradient holds, nothing panics and every element is written.
        #[test]
        fn any_gradient_is_taken(bits in proptest::collection::vec(any::<u32>(), 0..300), kept in 0.0f64..=1.0) {
            let gradient: Vec<f32> = bits.into_iter().map(f32::from_bits).collect();
            for scheme in Scheme::ALL {
                let mut one = compressor(scheme, kept);
                one.encode(&gradient);
                one.encode(&gradient);
                let mut out = vec![f32::from_bits(UNWRITTEN); gradient.len()];
                one.decode(&mut out);
                prop_assert!(out.iter().all(|value| value.to_bits() != UNWRITTEN), "{scheme:?}");
                one.decode(&mut []);
            }
        }
    }
}
