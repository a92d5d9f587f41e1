//! What a model is made of.

use foretrain_core::Flops;

/// A model's layers in forward order.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// The model's name.
    pub name: String,
    /// In the order in which the forward pass runs them.
    pub layers: Vec<Layer>,
}

/// A layer: tensors whose gradients become ready together.
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    /// Its name, unique in the model.
    pub name: String,
    /// Work of its forward pass on one sample.
    pub forward: Flops,
    /// Its parameters, in the order of their definition.
    pub tensors: Vec<Tensor>,
}

/// A parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// Its name in the layer.
    pub name: &'static str,
    /// How many numbers it holds.
    pub elements: u64,
}

impl Profile {
    /// Numbers in all parameters.
    pub fn parameters(&self) -> u64 {
        self.layers.iter().map(Layer::parameters).sum()
    }
    /// Work of a forward pass on one sample.
    pub fn forward(&self) -> Flops {
        self.layers.iter().fold(Flops::ZERO, |sum, layer| sum + layer.forward)
    }
}

impl Layer {
    /// Numbers in its parameters.
    pub fn parameters(&self) -> u64 {
        self.tensors.iter().map(|tensor| tensor.elements).sum()
    }
}
