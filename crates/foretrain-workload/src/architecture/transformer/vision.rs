//! A transformer over the patches of an image (arXiv 2010.11929).

use foretrain_core::Result;

use super::ends::end;
use super::shape::Stack;
use crate::limits::{self, divided, within};
use crate::model::{Conv2d, Elementwise, Model, Op, OpKind, Role, Sample, Split, Tokens};

/// An encoder over patches and a class token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VisionTransformer {
    /// The repeated layers.
    pub stack: Stack,
    /// Rows and columns of an image.
    pub image: u64,
    /// Rows and columns of a patch.
    pub patch: u64,
    /// Channels of an image.
    pub channels: u64,
    /// Classes; 0 for no head.
    pub classes: u64,
}

impl VisionTransformer {
    /// Its layers.
    ///
    /// # Errors
    /// If a dimension is zero or beyond any model, or the patches do not tile the image.
    pub fn model(&self, name: impl Into<String>, family: impl Into<String>) -> Result<Model> {
        self.stack.check()?;
        within("image", self.image, 1, limits::PARTS)?;
        within("patch", self.patch, 1, self.image)?;
        within("channels", self.channels, 1, limits::PARTS)?;
        within("classes", self.classes, 0, limits::WIDTH)?;
        let side = divided("image", self.image, "patch", self.patch)?;
        let (hidden, patches) = (self.stack.hidden, side * side);
        let tokens = Tokens::Fixed(patches + 1);
        let positions = OpKind::Elementwise { what: Elementwise::Residual, width: hidden };
        let positions = Op::new("positions", positions, Split::Outer)
            .with("class", hidden, false)
            .with("positions", (patches + 1) * hidden, false);
        let mut blocks = vec![
            end("patches", Role::Input, Tokens::Fixed(1), patches * hidden, vec![self.patches()]),
            end("embedding", Role::Input, tokens, hidden, vec![positions]),
        ];
        blocks.extend(self.stack.blocks("layer", tokens, false));
        let norm = self.stack.norms.op("norm", hidden);
        blocks.push(end("output", Role::Output, tokens, hidden, vec![norm]));
        if self.classes > 0 {
            let kind = OpKind::Linear { inputs: hidden, outputs: self.classes };
            let head = Op::new("head", kind, Split::Whole)
                .with("weight", hidden * self.classes, false)
                .with("bias", self.classes, false);
            let loss = OpKind::CrossEntropy { vocabulary: self.classes };
            let ops = vec![head, Op::new("loss", loss, Split::Whole)];
            blocks.push(end("classifier", Role::Output, Tokens::Fixed(1), self.classes, ops));
        }
        Model::new(name, family, Sample::Fixed, blocks)
    }

    fn patches(&self) -> Op {
        let side = self.image / self.patch;
        let shape = Conv2d {
            inputs: self.channels,
            outputs: self.stack.hidden,
            kernel: (self.patch, self.patch),
            stride: self.patch,
            padding: Some((0, 0)),
            dilation: 1,
            size: (side, side),
            groups: 1,
        };
        let weights = self.channels * self.stack.hidden * self.patch * self.patch;
        Op::new("convolution", OpKind::Convolution(shape), Split::Whole)
            .with("weight", weights, false)
            .with("bias", self.stack.hidden, false)
    }
}
