//! VGG (arXiv 1409.1556), as torchvision builds it without batch normalisation.

use crate::convolution::{Convolution, linear};
use crate::profile::Profile;

/// A VGG network on images of 224 x 224.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vgg {
    /// Its name.
    pub name: &'static str,
    /// Convolutions in each of the five stages.
    pub convolutions: [u64; 5],
    /// Classes.
    pub classes: u64,
}

impl Vgg {
    /// VGG-11.
    pub const fn vgg11() -> Self {
        Self { name: "VGG-11", convolutions: [1, 1, 2, 2, 2], classes: 1000 }
    }
    /// VGG-16.
    pub const fn vgg16() -> Self {
        Self { name: "VGG-16", convolutions: [2, 2, 3, 3, 3], classes: 1000 }
    }
    /// VGG-19.
    pub const fn vgg19() -> Self {
        Self { name: "VGG-19", convolutions: [2, 2, 4, 4, 4], classes: 1000 }
    }

    /// Its layers.
    pub fn profile(&self) -> Profile {
        let (mut layers, mut inputs, mut side) = (Vec::new(), 3, 224);
        for (outputs, &convolutions) in [64, 128, 256, 512, 512].into_iter().zip(&self.convolutions)
        {
            for _ in 0..convolutions {
                let convolution = Convolution { inputs, outputs, kernel: 3, groups: 1, side };
                layers.push(convolution.with_bias(format!("conv{}", layers.len() + 1)));
                inputs = outputs;
            }
            side /= 2;
        }
        layers.push(linear("fc1", 512 * side * side, 4096));
        layers.push(linear("fc2", 4096, 4096));
        layers.push(linear("fc3", 4096, self.classes));
        Profile { name: self.name.into(), layers }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_those_published() {
        assert_eq!(Vgg::vgg11().profile().parameters(), 132_863_336);
        assert_eq!(Vgg::vgg16().profile().parameters(), 138_357_544);
        assert_eq!(Vgg::vgg19().profile().parameters(), 143_667_240);
    }
}
