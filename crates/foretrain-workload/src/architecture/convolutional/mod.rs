//! Convolutional networks over images, as torchvision builds them.

mod alexnet;
mod inception;
mod inverted;
mod net;
mod resnet;
mod vgg;

pub use alexnet::AlexNet;
pub use inception::InceptionV3;
pub use inverted::{EfficientNet, MobileNet, MobileNetVersion};
pub use resnet::ResNet;
pub use vgg::Vgg;
