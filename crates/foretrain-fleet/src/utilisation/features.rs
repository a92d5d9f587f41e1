//! What a job's graph is like, in numbers that trees can split.

use foretrain_core::{InputError, Result};
use foretrain_workload::Model;
use foretrain_workload::model::{Elementwise, Op, OpKind, Tokens};
use serde::Deserialize;

/// Numbers of a feature vector.
pub const COUNT: usize = 20;

/// Names of the numbers, in their order.
pub const NAMES: [&str; COUNT] = [
    "batch",
    "flops",
    "parameters",
    "numbers",
    "inputs",
    "outputs",
    "widest",
    "narrowest",
    "linear",
    "convolution",
    "attention",
    "normalisation",
    "activation",
    "dropout",
    "other",
    "layers",
    "operations",
    "input_numbers",
    "flops_per_operation",
    "flops_per_byte",
];

/// A job's graph in numbers; widths are numbers of one sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Features {
    /// Samples of a step.
    pub batch: f64,
    /// Work of a step's forward pass.
    pub flops: f64,
    /// Trainable numbers.
    pub parameters: f64,
    /// Results of all layers with weights, in a step.
    pub numbers: f64,
    /// What goes into the first layer.
    pub inputs: f64,
    /// What comes out of the last.
    pub outputs: f64,
    /// The widest result of a layer.
    pub widest: f64,
    /// The narrowest.
    pub narrowest: f64,
    /// Matrix products with weights, embeddings and gates of recurrent layers among them.
    pub linear: f64,
    /// Convolutions.
    pub convolution: f64,
    /// Attention.
    pub attention: f64,
    /// Norms.
    pub normalisation: f64,
    /// Activations.
    pub activation: f64,
    /// Dropouts.
    pub dropout: f64,
    /// All else.
    pub other: f64,
}

/// Bytes that a step moves for each parameter (weights, gradients and the state of Adam, read and
/// written) and for each result: enough to tell jobs apart, not to time them.
const BYTES_PER_PARAMETER: f64 = 12.0;
const BYTES_PER_RESULT: f64 = 8.0;

impl Features {
    /// Of a described model at so many samples of its usual length per step.
    ///
    /// # Errors
    /// If there are no samples.
    pub fn of(model: &Model, batch: u64) -> Result<Self> {
        if batch == 0 {
            return Err(InputError::new("a batch of nothing").at("batch"));
        }
        let batch = batch as f64;
        let mut found = Self {
            batch,
            flops: batch * model.forward(None).get(),
            parameters: model.parameters() as f64,
            narrowest: f64::INFINITY,
            ..Self::default()
        };
        for layer in model.layers() {
            let positions = model.sample.positions(layer.tokens, None);
            let source = model.sample.positions(Tokens::Sequence, None);
            for op in &layer.ops {
                let times = if op.on_source { source } else { positions } as f64;
                found.count(op);
                found.widths(op, times);
            }
        }
        found.numbers *= batch;
        if !found.narrowest.is_finite() {
            found.narrowest = 0.0;
        }
        Ok(found)
    }

    fn count(&mut self, op: &Op) {
        let slot = match &op.kind {
            OpKind::Linear { .. }
            | OpKind::Embedding { .. }
            | OpKind::Router { .. }
            | OpKind::Experts(_)
            | OpKind::Recurrent { .. } => &mut self.linear,
            OpKind::Convolution(_) => &mut self.convolution,
            OpKind::Attention(_) => &mut self.attention,
            OpKind::Norm { .. } | OpKind::BatchNorm { .. } => &mut self.normalisation,
            OpKind::Elementwise { what, .. } => match what {
                Elementwise::Activation | Elementwise::Relu | Elementwise::Gated => {
                    &mut self.activation
                }
                Elementwise::Dropout | Elementwise::DropoutResidual => &mut self.dropout,
                Elementwise::Residual | Elementwise::Rotary | Elementwise::Scale => &mut self.other,
            },
            // The loss belongs to every job.
            OpKind::CrossEntropy { .. } => return,
            OpKind::Pool { .. } | OpKind::Interaction { .. } => &mut self.other,
        };
        *slot += 1.0;
    }

    fn widths(&mut self, op: &Op, times: f64) {
        let (inputs, outputs) = match &op.kind {
            OpKind::Linear { inputs, outputs } => (*inputs, *outputs),
            OpKind::Embedding { width, lookups, .. } => (*lookups, *width),
            OpKind::Convolution(shape) => {
                let places = shape.size.0 * shape.size.1;
                (shape.inputs * places * shape.stride * shape.stride, shape.outputs * places)
            }
            OpKind::Recurrent { inputs, hidden, steps, directions, .. } => {
                (*inputs * *steps, hidden * steps * directions)
            }
            _ => return,
        };
        let (inputs, outputs) = (times * inputs as f64, times * outputs as f64);
        if self.inputs == 0.0 {
            self.inputs = inputs;
        }
        self.outputs = outputs;
        self.numbers += outputs;
        self.widest = self.widest.max(outputs);
        self.narrowest = self.narrowest.min(outputs);
    }

    /// The numbers that trees see.
    pub fn vector(&self) -> [f64; COUNT] {
        let layers = self.linear + self.convolution;
        let operations = layers
            + self.attention
            + self.normalisation
            + self.activation
            + self.dropout
            + self.other;
        let bytes = BYTES_PER_PARAMETER * self.parameters + BYTES_PER_RESULT * self.numbers;
        [
            self.batch,
            self.flops,
            self.parameters,
            self.numbers,
            self.inputs,
            self.outputs,
            self.widest,
            self.narrowest,
            self.linear,
            self.convolution,
            self.attention,
            self.normalisation,
            self.activation,
            self.dropout,
            self.other,
            layers,
            operations,
            self.batch * self.inputs,
            self.flops / operations.max(1.0),
            self.flops / bytes.max(1.0),
        ]
    }
}
