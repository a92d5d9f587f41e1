//! Models in TOML: an architecture by its dimensions, or layers written out.
//!
//! The library's entries have the same form as a user's file; `docs/models.md` describes it.

mod count;
mod layers;
mod operation;
mod stacks;
mod transformer;

use foretrain_core::{InputError, Result};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::architecture::{
    AlexNet, DenseNet, EfficientNet, FasterRcnn, InceptionV3, MobileNet, ResNet, SqueezeNet,
    Ssd300, Vgg, YoloV3,
};
use crate::hugging_face;
use crate::model::Model;
pub(crate) use count::Published;
use layers::{LayerSpec, Layers, SampleSpec};
use stacks::{EncoderDecoderSpec, VisionTransformerSpec};
use transformer::TransformerSpec;

/// One model as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Definition {
    pub(crate) name: Option<String>,
    pub(crate) family: Option<String>,
    /// Other names.
    pub(crate) aliases: Vec<String>,
    /// Where the dimensions are published.
    pub(crate) source: Option<String>,
    /// The dimensions were written down from memory of that source.
    pub(crate) recalled: bool,
    /// What the dimensions must add up to.
    pub(crate) parameters: Option<Published>,
    /// What a sample is, where layers are written out; else a fixed input.
    pub(crate) sample: Option<SampleSpec>,
    pub(crate) layer: Vec<LayerSpec>,
    pub(crate) transformer: Option<TransformerSpec>,
    pub(crate) encoder_decoder: Option<EncoderDecoderSpec>,
    pub(crate) vision_transformer: Option<VisionTransformerSpec>,
    pub(crate) hugging_face: Option<Map<String, Value>>,
    pub(crate) resnet: Option<ResNet>,
    pub(crate) vgg: Option<Vgg>,
    pub(crate) alexnet: Option<AlexNet>,
    pub(crate) inception_v3: Option<InceptionV3>,
    pub(crate) mobilenet: Option<MobileNet>,
    pub(crate) efficientnet: Option<EfficientNet>,
    pub(crate) squeezenet: Option<SqueezeNet>,
    pub(crate) densenet: Option<DenseNet>,
    pub(crate) yolo_v3: Option<YoloV3>,
    pub(crate) ssd300: Option<Ssd300>,
    pub(crate) faster_rcnn: Option<FasterRcnn>,
}

/// A table that tells a whole model.
trait Describes {
    fn model(&self, name: &str) -> Result<Model>;
}

impl Describes for Map<String, Value> {
    fn model(&self, name: &str) -> Result<Model> {
        Ok(Model { name: name.to_owned(), ..hugging_face::model(self)? })
    }
}

macro_rules! describes {
    ($($architecture:ty),*) => {
        $(impl Describes for $architecture {
            fn model(&self, name: &str) -> Result<Model> {
                <$architecture>::model(self, name)
            }
        })*
    };
}

describes!(
    ResNet,
    Vgg,
    AlexNet,
    InceptionV3,
    MobileNet,
    EfficientNet,
    SqueezeNet,
    DenseNet,
    YoloV3,
    Ssd300,
    FasterRcnn
);

/// The model of a file's text. `name` is that of the file, for models that do not say theirs.
///
/// # Errors
/// If it is no TOML, holds unknown keys, or its sizes are no model's; the error names the place.
pub fn parse(text: &str, name: &str) -> Result<Model> {
    foretrain_hardware::parse_toml::<Definition>(text)?.model(name)
}

impl Definition {
    /// Builds it.
    pub(crate) fn model(&self, name: &str) -> Result<Model> {
        let name = self.name.as_deref().unwrap_or(name);
        let mut model = self.build(name)?;
        if let Some(family) = &self.family {
            family.clone_into(&mut model.family);
        }
        if let Some(source) = &self.source {
            source.clone_into(&mut model.source);
        }
        if let Some(published) = &self.parameters {
            published.check(model.parameters())?;
        }
        Ok(model)
    }

    /// The same model for another number of classes, which no published count goes with.
    ///
    /// # Errors
    /// If nothing in its table says how many classes there are.
    pub(crate) fn for_classes(&self, classes: u64) -> Result<Self> {
        let mut changed = Self { parameters: None, ..self.clone() };
        let slots = [
            changed.resnet.as_mut().map(|table| &mut table.classes),
            changed.vgg.as_mut().map(|table| &mut table.classes),
            changed.alexnet.as_mut().map(|table| &mut table.classes),
            changed.inception_v3.as_mut().map(|table| &mut table.classes),
            changed.mobilenet.as_mut().map(|table| &mut table.classes),
            changed.efficientnet.as_mut().map(|table| &mut table.classes),
            changed.squeezenet.as_mut().map(|table| &mut table.classes),
            changed.densenet.as_mut().map(|table| &mut table.classes),
            changed.yolo_v3.as_mut().map(|table| &mut table.classes),
            changed.ssd300.as_mut().map(|table| &mut table.classes),
            changed.faster_rcnn.as_mut().map(|table| &mut table.classes),
        ];
        let Some(slot) = slots.into_iter().flatten().next() else {
            return Err(InputError::new("its number of classes cannot be set")
                .hint("only convolutional models are described by one"));
        };
        *slot = classes;
        Ok(changed)
    }

    /// The model of the one table that describes it.
    fn build(&self, name: &str) -> Result<Model> {
        fn of<T: Describes>(table: &Option<T>) -> Option<&dyn Describes> {
            table.as_ref().map(|table| table as &dyn Describes)
        }
        let layers = Layers { layers: &self.layer, sample: self.sample };
        let written = (!self.layer.is_empty()).then_some(&layers as &dyn Describes);
        let tables = [
            ("[layer]", written),
            ("transformer", of(&self.transformer)),
            ("encoder_decoder", of(&self.encoder_decoder)),
            ("vision_transformer", of(&self.vision_transformer)),
            ("hugging_face", of(&self.hugging_face)),
            ("resnet", of(&self.resnet)),
            ("vgg", of(&self.vgg)),
            ("alexnet", of(&self.alexnet)),
            ("inception_v3", of(&self.inception_v3)),
            ("mobilenet", of(&self.mobilenet)),
            ("efficientnet", of(&self.efficientnet)),
            ("squeezenet", of(&self.squeezenet)),
            ("densenet", of(&self.densenet)),
            ("yolo_v3", of(&self.yolo_v3)),
            ("ssd300", of(&self.ssd300)),
            ("faster_rcnn", of(&self.faster_rcnn)),
        ];
        let names = tables.map(|(name, _)| format!("[{name}]")).join(", ");
        let given: Vec<_> =
            tables.into_iter().filter_map(|(name, table)| Some((name, table?))).collect();
        match given.as_slice() {
            [(table, architecture)] => {
                architecture.model(name).map_err(|error| error.at(format!("[{table}]")))
            }
            [] => Err(InputError::new("nothing describes the model's layers")
                .hint(format!("add one of the tables {names}; see docs/models.md"))),
            [(a, _), (b, _), ..] => {
                Err(InputError::new(format!("both [{a}] and [{b}] describe the model"))
                    .hint("a file holds one model; keep one of the tables"))
            }
        }
    }
}

#[cfg(test)]
mod tests;
