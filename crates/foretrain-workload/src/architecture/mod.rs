//! Architectures: from dimensions to the operations of a [`Model`].
//!
//! Each is a plain description with public fields. Where the dimensions come from (a Hugging Face
//! config, the library, a user's file) is not its business.

pub mod convolutional;
pub mod transformer;

use foretrain_core::Result;

use crate::model::Model;
pub use convolutional::{
    AlexNet, DenseNet, EfficientNet, FasterRcnn, InceptionV3, MobileNet, ResNet, SqueezeNet,
    Ssd300, Vgg, YoloV3,
};
pub use transformer::{EncoderDecoder, Transformer, VisionTransformer};

/// Any architecture.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Architecture {
    /// One stack of transformer layers over tokens.
    Transformer(Box<Transformer>),
    /// Two, of which the second reads the first's result.
    EncoderDecoder(Box<EncoderDecoder>),
    /// One over the patches of an image.
    VisionTransformer(Box<VisionTransformer>),
}

impl Architecture {
    /// Its layers.
    ///
    /// # Errors
    /// If a dimension is zero or beyond any model.
    pub fn model(&self, name: impl Into<String>, family: impl Into<String>) -> Result<Model> {
        match self {
            Self::Transformer(model) => model.model(name, family),
            Self::EncoderDecoder(model) => model.model(name, family),
            Self::VisionTransformer(model) => model.model(name, family),
        }
    }
}

impl From<Transformer> for Architecture {
    fn from(model: Transformer) -> Self {
        Self::Transformer(Box::new(model))
    }
}

impl From<EncoderDecoder> for Architecture {
    fn from(model: EncoderDecoder) -> Self {
        Self::EncoderDecoder(Box::new(model))
    }
}

impl From<VisionTransformer> for Architecture {
    fn from(model: VisionTransformer) -> Self {
        Self::VisionTransformer(Box::new(model))
    }
}
