//! `[[layer]]`: layers written out, for what no architecture describes.

use std::sync::Arc;

use foretrain_core::{InputError, Result};
use serde::Deserialize;

use super::Describes;
use super::operation::OpSpec;
use crate::limits::{self, within};
use crate::model::{Block, Layer, Model, Op, OpKind, Role, Sample, Tokens};

/// What a sample is.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum SampleSpec {
    /// A sequence of so many tokens.
    Tokens(u64),
    /// A source and a target sequence.
    Pair {
        /// Tokens of the source.
        source: u64,
        /// Tokens of the target.
        target: u64,
    },
}

/// What a layer is to the pipeline.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RoleSpec {
    Input,
    #[default]
    Body,
    Output,
}

/// Positions a layer works on.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TokensSpec {
    Sequence,
    Target,
    Fixed(u64),
}

/// One entry of `[[layer]]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LayerSpec {
    name: String,
    #[serde(default)]
    role: RoleSpec,
    repeat: Option<u64>,
    tokens: Option<TokensSpec>,
    /// Numbers that leave it per position; else those of its last operation.
    width: Option<u64>,
    ops: Vec<OpSpec>,
}

/// The list of layers with what a sample is.
pub(crate) struct Layers<'a> {
    pub(super) layers: &'a [LayerSpec],
    pub(super) sample: Option<SampleSpec>,
}

impl Describes for Layers<'_> {
    fn model(&self, name: &str) -> Result<Model> {
        let length = |value| within("sample", value, 1, limits::POSITIONS);
        let sample = match self.sample {
            None => Sample::Fixed,
            Some(SampleSpec::Tokens(tokens)) => {
                Sample::Tokens { default: length(tokens)?, longest: None }
            }
            Some(SampleSpec::Pair { source, target }) => {
                Sample::Pair { source: length(source)?, target: length(target)? }
            }
        };
        within("the number of layers", self.layers.len() as u64, 1, limits::LAYERS)?;
        let mut blocks: Vec<Block> = Vec::new();
        for layer in self.layers {
            if blocks.iter().any(|block| block.layer.name == layer.name) {
                let message = format!("two layers are called {:?}", layer.name);
                return Err(InputError::new(message).at("layer"));
            }
            let block = layer.block(sample);
            blocks.push(block.map_err(|error| error.at(format!("layer {:?}", layer.name)))?);
        }
        Model::new(name, "layers", sample, blocks)
    }
}

impl LayerSpec {
    fn block(&self, sample: Sample) -> Result<Block> {
        let repeat = within("repeat", self.repeat.unwrap_or(1), 1, limits::LAYERS)?;
        let tokens = self.tokens(sample)?;
        let ops: Vec<Op> = self.ops.iter().map(OpSpec::op).collect::<Result<_>>()?;
        let last = ops.iter().rev().find_map(|op| width_of(&op.kind));
        let output_width = self.width.or(last).unwrap_or(1);
        within("width", output_width, 1, limits::ROWS)?;
        let role = match self.role {
            RoleSpec::Input => Role::Input,
            RoleSpec::Body => Role::Body,
            RoleSpec::Output => Role::Output,
        };
        let layer = Layer { name: self.name.clone(), role, tokens, output_width, ops };
        Ok(Block { layer: Arc::new(layer), repeat: repeat as u32 })
    }

    fn tokens(&self, sample: Sample) -> Result<Tokens> {
        match (self.tokens, sample) {
            (Some(TokensSpec::Fixed(count)), _) => {
                Ok(Tokens::Fixed(within("tokens", count, 1, limits::POSITIONS)?))
            }
            (None, Sample::Fixed) => Ok(Tokens::Fixed(1)),
            (Some(TokensSpec::Target), Sample::Pair { .. }) => Ok(Tokens::Target),
            (None | Some(TokensSpec::Sequence), Sample::Tokens { .. } | Sample::Pair { .. }) => {
                Ok(Tokens::Sequence)
            }
            _ => Err(InputError::new("tokens refers to a sequence that the sample does not have")
                .hint("write `sample = { tokens = 512 }` or `{ pair = { source = 50, target = 50 } }` at the top")),
        }
    }
}

/// Numbers per position that an operation hands on.
fn width_of(kind: &OpKind) -> Option<u64> {
    Some(match kind {
        OpKind::Linear { outputs, .. } => *outputs,
        OpKind::Attention(shape) => shape.heads * shape.value_dim,
        OpKind::Norm { width, .. }
        | OpKind::Elementwise { width, .. }
        | OpKind::Embedding { width, .. } => *width,
        OpKind::Experts(experts) => experts.width,
        OpKind::Convolution(shape) => shape.outputs * shape.size.0 * shape.size.1,
        OpKind::BatchNorm { channels, places } => channels * places,
        OpKind::Pool { outputs, .. } => *outputs,
        OpKind::Recurrent { hidden, steps, directions, .. } => hidden * steps * directions,
        OpKind::Interaction { vectors, .. } => vectors * (vectors - 1) / 2,
        OpKind::CrossEntropy { .. } | OpKind::Router { .. } => return None,
    })
}
