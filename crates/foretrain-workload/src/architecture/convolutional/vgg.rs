//! VGG (arXiv 1409.1556).

use foretrain_core::Result;
use serde::Deserialize;

use super::net::{Filter, Net};
use super::resnet::{thousand, usual_image};
use crate::limits::within;
use crate::model::{Elementwise, Model, Role};

/// Stages of 3x3 convolutions, then three wide layers.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vgg {
    /// Convolutions in each of the five stages.
    pub convolutions: [u64; 5],
    /// Norms after the convolutions.
    #[serde(default)]
    pub batch_norm: bool,
    /// Classes.
    #[serde(default = "thousand")]
    pub classes: u64,
    /// Rows and columns of an image.
    #[serde(default = "usual_image")]
    pub image: u64,
}

impl Vgg {
    /// Its layers.
    ///
    /// # Errors
    /// If a dimension is zero or beyond any model, or images are too small.
    pub fn model(&self, name: &str) -> Result<Model> {
        let mut net = Net::new(self.image, self.classes)?;
        Self::features(&mut net, &self.convolutions, self.batch_norm)?;
        net.pool_to("pool", (7, 7));
        for part in ["fc1", "fc2"] {
            net.linear(part, 4096)?;
            net.elementwise(&format!("{part}.relu"), Elementwise::Relu);
            net.elementwise(&format!("{part}.dropout"), Elementwise::Dropout);
        }
        net.linear("fc3", self.classes)?;
        net.finish(name, "vgg")
    }

    /// Its stages up to the last planes.
    pub(super) fn features(net: &mut Net, convolutions: &[u64; 5], batch_norm: bool) -> Result<()> {
        for (stage, (outputs, count)) in Self::stages(convolutions).into_iter().enumerate() {
            Self::stage(net, outputs, count, batch_norm)?;
            net.pool("pool", 2, 2, 0)?;
            net.close(&format!("stage{}", stage + 1), Role::Body);
        }
        Ok(())
    }

    /// Channels and convolutions of each stage.
    pub(super) fn stages(convolutions: &[u64; 5]) -> [(u64, u64); 5] {
        let [a, b, c, d, e] = *convolutions;
        [(64, a), (128, b), (256, c), (512, d), (512, e)]
    }

    /// The convolutions of a stage, before what makes its planes smaller.
    pub(super) fn stage(net: &mut Net, outputs: u64, count: u64, batch_norm: bool) -> Result<()> {
        for number in 0..within("convolutions", count, 1, 1024)? {
            let part = format!("conv{number}");
            let filter = Filter { bias: true, ..Filter::same(outputs, 3, 1) };
            if batch_norm {
                net.normed(&part, filter)?;
            } else {
                net.convolve(&part, filter)?;
            }
            net.elementwise(&format!("{part}.relu"), Elementwise::Relu);
        }
        Ok(())
    }
}
