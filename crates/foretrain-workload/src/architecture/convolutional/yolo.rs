//! YOLO v3 and its tiny form (arXiv 1804.02767).

use foretrain_core::Result;
use serde::Deserialize;

use super::net::{Filter, Net, Planes};
use crate::model::{Elementwise, Model, Role};

/// A detector that reads boxes off the places of three (or two) grids.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct YoloV3 {
    /// Seven convolutions and two grids.
    #[serde(default)]
    pub tiny: bool,
    /// Classes.
    #[serde(default = "coco")]
    pub classes: u64,
    /// Rows and columns of an image.
    #[serde(default = "usual_image")]
    pub image: u64,
}

const fn coco() -> u64 {
    80
}
const fn usual_image() -> u64 {
    416
}

/// Boxes per place of a grid.
const BOXES: u64 = 3;
/// Numbers of a box beside its classes: four sides and whether anything is there.
const SIDES: u64 = 5;
/// Channels and residual blocks of the stages of Darknet-53.
const STAGES: [(u64, u64); 5] = [(64, 1), (128, 2), (256, 8), (512, 8), (1024, 4)];

impl YoloV3 {
    /// Its layers.
    ///
    /// # Errors
    /// If there are no classes, or images are too small.
    pub fn model(&self, name: &str) -> Result<Model> {
        let mut net = Net::new(self.image, self.classes)?;
        if self.tiny {
            self.tiny_body(&mut net)?;
        } else {
            self.body(&mut net)?;
        }
        net.finish_with(name, "yolo", self.classes)
    }

    fn body(&self, net: &mut Net) -> Result<()> {
        net.basic("conv", Filter::same(32, 3, 1))?;
        net.close("stem", Role::Input);
        let mut ends: Vec<Planes> = Vec::new();
        for (stage, (channels, blocks)) in STAGES.into_iter().enumerate() {
            net.basic("down", Filter::same(channels, 3, 2))?;
            net.close(&format!("down{}", stage + 1), Role::Body);
            for block in 0..blocks {
                net.basic("conv1", Filter::same(channels / 2, 1, 1))?;
                net.basic("conv2", Filter::same(channels, 3, 1))?;
                net.elementwise("residual", Elementwise::Residual);
                net.close(&format!("stage{}.{block}", stage + 1), Role::Body);
            }
            ends.push(net.planes);
        }
        for (grid, channels) in [512, 256, 128].into_iter().enumerate() {
            if grid > 0 {
                let beside = ends[ends.len() - 1 - grid];
                net.basic("lateral", Filter::same(channels, 1, 1))?;
                enlarge(net, beside);
            }
            for number in 0..5 {
                let (outputs, side) =
                    if number % 2 == 0 { (channels, 1) } else { (2 * channels, 3) };
                net.basic(&format!("conv{number}"), Filter::same(outputs, side, 1))?;
            }
            let (deep, wide) = (net.planes, 2 * channels);
            self.read(net, grid, wide)?;
            net.planes = deep;
        }
        Ok(())
    }

    fn tiny_body(&self, net: &mut Net) -> Result<()> {
        let mut beside = net.planes;
        for (number, channels) in [16, 32, 64, 128, 256, 512].into_iter().enumerate() {
            net.basic("conv", Filter::same(channels, 3, 1))?;
            if channels == 256 {
                beside = net.planes;
            }
            // The last maximum is taken at every place.
            if channels < 512 {
                net.pool("pool", 2, 2, 0)?;
            } else {
                net.pool_to("pool", net.planes.size);
            }
            net.close(&format!("conv{number}"), Role::Body);
        }
        net.basic("conv1", Filter::same(1024, 3, 1))?;
        net.basic("conv2", Filter::same(256, 1, 1))?;
        let deep = net.planes;
        self.read(net, 0, 512)?;
        net.planes = deep;
        net.basic("lateral", Filter::same(128, 1, 1))?;
        enlarge(net, beside);
        self.read(net, 1, 256)
    }

    /// Reads the boxes of a grid.
    fn read(&self, net: &mut Net, grid: usize, wide: u64) -> Result<()> {
        net.basic("wide", Filter::same(wide, 3, 1))?;
        let boxes = Filter::same(BOXES * (SIDES + self.classes), 1, 1);
        net.convolve("boxes", Filter { bias: true, ..boxes })?;
        net.close(&format!("grid{grid}"), Role::Body);
        Ok(())
    }
}

/// Brings what flows to the size of earlier planes, and joins those.
fn enlarge(net: &mut Net, beside: Planes) {
    net.planes.size = beside.size;
    net.elementwise("enlarge", Elementwise::Scale);
    net.join("concat", beside.channels);
}
