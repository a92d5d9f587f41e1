//! A model by architecture: layers of operations that know how they may be split.

mod names;
mod op;
mod view;
mod work;

pub use op::{
    Conv2d, Elementwise, Experts, Norm, Op, OpKind, Parameter, SelfAttention, Split, Tokens,
};

use std::sync::Arc;

use foretrain_core::{InputError, Result};
use serde::Serialize;

use crate::limits::{self, within};

/// What one sample is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sample {
    /// A sequence of tokens.
    Tokens {
        /// The usual length in training.
        default: u64,
        /// The longest the model takes (learned positions); `None` if nothing bounds it.
        longest: Option<u64>,
    },
    /// A source sequence and a target sequence.
    Pair {
        /// The usual length of the source.
        source: u64,
        /// The usual length of the target.
        target: u64,
    },
    /// A fixed input, such as an image or a row of features.
    Fixed,
}

/// A model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Model {
    /// Its name, `llama-3-8b`.
    pub name: String,
    /// Its architecture, `llama`, `gpt`, `resnet`.
    pub family: String,
    /// What a sample is.
    pub sample: Sample,
    /// In forward order.
    pub blocks: Vec<Block>,
    /// Where the architecture's figures come from.
    pub source: String,
    /// What was assumed because the description did not say.
    pub assumptions: Vec<String>,
}

/// Equal layers, one after the other.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Block {
    /// The layer.
    pub layer: Arc<Layer>,
    /// How many follow each other.
    pub repeat: u32,
}

/// Work of a forward pass on one sample beyond which a description is surely wrong.
const LARGEST_WORK: f64 = 1e24;

/// What a layer is to the pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Before the first repeated layer: the embedding, a stem.
    Input,
    /// One of the layers that are dealt to stages.
    Body,
    /// After the last: the final norm, the head and the loss.
    Output,
}

/// A layer: what stages of a pipeline are cut between, and what full recomputation forms again.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Layer {
    /// Its name, unique in the model: `decoder`, `moe-decoder`, `layer3.0`.
    pub name: String,
    /// What it is to the pipeline.
    pub role: Role,
    /// Positions each operation is applied to.
    pub tokens: Tokens,
    /// Numbers that leave the layer, per position.
    pub output_width: u64,
    /// In forward order.
    pub ops: Vec<Op>,
}

impl Model {
    /// A model of these blocks. Blocks that repeat zero times are left out.
    ///
    /// # Errors
    /// If it has no layers, or sizes are beyond any model's.
    pub fn new(
        name: impl Into<String>,
        family: impl Into<String>,
        sample: Sample,
        mut blocks: Vec<Block>,
    ) -> Result<Self> {
        blocks.retain(|block| block.repeat > 0 && !block.layer.ops.is_empty());
        let layers = blocks.iter().map(|block| u64::from(block.repeat)).sum();
        within("the number of layers", layers, 1, limits::LAYERS)?;
        let (mut parameters, mut work) = (0, 0.0);
        for block in &blocks {
            let of = |op: &Op| op.parameters.iter().map(|p| u128::from(p.elements)).sum::<u128>();
            let layer: u128 = block.layer.ops.iter().map(of).sum();
            parameters += u128::from(block.repeat) * layer;
            work += f64::from(block.repeat) * block.layer.forward(&sample, None).get();
        }
        if parameters > u128::from(limits::PARAMETERS) || work > LARGEST_WORK {
            let message =
                format!("a model of {parameters} parameters and {work:.1e} FLOPs per sample");
            return Err(InputError::new(message).hint(format!(
                "at most {} parameters and {LARGEST_WORK:.0e} FLOPs are taken; check the dimensions",
                limits::PARAMETERS
            )));
        }
        let (name, family) = (name.into(), family.into());
        Ok(Self { name, family, sample, blocks, source: String::new(), assumptions: Vec::new() })
    }

    /// Trainable numbers, tied tensors counted once.
    pub fn parameters(&self) -> u64 {
        self.blocks.iter().map(|block| u64::from(block.repeat) * block.layer.parameters()).sum()
    }

    /// Trainable numbers that one position meets: of the experts only those it is routed to.
    pub fn active_parameters(&self) -> u64 {
        let active = |block: &Block| u64::from(block.repeat) * block.layer.active_parameters();
        self.blocks.iter().map(active).sum()
    }

    /// Layers that are dealt to the stages of a pipeline.
    pub fn body_layers(&self) -> u32 {
        let body = self.blocks.iter().filter(|block| block.layer.role == Role::Body);
        body.map(|block| block.repeat).sum()
    }

    /// All layers in forward order, repeats written out.
    pub fn layers(&self) -> impl Iterator<Item = &Arc<Layer>> {
        self.blocks.iter().flat_map(|block| (0..block.repeat).map(|_| &block.layer))
    }
}

impl Layer {
    /// Trainable numbers.
    pub fn parameters(&self) -> u64 {
        self.ops.iter().map(Op::parameters).sum()
    }

    /// Trainable numbers that one position meets.
    pub fn active_parameters(&self) -> u64 {
        self.ops.iter().map(Op::active_parameters).sum()
    }
}
