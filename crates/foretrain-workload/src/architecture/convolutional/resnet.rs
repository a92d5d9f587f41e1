//! Residual networks (arXiv 1512.03385) and ResNeXt (1611.05431).

use foretrain_core::Result;
use serde::Deserialize;

use super::net::{Filter, Net};
use crate::limits::{self, divided, within};
use crate::model::{Elementwise, Model, Role};

/// A residual network.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResNet {
    /// Blocks in each of the four stages.
    pub blocks: [u64; 4],
    /// Blocks of 1x1, 3x3 and 1x1 instead of two 3x3.
    #[serde(default)]
    pub bottleneck: bool,
    /// Groups of the 3x3 convolutions.
    #[serde(default = "one")]
    pub groups: u64,
    /// Channels per group at the first stage's width of 64.
    #[serde(default = "first_width")]
    pub width_per_group: u64,
    /// Classes.
    #[serde(default = "thousand")]
    pub classes: u64,
    /// Rows and columns of an image.
    #[serde(default = "usual_image")]
    pub image: u64,
}

const fn one() -> u64 {
    1
}
const fn first_width() -> u64 {
    64
}
pub(super) const fn thousand() -> u64 {
    1000
}
pub(super) const fn usual_image() -> u64 {
    224
}

impl ResNet {
    /// Blocks of two 3x3 convolutions, for the thousand classes of ImageNet.
    pub const fn basic(blocks: [u64; 4]) -> Self {
        Self {
            blocks,
            bottleneck: false,
            groups: one(),
            width_per_group: first_width(),
            classes: thousand(),
            image: usual_image(),
        }
    }

    /// Its layers.
    ///
    /// # Errors
    /// If a dimension is zero or beyond any model, or images are too small.
    pub fn model(&self, name: &str) -> Result<Model> {
        let mut net = Net::new(self.image, self.classes)?;
        self.features(&mut net)?;
        net.pool_to("pool", (1, 1));
        net.linear("fc", self.classes)?;
        net.finish(name, "resnet")
    }

    /// Its layers up to the last planes.
    pub(super) fn features(&self, net: &mut Net) -> Result<()> {
        for blocks in self.blocks {
            within("blocks", blocks, 1, 1024)?;
        }
        within("groups", self.groups, 1, limits::PARTS)?;
        within("width_per_group", self.width_per_group, 1, limits::PARTS)?;
        net.basic("conv", Filter::same(64, 7, 2))?;
        net.pool("pool", 3, 2, 1)?;
        net.close("stem", Role::Input);
        for (stage, (planes, &blocks)) in
            [64, 128, 256, 512].into_iter().zip(&self.blocks).enumerate()
        {
            for block in 0..blocks {
                let stride = if block == 0 && stage > 0 { 2 } else { 1 };
                self.block(net, planes, stride)?;
                net.close(&format!("layer{}.{block}", stage + 1), Role::Body);
            }
        }
        Ok(())
    }

    fn block(&self, net: &mut Net, planes: u64, stride: u64) -> Result<()> {
        let before = net.planes;
        if self.bottleneck {
            let width = divided("width", planes * self.width_per_group, "64", 64)? * self.groups;
            net.basic("conv1", Filter::same(width, 1, 1))?;
            net.basic("conv2", Filter { groups: self.groups, ..Filter::same(width, 3, stride) })?;
            net.normed("conv3", Filter::same(planes * 4, 1, 1))?;
        } else {
            net.basic("conv1", Filter::same(planes, 3, stride))?;
            net.normed("conv2", Filter::same(planes, 3, 1))?;
        }
        let after = net.planes;
        if before != after {
            net.planes = before;
            net.normed("downsample", Filter::same(after.channels, 1, stride))?;
        }
        net.elementwise("residual", Elementwise::Residual);
        net.elementwise("relu", Elementwise::Relu);
        Ok(())
    }
}
