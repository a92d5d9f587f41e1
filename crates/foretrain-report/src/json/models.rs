//! The JSON of `models`.

use foretrain_workload::Model;
use foretrain_workload::model::{Block, Op, Role, Sample};
use schemars::JsonSchema;
use serde::Serialize;

/// Models that are known by name, or one model with its layers.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ModelsReport {
    /// `foretrain/models/1`.
    pub schema: String,
    /// Models; one if one was asked for.
    pub models: Vec<ModelReport>,
    /// The layers of the one that was asked for, in forward order; else empty.
    pub layers: Vec<ModelLayerReport>,
}

/// A model.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ModelReport {
    /// Its name.
    pub name: String,
    /// Its architecture.
    pub family: String,
    /// Trainable numbers, shared ones counted once.
    pub parameters: u64,
    /// Those that one token meets: of the experts only the chosen ones.
    pub active_parameters: u64,
    /// Layers that pipeline stages are made of.
    pub body_layers: u32,
    /// Tokens of a sample that the work is given for; `null` for a fixed input. Of a pair the source's.
    pub sequence: Option<u64>,
    /// Floating-point operations of a forward pass on one sample.
    pub forward_flops_per_sample: f64,
    /// The same per token of the sample; `null` for a fixed input.
    pub forward_flops_per_token: Option<f64>,
    /// Where its dimensions come from.
    pub source: String,
    /// What was assumed because the description did not say.
    pub assumptions: Vec<String>,
}

/// Equal layers, one after the other.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ModelLayerReport {
    /// The layer's name.
    pub name: String,
    /// `input`, `body` or `output`.
    pub role: String,
    /// How many follow each other.
    pub repeat: u32,
    /// Trainable numbers of one of them.
    pub parameters: u64,
    /// Floating-point operations of a forward pass of one of them on one sample.
    pub forward_flops_per_sample: f64,
    /// Its operations in forward order.
    pub operations: Vec<ModelOperationReport>,
}

/// An operation of a layer.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ModelOperationReport {
    /// Its name in the layer.
    pub name: String,
    /// What it computes: `linear`, `attention`, `convolution` and so on.
    pub kind: String,
    /// How tensor parallelism divides it: `columns`, `rows`, `inner`, `outer`, `vocabulary`,
    /// `experts` or `whole`.
    pub split: String,
    /// Trainable numbers.
    pub parameters: u64,
    /// Its weight is another operation's.
    pub tied: bool,
    /// Floating-point operations of a forward pass on one sample.
    pub forward_flops_per_sample: f64,
}

impl ModelsReport {
    /// Of all of these, without their layers.
    pub fn list(models: &[Model]) -> Self {
        let models = models.iter().map(|model| ModelReport::new(model, None)).collect();
        Self { schema: "foretrain/models/1".into(), models, layers: Vec::new() }
    }

    /// Of one model with its layers, for samples of its usual or the given length.
    pub fn one(model: &Model, sequence: Option<u64>) -> Self {
        let layers = model.blocks.iter().map(|block| layer(model, block, sequence)).collect();
        let models = vec![ModelReport::new(model, sequence)];
        Self { schema: "foretrain/models/1".into(), models, layers }
    }
}

impl ModelReport {
    fn new(model: &Model, sequence: Option<u64>) -> Self {
        let tokens = match model.sample {
            Sample::Tokens { default, .. } => Some(sequence.unwrap_or(default)),
            Sample::Pair { source, .. } => Some(sequence.unwrap_or(source)),
            Sample::Fixed => None,
        };
        let forward = model.forward(sequence).get();
        Self {
            name: model.name.clone(),
            family: model.family.clone(),
            parameters: model.parameters(),
            active_parameters: model.active_parameters(),
            body_layers: model.body_layers(),
            sequence: tokens,
            forward_flops_per_sample: forward,
            forward_flops_per_token: tokens.map(|tokens| forward / tokens as f64),
            source: model.source.clone(),
            assumptions: model.assumptions.clone(),
        }
    }
}

fn layer(model: &Model, block: &Block, sequence: Option<u64>) -> ModelLayerReport {
    let layer = &block.layer;
    let positions = model.sample.positions(layer.tokens, sequence);
    let source = model.sample.positions(foretrain_workload::model::Tokens::Sequence, sequence);
    let operation = |op: &Op| ModelOperationReport {
        name: op.name.clone(),
        kind: op.kind.as_str().into(),
        split: op.split.as_str().into(),
        parameters: op.parameters(),
        tied: op.tied,
        forward_flops_per_sample: op.forward(positions, source).get(),
    };
    ModelLayerReport {
        name: layer.name.clone(),
        role: match layer.role {
            Role::Input => "input",
            Role::Body => "body",
            Role::Output => "output",
        }
        .into(),
        repeat: block.repeat,
        parameters: layer.parameters(),
        forward_flops_per_sample: layer.forward(&model.sample, sequence).get(),
        operations: layer.ops.iter().map(operation).collect(),
    }
}
