//! MobileNet v2 (arXiv 1801.04381), v3 (1905.02244) and EfficientNet (1905.11946): blocks that widen,
//! filter each channel by itself, and narrow again.

use foretrain_core::{InputError, Result};
use serde::Deserialize;

use super::net::{Filter, Net};
use super::resnet::{thousand, usual_image};
use crate::model::{Elementwise, Model, Role};

/// One block.
#[derive(Clone, Copy)]
struct Inverted {
    kernel: u64,
    expanded: u64,
    outputs: u64,
    /// Channels in the middle of squeeze and excitation; 0 without.
    squeezed: u64,
    activation: Elementwise,
    stride: u64,
}

impl Inverted {
    fn add_to(self, net: &mut Net) -> Result<()> {
        let before = net.planes;
        if self.expanded != before.channels {
            net.normed("expand", Filter::same(self.expanded, 1, 1))?;
            net.elementwise("expand.activation", self.activation);
        }
        let each = Filter::same(self.expanded, self.kernel, self.stride);
        net.normed("depthwise", Filter { groups: self.expanded, ..each })?;
        net.elementwise("depthwise.activation", self.activation);
        if self.squeezed > 0 {
            net.excite("excitation", self.squeezed)?;
        }
        net.normed("project", Filter::same(self.outputs, 1, 1))?;
        if net.planes == before {
            net.elementwise("residual", Elementwise::Residual);
        }
        Ok(())
    }
}

/// The multiple of 8 nearest to `channels`, but no more than a tenth below.
fn rounded(channels: f64) -> u64 {
    let near = (((channels + 4.0) / 8.0).floor() * 8.0).max(8.0);
    (if near < 0.9 * channels { near + 8.0 } else { near }) as u64
}

/// Stem and blocks up to the last convolution.
fn body(
    net: &mut Net,
    stem: u64,
    blocks: &[Inverted],
    last: u64,
    activation: Elementwise,
) -> Result<()> {
    net.normed("conv", Filter::same(stem, 3, 2))?;
    net.elementwise("activation", activation);
    net.close("stem", Role::Input);
    for (number, block) in blocks.iter().enumerate() {
        block.add_to(net)?;
        net.close(&format!("block{number}"), Role::Body);
    }
    net.normed("conv", Filter::same(last, 1, 1))?;
    net.elementwise("activation", activation);
    Ok(())
}

/// MobileNet v2 up to its last planes.
pub(super) fn features_v2(net: &mut Net) -> Result<()> {
    body(net, 32, &second(), 1280, Elementwise::Relu)
}

/// Which MobileNet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MobileNetVersion {
    /// Version 2.
    V2,
    /// Version 3, large.
    V3Large,
    /// Version 3, small.
    V3Small,
}

/// A MobileNet of width 1.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MobileNet {
    /// Which.
    pub version: MobileNetVersion,
    /// Classes.
    #[serde(default = "thousand")]
    pub classes: u64,
    /// Rows and columns of an image.
    #[serde(default = "usual_image")]
    pub image: u64,
}

/// Kernel, expanded channels, channels out, excitation, hard swish, stride.
type Row = (u64, u64, u64, bool, bool, u64);

const V3_LARGE: [Row; 15] = [
    (3, 16, 16, false, false, 1),
    (3, 64, 24, false, false, 2),
    (3, 72, 24, false, false, 1),
    (5, 72, 40, true, false, 2),
    (5, 120, 40, true, false, 1),
    (5, 120, 40, true, false, 1),
    (3, 240, 80, false, true, 2),
    (3, 200, 80, false, true, 1),
    (3, 184, 80, false, true, 1),
    (3, 184, 80, false, true, 1),
    (3, 480, 112, true, true, 1),
    (3, 672, 112, true, true, 1),
    (5, 672, 160, true, true, 2),
    (5, 960, 160, true, true, 1),
    (5, 960, 160, true, true, 1),
];

const V3_SMALL: [Row; 11] = [
    (3, 16, 16, true, false, 2),
    (3, 72, 24, false, false, 2),
    (3, 88, 24, false, false, 1),
    (5, 96, 40, true, true, 2),
    (5, 240, 40, true, true, 1),
    (5, 240, 40, true, true, 1),
    (5, 120, 48, true, true, 1),
    (5, 144, 48, true, true, 1),
    (5, 288, 96, true, true, 2),
    (5, 576, 96, true, true, 1),
    (5, 576, 96, true, true, 1),
];

/// Expansion, channels, blocks, stride of the first.
const V2: [(u64, u64, u64, u64); 7] = [
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
];

impl MobileNet {
    /// Its layers.
    ///
    /// # Errors
    /// If there are no classes, or images are too small.
    pub fn model(&self, name: &str) -> Result<Model> {
        let mut net = Net::new(self.image, self.classes)?;
        let (rows, middle) = match self.version {
            MobileNetVersion::V2 => {
                features_v2(&mut net)?;
                net.pool_to("pool", (1, 1));
                net.elementwise("dropout", Elementwise::Dropout);
                net.linear("fc", self.classes)?;
                return net.finish(name, "mobilenet");
            }
            MobileNetVersion::V3Large => (&V3_LARGE[..], 1280),
            MobileNetVersion::V3Small => (&V3_SMALL[..], 1024),
        };
        let blocks = rows.iter().map(|&(kernel, expanded, outputs, excites, swish, stride)| {
            let squeezed = if excites { rounded(expanded as f64 / 4.0) } else { 0 };
            let activation = if swish { Elementwise::Activation } else { Elementwise::Relu };
            Inverted { kernel, expanded, outputs, squeezed, activation, stride }
        });
        let blocks: Vec<Inverted> = blocks.collect();
        let last = blocks.last().map_or(0, |block| block.expanded);
        body(&mut net, 16, &blocks, last, Elementwise::Activation)?;
        net.pool_to("pool", (1, 1));
        net.linear("fc1", middle)?;
        net.elementwise("activation", Elementwise::Activation);
        net.elementwise("dropout", Elementwise::Dropout);
        net.linear("fc2", self.classes)?;
        net.finish(name, "mobilenet")
    }
}

fn second() -> Vec<Inverted> {
    let mut inputs = 32;
    let mut blocks = Vec::new();
    for (expansion, outputs, count, first) in V2 {
        for number in 0..count {
            blocks.push(Inverted {
                kernel: 3,
                expanded: expansion * inputs,
                outputs,
                squeezed: 0,
                activation: Elementwise::Relu,
                stride: if number == 0 { first } else { 1 },
            });
            inputs = outputs;
        }
    }
    blocks
}

/// An EfficientNet: B0 with more channels, more blocks and larger images.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EfficientNet {
    /// Channels relative to B0.
    #[serde(default = "one")]
    pub width: f64,
    /// Blocks relative to B0.
    #[serde(default = "one")]
    pub depth: f64,
    /// Rows and columns of an image.
    #[serde(default = "usual_image")]
    pub image: u64,
    /// Classes.
    #[serde(default = "thousand")]
    pub classes: u64,
}

const fn one() -> f64 {
    1.0
}

/// Expansion, kernel, stride of the first, channels, blocks.
const B0: [(u64, u64, u64, f64, f64); 7] = [
    (1, 3, 1, 16.0, 1.0),
    (6, 3, 2, 24.0, 2.0),
    (6, 5, 2, 40.0, 2.0),
    (6, 3, 2, 80.0, 3.0),
    (6, 5, 1, 112.0, 3.0),
    (6, 5, 2, 192.0, 4.0),
    (6, 3, 1, 320.0, 1.0),
];

impl EfficientNet {
    /// Its layers.
    ///
    /// # Errors
    /// If a dimension is beyond any model, or images are too small.
    pub fn model(&self, name: &str) -> Result<Model> {
        for (key, scale) in [("width", self.width), ("depth", self.depth)] {
            if !(0.1..=32.0).contains(&scale) {
                let message = format!("{key} is {scale}; expected a number from 0.1 to 32");
                return Err(InputError::new(message).at(key));
            }
        }
        let mut net = Net::new(self.image, self.classes)?;
        let stem = rounded(32.0 * self.width);
        let (mut inputs, mut blocks) = (stem, Vec::new());
        for (expansion, kernel, first, channels, count) in B0 {
            let outputs = rounded(channels * self.width);
            for number in 0..(count * self.depth).ceil() as u64 {
                blocks.push(Inverted {
                    kernel,
                    expanded: expansion * inputs,
                    outputs,
                    squeezed: (inputs / 4).max(1),
                    activation: Elementwise::Activation,
                    stride: if number == 0 { first } else { 1 },
                });
                inputs = outputs;
            }
        }
        body(&mut net, stem, &blocks, 4 * inputs, Elementwise::Activation)?;
        net.pool_to("pool", (1, 1));
        net.elementwise("dropout", Elementwise::Dropout);
        net.linear("fc", self.classes)?;
        net.finish(name, "efficientnet")
    }
}
