//! Convolutional networks over images, as torchvision builds them.

mod alexnet;
mod densenet;
mod faster_rcnn;
mod inception;
mod inverted;
mod net;
mod resnet;
mod squeezenet;
mod ssd;
mod vgg;
mod yolo;

pub use alexnet::AlexNet;
pub use densenet::DenseNet;
pub use faster_rcnn::{Backbone, FasterRcnn};
pub use inception::InceptionV3;
pub use inverted::{EfficientNet, MobileNet, MobileNetVersion};
pub use resnet::ResNet;
pub use squeezenet::{SqueezeNet, SqueezeNetVersion};
pub use ssd::Ssd300;
pub use vgg::Vgg;
pub use yolo::YoloV3;
