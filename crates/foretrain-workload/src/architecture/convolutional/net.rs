//! A network under construction: what flows, and the operations so far.

use std::sync::Arc;

use foretrain_core::{InputError, Result};

use crate::limits::{self, within};
use crate::model::{
    Block, Conv2d, Elementwise, Layer, Model, Norm, Op, OpKind, Role, Sample, Split, Tokens,
};

/// What flows between operations: channels of rows and columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Planes {
    pub(super) channels: u64,
    pub(super) size: (u64, u64),
}

impl Planes {
    fn places(self) -> u64 {
        self.size.0 * self.size.1
    }
    fn numbers(self) -> u64 {
        self.channels * self.places()
    }
}

/// A convolution to be added.
#[derive(Clone, Copy)]
pub(super) struct Filter {
    pub(super) outputs: u64,
    pub(super) kernel: (u64, u64),
    pub(super) stride: u64,
    pub(super) padding: (u64, u64),
    pub(super) dilation: u64,
    pub(super) groups: u64,
    pub(super) bias: bool,
}

impl Filter {
    /// Square, without a bias, padded so that only the stride changes the size.
    pub(super) fn same(outputs: u64, kernel: u64, stride: u64) -> Self {
        let padding = (kernel / 2, kernel / 2);
        let kernel = (kernel, kernel);
        Self { outputs, kernel, stride, padding, dilation: 1, groups: 1, bias: false }
    }
    /// Of any form and without padding.
    pub(super) fn valid(outputs: u64, kernel: (u64, u64), stride: u64) -> Self {
        Self { kernel, padding: (0, 0), ..Self::same(outputs, 1, stride) }
    }
}

/// The network so far. Operations gather until [`Net::close`] makes them a layer.
pub(super) struct Net {
    pub(super) planes: Planes,
    ops: Vec<Op>,
    blocks: Vec<Block>,
}

impl Net {
    /// Square images of three channels.
    pub(super) fn new(image: u64, classes: u64) -> Result<Self> {
        within("image", image, 8, limits::PARTS)?;
        within("classes", classes, 1, limits::WIDTH)?;
        let planes = Planes { channels: 3, size: (image, image) };
        Ok(Self { planes, ops: Vec::new(), blocks: Vec::new() })
    }

    /// The result's size, or that nothing is left to look at.
    fn reduced(&self, kernel: (u64, u64), stride: u64, padding: (u64, u64)) -> Result<(u64, u64)> {
        let along = |size: u64, kernel: u64, padding: u64| {
            let room = (size + 2 * padding).checked_sub(kernel)?;
            Some(room.checked_div(stride)? + 1)
        };
        let (rows, columns) = self.planes.size;
        along(rows, kernel.0, padding.0).zip(along(columns, kernel.1, padding.1)).ok_or_else(|| {
            let (rows, columns) = self.planes.size;
            let (high, wide) = kernel;
            InputError::new(format!(
                "images are too small: {rows}x{columns} places are left for a filter of {high}x{wide}"
            ))
            .at("image")
        })
    }

    pub(super) fn convolve(&mut self, name: &str, filter: Filter) -> Result<()> {
        let inputs = self.planes.channels;
        within("channels", filter.outputs, 1, limits::WIDTH)?;
        within("groups", filter.groups, 1, limits::WIDTH)?;
        limits::divided("channels", inputs, "groups", filter.groups)?;
        limits::divided("channels", filter.outputs, "groups", filter.groups)?;
        let Filter { outputs, kernel, stride, padding, dilation, groups, bias } = filter;
        let reach = |side: u64| (side - 1) * dilation + 1;
        let size = self.reduced((reach(kernel.0), reach(kernel.1)), stride, padding)?;
        let padding = Some(padding);
        let shape = Conv2d { inputs, outputs, kernel, stride, padding, dilation, size, groups };
        let weights = inputs / groups * outputs * kernel.0 * kernel.1;
        let op = Op::new(name, OpKind::Convolution(shape), Split::Whole);
        let op = op.with("weight", weights, false);
        self.ops.push(if bias { op.with("bias", outputs, false) } else { op });
        self.planes = Planes { channels: outputs, size };
        Ok(())
    }

    pub(super) fn batch_norm(&mut self, name: &str) {
        let Planes { channels, .. } = self.planes;
        let kind = OpKind::BatchNorm { channels, places: self.planes.places() };
        let op = Op::new(name, kind, Split::Whole);
        self.ops.push(op.with("weight", channels, false).with("bias", channels, false));
    }

    /// A convolution and its norm.
    pub(super) fn normed(&mut self, name: &str, filter: Filter) -> Result<()> {
        self.convolve(name, filter)?;
        self.batch_norm(&format!("{name}.norm"));
        Ok(())
    }

    /// A convolution, its norm and ReLU.
    pub(super) fn basic(&mut self, name: &str, filter: Filter) -> Result<()> {
        self.normed(name, filter)?;
        self.elementwise(&format!("{name}.relu"), Elementwise::Relu);
        Ok(())
    }

    pub(super) fn elementwise(&mut self, name: &str, what: Elementwise) {
        let kind = OpKind::Elementwise { what, width: self.planes.numbers() };
        self.ops.push(Op::new(name, kind, Split::Whole));
    }

    pub(super) fn pool(
        &mut self,
        name: &str,
        kernel: u64,
        stride: u64,
        padding: u64,
    ) -> Result<()> {
        let size = self.reduced((kernel, kernel), stride, (padding, padding))?;
        self.pool_to(name, size);
        Ok(())
    }

    /// Pooling by steps of two that leaves out no row or column: the last window may hang over.
    pub(super) fn halve(&mut self, name: &str, kernel: u64) -> Result<()> {
        self.reduced((kernel, kernel), 2, (0, 0))?;
        let half = |side: u64| (side - kernel).div_ceil(2) + 1;
        let (rows, columns) = self.planes.size;
        self.pool_to(name, (half(rows), half(columns)));
        Ok(())
    }

    /// Pooling to a given size, whatever the window.
    pub(super) fn pool_to(&mut self, name: &str, size: (u64, u64)) {
        let before = self.planes;
        self.planes.size = size;
        let kind = OpKind::Pool { inputs: before.numbers(), outputs: self.planes.numbers() };
        self.ops.push(Op::new(name, kind, Split::Whole));
    }

    /// A product over everything that flows, with a bias.
    pub(super) fn linear(&mut self, name: &str, outputs: u64) -> Result<()> {
        let inputs = within("the classifier's width", self.planes.numbers(), 1, limits::WIDTH)?;
        let op = Op::new(name, OpKind::Linear { inputs, outputs }, Split::Whole);
        let op = op.with("weight", inputs * outputs, false).with("bias", outputs, false);
        self.ops.push(op);
        self.planes = Planes { channels: outputs, size: (1, 1) };
        Ok(())
    }

    /// Planes that flowed here by another way are put beside those that flow.
    pub(super) fn join(&mut self, name: &str, channels: u64) {
        self.planes.channels += channels;
        self.elementwise(name, Elementwise::Scale);
    }

    /// Every place is brought to length one over its channels, each of which is then scaled.
    pub(super) fn scaled_norm(&mut self, name: &str) {
        let kind = OpKind::Norm { norm: Norm::Rms, width: self.planes.numbers() };
        self.ops.push(Op::new(name, kind, Split::Whole).with(
            "weight",
            self.planes.channels,
            false,
        ));
    }

    /// Weights for each channel from the mean of all (squeeze and excitation).
    pub(super) fn excite(&mut self, name: &str, squeezed: u64) -> Result<()> {
        let before = self.planes;
        self.pool_to(&format!("{name}.mean"), (1, 1));
        for (part, outputs, what) in [
            ("squeeze", squeezed, Elementwise::Activation),
            ("excite", before.channels, Elementwise::Activation),
        ] {
            let part = format!("{name}.{part}");
            self.convolve(&part, Filter { bias: true, ..Filter::same(outputs, 1, 1) })?;
            self.elementwise(&format!("{part}.activation"), what);
        }
        self.planes = before;
        self.elementwise(&format!("{name}.scale"), Elementwise::Gated);
        Ok(())
    }

    /// Makes the operations since the last layer a layer.
    pub(super) fn close(&mut self, name: &str, role: Role) {
        self.close_at(name, role, 1);
    }

    /// The same for operations that are applied to so many parts of an image.
    pub(super) fn close_at(&mut self, name: &str, role: Role, parts: u64) {
        let layer = Layer {
            name: name.to_owned(),
            role,
            tokens: Tokens::Fixed(parts),
            output_width: self.planes.numbers(),
            ops: std::mem::take(&mut self.ops),
        };
        self.blocks.push(Block { layer: Arc::new(layer), repeat: 1 });
    }

    /// The loss over the classes, and the model.
    pub(super) fn finish(self, name: &str, family: &str) -> Result<Model> {
        let classes = self.planes.channels;
        self.finish_with(name, family, classes)
    }

    /// The same where not the classes alone flow.
    pub(super) fn finish_with(mut self, name: &str, family: &str, classes: u64) -> Result<Model> {
        let loss = OpKind::CrossEntropy { vocabulary: classes };
        self.ops.push(Op::new("loss", loss, Split::Whole));
        self.close("classifier", Role::Output);
        Model::new(name, family, Sample::Fixed, self.blocks)
    }
}
