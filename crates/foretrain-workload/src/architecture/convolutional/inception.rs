//! Inception v3 (arXiv 1512.00567), with the auxiliary classifier that it is trained with.

use foretrain_core::Result;
use serde::Deserialize;

use super::net::{Filter, Net, Planes};
use super::resnet::thousand;
use crate::model::{Model, Role};

/// Inception v3.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InceptionV3 {
    /// Classes.
    #[serde(default = "thousand")]
    pub classes: u64,
    /// Rows and columns of an image.
    #[serde(default = "usual_image")]
    pub image: u64,
    /// With the auxiliary classifier.
    #[serde(default = "yes")]
    pub auxiliary: bool,
}

const fn usual_image() -> u64 {
    299
}
const fn yes() -> bool {
    true
}

/// A chain of convolutions: channels, rows and columns of the filter, stride.
type Chain<'a> = &'a [(u64, (u64, u64), u64)];

/// What is at the end of a module beside the chains.
enum Pooled {
    /// Means, then a convolution to so many channels.
    Mean(u64),
    /// Every second maximum.
    Half,
}

impl InceptionV3 {
    /// Its layers.
    ///
    /// # Errors
    /// If there are no classes, or images are too small.
    pub fn model(&self, name: &str) -> Result<Model> {
        let mut net = Net::new(self.image, self.classes)?;
        stem(&mut net)?;
        for (module, pooled) in [32, 64, 64].into_iter().enumerate() {
            let chains: [Chain<'_>; 3] = [
                &[(64, (1, 1), 1)],
                &[(48, (1, 1), 1), (64, (5, 5), 1)],
                &[(64, (1, 1), 1), (96, (3, 3), 1), (96, (3, 3), 1)],
            ];
            mixed(&mut net, &format!("mixed5.{module}"), &chains, &Pooled::Mean(pooled))?;
        }
        let chains: [Chain<'_>; 2] =
            [&[(384, (3, 3), 2)], &[(64, (1, 1), 1), (96, (3, 3), 1), (96, (3, 3), 2)]];
        mixed(&mut net, "mixed6.0", &chains, &Pooled::Half)?;
        for (module, narrow) in [128, 160, 160, 192].into_iter().enumerate() {
            let (along, across) = ((1, 7), (7, 1));
            let chains: [Chain<'_>; 3] = [
                &[(192, (1, 1), 1)],
                &[(narrow, (1, 1), 1), (narrow, along, 1), (192, across, 1)],
                &[
                    (narrow, (1, 1), 1),
                    (narrow, across, 1),
                    (narrow, along, 1),
                    (narrow, across, 1),
                    (192, along, 1),
                ],
            ];
            mixed(&mut net, &format!("mixed6.{}", module + 1), &chains, &Pooled::Mean(192))?;
        }
        if self.auxiliary {
            let before = net.planes;
            net.pool("pool", 5, 3, 0)?;
            net.basic("conv1", Filter::same(128, 1, 1))?;
            net.basic("conv2", Filter::valid(768, (5, 5), 1))?;
            net.pool_to("mean", (1, 1));
            net.linear("fc", self.classes)?;
            net.planes = before;
            net.close("auxiliary", Role::Body);
        }
        let chains: [Chain<'_>; 2] = [
            &[(192, (1, 1), 1), (320, (3, 3), 2)],
            &[(192, (1, 1), 1), (192, (1, 7), 1), (192, (7, 1), 1), (192, (3, 3), 2)],
        ];
        mixed(&mut net, "mixed7.0", &chains, &Pooled::Half)?;
        for module in 1..=2 {
            last(&mut net, &format!("mixed7.{module}"))?;
        }
        net.pool_to("pool", (1, 1));
        net.linear("fc", self.classes)?;
        net.finish(name, "inception")
    }
}

fn stem(net: &mut Net) -> Result<()> {
    net.basic("conv1", Filter::valid(32, (3, 3), 2))?;
    net.basic("conv2", Filter::valid(32, (3, 3), 1))?;
    net.basic("conv3", Filter::same(64, 3, 1))?;
    net.pool("pool1", 3, 2, 0)?;
    net.basic("conv4", Filter::valid(80, (1, 1), 1))?;
    net.basic("conv5", Filter::valid(192, (3, 3), 1))?;
    net.pool("pool2", 3, 2, 0)?;
    net.close("stem", Role::Input);
    Ok(())
}

/// Adds a chain; returns where it ends. A stride comes without padding.
fn chain(net: &mut Net, name: &str, from: Planes, chain: Chain<'_>) -> Result<Planes> {
    net.planes = from;
    for (number, &(outputs, kernel, stride)) in chain.iter().enumerate() {
        let padding = if stride > 1 { (0, 0) } else { (kernel.0 / 2, kernel.1 / 2) };
        let filter = Filter { padding, ..Filter::valid(outputs, kernel, stride) };
        net.basic(&format!("{name}.{number}"), filter)?;
    }
    Ok(net.planes)
}

/// Chains side by side, their channels put together.
fn mixed(net: &mut Net, name: &str, chains: &[Chain<'_>], pooled: &Pooled) -> Result<()> {
    let from = net.planes;
    let mut channels = 0;
    for (number, &links) in chains.iter().enumerate() {
        channels += chain(net, &format!("branch{number}"), from, links)?.channels;
    }
    net.planes = from;
    match pooled {
        Pooled::Mean(outputs) => {
            net.pool("mean", 3, 1, 1)?;
            net.basic("pooled", Filter::same(*outputs, 1, 1))?;
        }
        Pooled::Half => net.pool("max", 3, 2, 0)?,
    }
    net.planes.channels += channels;
    net.close(name, Role::Body);
    Ok(())
}

/// The last modules' chains end in two convolutions each.
fn last(net: &mut Net, name: &str) -> Result<()> {
    let from = net.planes;
    let mut channels = chain(net, "branch0", from, &[(320, (1, 1), 1)])?.channels;
    let stems: [Chain<'_>; 2] = [&[(384, (1, 1), 1)], &[(448, (1, 1), 1), (384, (3, 3), 1)]];
    for (number, links) in stems.into_iter().enumerate() {
        let middle = chain(net, &format!("branch{}", number + 1), from, links)?;
        for (part, kernel) in [("a", (1, 3)), ("b", (3, 1))] {
            let name = format!("branch{}.{part}", number + 1);
            channels += chain(net, &name, middle, &[(384, kernel, 1)])?.channels;
        }
    }
    net.planes = from;
    net.pool("mean", 3, 1, 1)?;
    net.basic("pooled", Filter::same(192, 1, 1))?;
    net.planes.channels += channels;
    net.close(name, Role::Body);
    Ok(())
}
