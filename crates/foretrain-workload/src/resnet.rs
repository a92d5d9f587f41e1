//! Residual networks (arXiv 1512.03385) and ResNeXt (1611.05431), as torchvision builds them.

use crate::convolution::{Convolution, batch_norm, linear};
use crate::profile::{Layer, Profile};

/// A residual network on images of 224 x 224.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResNet {
    /// Its name.
    pub name: &'static str,
    /// Blocks in each of the four stages.
    pub blocks: [u64; 4],
    /// Blocks of 1x1, 3x3 and 1x1 instead of two 3x3.
    pub is_bottleneck: bool,
    /// Groups of the 3x3 convolutions.
    pub groups: u64,
    /// Channels per group at the first stage's width of 64.
    pub width_per_group: u64,
    /// Classes.
    pub classes: u64,
}

impl ResNet {
    const fn new(name: &'static str, blocks: [u64; 4], is_bottleneck: bool) -> Self {
        Self { name, blocks, is_bottleneck, groups: 1, width_per_group: 64, classes: 1000 }
    }
    /// ResNet-18.
    pub const fn resnet18() -> Self {
        Self::new("ResNet-18", [2, 2, 2, 2], false)
    }
    /// ResNet-34.
    pub const fn resnet34() -> Self {
        Self::new("ResNet-34", [3, 4, 6, 3], false)
    }
    /// ResNet-50.
    pub const fn resnet50() -> Self {
        Self::new("ResNet-50", [3, 4, 6, 3], true)
    }
    /// ResNet-101.
    pub const fn resnet101() -> Self {
        Self::new("ResNet-101", [3, 4, 23, 3], true)
    }
    /// ResNet-152.
    pub const fn resnet152() -> Self {
        Self::new("ResNet-152", [3, 8, 36, 3], true)
    }
    /// ResNeXt-50 32x4d.
    pub const fn resnext50_32x4d() -> Self {
        let plain = Self::new("ResNeXt-50 32x4d", [3, 4, 6, 3], true);
        Self { groups: 32, width_per_group: 4, ..plain }
    }
    /// ResNeXt-101 32x8d.
    pub const fn resnext101_32x8d() -> Self {
        let plain = Self::new("ResNeXt-101 32x8d", [3, 4, 23, 3], true);
        Self { groups: 32, width_per_group: 8, ..plain }
    }

    /// Its layers.
    pub fn profile(&self) -> Profile {
        let mut net = Builder { layers: Vec::new() };
        net.convolve(
            "stem",
            Convolution { inputs: 3, outputs: 64, kernel: 7, groups: 1, side: 112 },
        );
        let (mut inputs, mut side) = (64, 56);
        for (stage, (planes, &blocks)) in
            [64, 128, 256, 512].into_iter().zip(&self.blocks).enumerate()
        {
            for block in 0..blocks {
                let halves = block == 0 && stage > 0;
                let name = format!("layer{}.{block}", stage + 1);
                let after = if halves { side / 2 } else { side };
                inputs = self.block(&mut net, &name, inputs, planes, side, after);
                side = after;
            }
        }
        net.layers.push(linear("fc", inputs, self.classes));
        Profile { name: self.name.into(), layers: net.layers }
    }

    /// Adds a block; returns its channels.
    fn block(
        &self,
        net: &mut Builder,
        name: &str,
        inputs: u64,
        planes: u64,
        before: u64,
        after: u64,
    ) -> u64 {
        let mut add = |part: &str, inputs, outputs, kernel, groups, side| {
            let convolution = Convolution { inputs, outputs, kernel, groups, side };
            net.convolve(&format!("{name}.{part}"), convolution);
        };
        let outputs = if self.is_bottleneck {
            let width = planes * self.width_per_group / 64 * self.groups;
            add("conv1", inputs, width, 1, 1, before);
            add("conv2", width, width, 3, self.groups, after);
            add("conv3", width, planes * 4, 1, 1, after);
            planes * 4
        } else {
            add("conv1", inputs, planes, 3, 1, after);
            add("conv2", planes, planes, 3, 1, after);
            planes
        };
        if inputs != outputs || before != after {
            add("downsample", inputs, outputs, 1, 1, after);
        }
        outputs
    }
}

struct Builder {
    layers: Vec<Layer>,
}

impl Builder {
    fn convolve(&mut self, name: &str, convolution: Convolution) {
        self.layers.push(convolution.plain(name.to_owned()));
        let norm = batch_norm(format!("{name}.bn"), convolution.outputs, convolution.side);
        self.layers.push(norm);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts that torchvision publishes with its weights.
    #[test]
    fn parameters_are_those_published() {
        for (net, parameters) in [
            (ResNet::resnet18(), 11_689_512),
            (ResNet::resnet34(), 21_797_672),
            (ResNet::resnet50(), 25_557_032),
            (ResNet::resnet101(), 44_549_160),
            (ResNet::resnet152(), 60_192_808),
            (ResNet::resnext50_32x4d(), 25_028_904),
            (ResNet::resnext101_32x8d(), 88_791_336),
        ] {
            assert_eq!(net.profile().parameters(), parameters, "{}", net.name);
        }
    }

    #[test]
    fn resnet50_has_161_tensors_and_4_gmac() {
        let profile = ResNet::resnet50().profile();
        assert_eq!(profile.layers.iter().map(|layer| layer.tensors.len()).sum::<usize>(), 161);
        // 4.09 GMAC are published; batch normalisation is counted here too.
        let gmac = profile.forward().get() / 2e9;
        assert!((gmac - 4.09).abs() < 0.05, "{gmac}");
    }
}
