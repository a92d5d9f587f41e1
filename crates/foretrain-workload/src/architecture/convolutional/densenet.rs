//! DenseNet (arXiv 1608.06993).

use foretrain_core::Result;
use serde::Deserialize;

use super::net::{Filter, Net};
use super::resnet::{thousand, usual_image};
use crate::limits::{self, within};
use crate::model::{Elementwise, Model, Role};

/// Stages of layers that each see the results of all before them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DenseNet {
    /// Layers in each of the four stages.
    pub layers: [u64; 4],
    /// Channels that each layer adds.
    #[serde(default = "usual_growth")]
    pub growth: u64,
    /// Channels before the first stage.
    #[serde(default = "usual_stem")]
    pub stem: u64,
    /// Classes.
    #[serde(default = "thousand")]
    pub classes: u64,
    /// Rows and columns of an image.
    #[serde(default = "usual_image")]
    pub image: u64,
}

const fn usual_growth() -> u64 {
    32
}
const fn usual_stem() -> u64 {
    64
}

/// A layer's first convolution narrows to so many times the growth.
const NARROW: u64 = 4;

impl DenseNet {
    /// Its layers.
    ///
    /// # Errors
    /// If a dimension is zero or beyond any model, or images are too small.
    pub fn model(&self, name: &str) -> Result<Model> {
        within("growth", self.growth, 1, limits::PARTS)?;
        within("stem", self.stem, 1, limits::PARTS)?;
        let mut net = Net::new(self.image, self.classes)?;
        net.basic("conv", Filter::same(self.stem, 7, 2))?;
        net.pool("pool", 3, 2, 1)?;
        net.close("stem", Role::Input);
        for (stage, &layers) in self.layers.iter().enumerate() {
            if stage > 0 {
                activated(&mut net, "norm");
                net.convolve("conv", Filter::same((net.planes.channels / 2).max(1), 1, 1))?;
                net.pool("pool", 2, 2, 0)?;
                net.close(&format!("transition{stage}"), Role::Body);
            }
            for layer in 0..within("layers", layers, 1, 1024)? {
                let before = net.planes;
                activated(&mut net, "norm1");
                net.convolve("conv1", Filter::same(NARROW * self.growth, 1, 1))?;
                activated(&mut net, "norm2");
                net.convolve("conv2", Filter::same(self.growth, 3, 1))?;
                net.join("concat", before.channels);
                net.close(&format!("dense{}.{layer}", stage + 1), Role::Body);
            }
        }
        activated(&mut net, "norm");
        net.pool_to("pool", (1, 1));
        net.linear("fc", self.classes)?;
        net.finish(name, "densenet")
    }
}

fn activated(net: &mut Net, name: &str) {
    net.batch_norm(name);
    net.elementwise(&format!("{name}.relu"), Elementwise::Relu);
}
