//! Faster R-CNN (arXiv 1506.01497) on the last planes of a classifier, as torchvision builds it
//! from a backbone of one's own.

use foretrain_core::Result;
use serde::Deserialize;

use super::inverted;
use super::net::{Filter, Net, Planes};
use super::resnet::ResNet;
use super::vgg::Vgg;
use crate::model::{Elementwise, Model, Role};

/// What the detector looks through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Backbone {
    /// ResNet-50 up to its last stage.
    #[serde(rename = "resnet-50")]
    ResNet50,
    /// ResNet-101 up to its last stage.
    #[serde(rename = "resnet-101")]
    ResNet101,
    /// VGG-16 without its wide layers.
    #[serde(rename = "vgg-16")]
    Vgg16,
    /// MobileNet v2 up to its last convolution.
    #[serde(rename = "mobilenet-v2")]
    MobileNetV2,
}

/// A detector of two steps: regions are proposed, then looked at one by one.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FasterRcnn {
    /// What it looks through.
    pub backbone: Backbone,
    /// Classes, of which one is that nothing is there.
    #[serde(default = "coco")]
    pub classes: u64,
    /// Rows and columns of an image.
    #[serde(default = "usual_image")]
    pub image: u64,
}

const fn coco() -> u64 {
    91
}
const fn usual_image() -> u64 {
    800
}

/// Regions proposed at each place: five sizes of three forms.
const ANCHORS: u64 = 15;
/// Regions of an image that are looked at in training.
const REGIONS: u64 = 512;
/// Rows and columns that a region is pooled to.
const REGION: (u64, u64) = (7, 7);
/// Width of the layers that look at a region.
const WIDE: u64 = 1024;
/// Sides of a box.
const SIDES: u64 = 4;

impl FasterRcnn {
    /// Its layers.
    ///
    /// # Errors
    /// If there are no classes, or images are too small.
    pub fn model(&self, name: &str) -> Result<Model> {
        let mut net = Net::new(self.image, self.classes)?;
        match self.backbone {
            Backbone::ResNet50 => bottlenecks([3, 4, 6, 3]).features(&mut net)?,
            Backbone::ResNet101 => bottlenecks([3, 4, 23, 3]).features(&mut net)?,
            Backbone::Vgg16 => Vgg::features(&mut net, &[2, 2, 3, 3, 3], false)?,
            Backbone::MobileNetV2 => {
                inverted::features_v2(&mut net)?;
                net.close("last", Role::Body);
            }
        }
        let seen = net.planes;
        net.convolve("conv", Filter { bias: true, ..Filter::same(seen.channels, 3, 1) })?;
        net.elementwise("conv.relu", Elementwise::Relu);
        for (what, numbers) in [("objects", 1), ("sides", SIDES)] {
            net.planes = seen;
            let filter = Filter::same(ANCHORS * numbers, 1, 1);
            net.convolve(what, Filter { bias: true, ..filter })?;
        }
        net.close("proposals", Role::Body);

        net.planes = Planes { size: REGION, ..seen };
        for part in ["fc6", "fc7"] {
            net.linear(part, WIDE)?;
            net.elementwise(&format!("{part}.relu"), Elementwise::Relu);
        }
        let looked = net.planes;
        net.linear("classes", self.classes)?;
        net.planes = looked;
        net.linear("sides", self.classes * SIDES)?;
        net.close_at("regions", Role::Body, REGIONS);
        net.finish_with(name, "faster-rcnn", self.classes)
    }
}

fn bottlenecks(blocks: [u64; 4]) -> ResNet {
    ResNet { bottleneck: true, ..ResNet::basic(blocks) }
}
