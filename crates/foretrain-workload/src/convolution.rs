//! Layers of convolutional networks.

use crate::profile::Layer;

/// A square convolution.
#[derive(Clone, Copy)]
pub(crate) struct Convolution {
    pub(crate) inputs: u64,
    pub(crate) outputs: u64,
    pub(crate) kernel: u64,
    pub(crate) groups: u64,
    /// Rows (and columns) of its output.
    pub(crate) side: u64,
}

impl Convolution {
    fn weights(self) -> u64 {
        self.inputs / self.groups * self.outputs * self.kernel * self.kernel
    }
    /// A multiply-add counts as two.
    fn work(self) -> f64 {
        2.0 * self.weights() as f64 * (self.side * self.side) as f64
    }
    /// Without a bias.
    pub(crate) fn plain(self, name: String) -> Layer {
        Layer::new(name, self.work(), [("weight", self.weights())])
    }
    pub(crate) fn with_bias(self, name: String) -> Layer {
        Layer::new(name, self.work(), [("weight", self.weights()), ("bias", self.outputs)])
    }
}

/// Batch normalisation after a convolution; two passes over its input.
pub(crate) fn batch_norm(name: String, channels: u64, side: u64) -> Layer {
    let work = 4.0 * (channels * side * side) as f64;
    Layer::new(name, work, [("weight", channels), ("bias", channels)])
}

/// A fully connected layer.
pub(crate) fn linear(name: impl Into<String>, inputs: u64, outputs: u64) -> Layer {
    let weights = inputs * outputs;
    Layer::new(name, 2.0 * weights as f64, [("weight", weights), ("bias", outputs)])
}
