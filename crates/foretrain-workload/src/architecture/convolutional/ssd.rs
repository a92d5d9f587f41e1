//! SSD over VGG-16 (arXiv 1512.02325), in the form for images of 300x300.

use foretrain_core::Result;
use serde::Deserialize;

use super::net::{Filter, Net};
use super::vgg::Vgg;
use crate::model::{Elementwise, Model, Role};

/// A detector that reads boxes off six grids.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ssd300 {
    /// Classes, of which one is that nothing is there.
    #[serde(default = "voc")]
    pub classes: u64,
}

const fn voc() -> u64 {
    21
}

const IMAGE: u64 = 300;
/// Sides of a box.
const SIDES: u64 = 4;
/// Boxes per place of each grid.
const BOXES: [u64; 6] = [4, 6, 6, 6, 4, 4];

impl Ssd300 {
    /// Its layers.
    ///
    /// # Errors
    /// If there are no classes.
    pub fn model(&self, name: &str) -> Result<Model> {
        let mut net = Net::new(IMAGE, self.classes)?;
        for (stage, (channels, count)) in Vgg::stages(&[2, 2, 3, 3, 3]).into_iter().enumerate() {
            Vgg::stage(&mut net, channels, count, false)?;
            if stage == 3 {
                net.scaled_norm("scale");
                net.close("stage4", Role::Body);
                self.read(&mut net, 0)?;
            }
            // The last stage keeps its size.
            if stage < 4 {
                net.halve("pool", 2)?;
            } else {
                net.pool("pool", 3, 1, 1)?;
            }
            if stage != 3 {
                net.close(&format!("stage{}", stage + 1), Role::Body);
            }
        }
        let wide = Filter { padding: (6, 6), dilation: 6, ..Filter::same(1024, 3, 1) };
        biased(&mut net, "fc6", wide)?;
        biased(&mut net, "fc7", Filter::same(1024, 1, 1))?;
        net.close("fc", Role::Body);
        self.read(&mut net, 1)?;
        let small = |filter: Filter| Filter { padding: (0, 0), ..filter };
        let further = [
            (256, Filter::same(512, 3, 2)),
            (128, Filter::same(256, 3, 2)),
            (128, small(Filter::same(256, 3, 1))),
            (128, small(Filter::same(256, 3, 1))),
        ];
        for (number, (narrow, filter)) in further.into_iter().enumerate() {
            biased(&mut net, "conv1", Filter::same(narrow, 1, 1))?;
            biased(&mut net, "conv2", filter)?;
            net.close(&format!("further{}", number + 1), Role::Body);
            self.read(&mut net, number + 2)?;
        }
        net.finish_with(name, "ssd", self.classes)
    }

    /// Reads the boxes of a grid; what flows goes on as it was.
    fn read(&self, net: &mut Net, grid: usize) -> Result<()> {
        let before = net.planes;
        for (what, numbers) in [("classes", self.classes), ("sides", SIDES)] {
            net.planes = before;
            let filter = Filter::same(BOXES[grid] * numbers, 3, 1);
            net.convolve(what, Filter { bias: true, ..filter })?;
        }
        net.close(&format!("grid{grid}"), Role::Body);
        net.planes = before;
        Ok(())
    }
}

fn biased(net: &mut Net, name: &str, filter: Filter) -> Result<()> {
    net.convolve(name, Filter { bias: true, ..filter })?;
    net.elementwise(&format!("{name}.relu"), Elementwise::Relu);
    Ok(())
}
