//! AlexNet in the form of arXiv 1404.5997.

use foretrain_core::Result;
use serde::Deserialize;

use super::net::{Filter, Net};
use super::resnet::{thousand, usual_image};
use crate::model::{Elementwise, Model, Role};

/// Five convolutions and three wide layers.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AlexNet {
    /// Classes.
    #[serde(default = "thousand")]
    pub classes: u64,
    /// Rows and columns of an image.
    #[serde(default = "usual_image")]
    pub image: u64,
}

impl AlexNet {
    /// Its layers.
    ///
    /// # Errors
    /// If there are no classes, or images are too small.
    pub fn model(&self, name: &str) -> Result<Model> {
        let mut net = Net::new(self.image, self.classes)?;
        let first = Filter { padding: (2, 2), ..Filter::valid(64, (11, 11), 4) };
        let filters = [
            (first, true),
            (Filter::same(192, 5, 1), true),
            (Filter::same(384, 3, 1), false),
            (Filter::same(256, 3, 1), false),
            (Filter::same(256, 3, 1), true),
        ];
        for (number, (filter, pools)) in filters.into_iter().enumerate() {
            net.convolve("conv", Filter { bias: true, ..filter })?;
            net.elementwise("relu", Elementwise::Relu);
            if pools {
                net.pool("pool", 3, 2, 0)?;
            }
            net.close(&format!("conv{}", number + 1), Role::Body);
        }
        net.pool_to("pool", (6, 6));
        for part in ["fc1", "fc2"] {
            net.elementwise(&format!("{part}.dropout"), Elementwise::Dropout);
            net.linear(part, 4096)?;
            net.elementwise(&format!("{part}.relu"), Elementwise::Relu);
        }
        net.linear("fc3", self.classes)?;
        net.finish(name, "alexnet")
    }
}
