//! SqueezeNet (arXiv 1602.07360).

use foretrain_core::Result;
use serde::Deserialize;

use super::net::{Filter, Net};
use super::resnet::{thousand, usual_image};
use crate::model::{Elementwise, Model, Role};

/// Which SqueezeNet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum SqueezeNetVersion {
    /// As published.
    #[serde(rename = "1.0")]
    First,
    /// With smaller filters and earlier pooling.
    #[serde(rename = "1.1")]
    Second,
}

/// A SqueezeNet.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SqueezeNet {
    /// Which.
    pub version: SqueezeNetVersion,
    /// Classes.
    #[serde(default = "thousand")]
    pub classes: u64,
    /// Rows and columns of an image.
    #[serde(default = "usual_image")]
    pub image: u64,
}

/// Channels that each module narrows to; it widens to four times as many by filters of 1x1 and of
/// 3x3 each.
const NARROW: [u64; 8] = [16, 16, 32, 32, 48, 48, 64, 64];

impl SqueezeNet {
    /// Its layers.
    ///
    /// # Errors
    /// If there are no classes, or images are too small.
    pub fn model(&self, name: &str) -> Result<Model> {
        let mut net = Net::new(self.image, self.classes)?;
        let (stem, pooled_before) = match self.version {
            SqueezeNetVersion::First => (Filter::valid(96, (7, 7), 2), [0, 3, 7]),
            SqueezeNetVersion::Second => (Filter::valid(64, (3, 3), 2), [0, 2, 4]),
        };
        biased(&mut net, "conv", stem)?;
        net.close("stem", Role::Input);
        for (number, narrow) in NARROW.into_iter().enumerate() {
            if pooled_before.contains(&number) {
                net.halve("pool", 3)?;
            }
            biased(&mut net, "squeeze", Filter::same(narrow, 1, 1))?;
            let squeezed = net.planes;
            for side in [1, 3] {
                net.planes = squeezed;
                let wide = Filter::same(4 * narrow, side, 1);
                biased(&mut net, &format!("expand{side}x{side}"), wide)?;
            }
            net.join("concat", 4 * narrow);
            net.close(&format!("fire{}", number + 2), Role::Body);
        }
        net.elementwise("dropout", Elementwise::Dropout);
        biased(&mut net, "conv", Filter::same(self.classes, 1, 1))?;
        net.pool_to("pool", (1, 1));
        net.finish(name, "squeezenet")
    }
}

fn biased(net: &mut Net, name: &str, filter: Filter) -> Result<()> {
    net.convolve(name, Filter { bias: true, ..filter })?;
    net.elementwise(&format!("{name}.relu"), Elementwise::Relu);
    Ok(())
}
